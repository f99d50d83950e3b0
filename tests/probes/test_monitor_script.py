"""MONITOR's published variant against an oracle that asks trained checkpoints one sequence at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.probes import run_case
from pytest_kbrel.suites import load_suite
from tests.function_model import answers_of
from tests.metrics import value_of
from tests.probes.script_oracle import Script, Told
from tests.probes.trained_checkpoints import ENDS, FRAMES, make_trained, taught


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Return a function that trains (once) a checkpoint and returns its folder."""
    made: dict[tuple[str, str], Path] = {}

    def make(kind: str, endings: str) -> Path:
        if (kind, endings) not in made:
            folder = tmp_path_factory.mktemp(f"{kind}-{endings}")
            made[kind, endings] = make_trained(folder, kind, endings)
        return made[kind, endings]

    return make


def measured(
    checkpoint: Path, facts: Told, folder: Path
) -> tuple[dict[str, float], list[str]]:
    """Return our figures of a checkpoint, and the subjects of the facts that were kept."""
    lines: list[object] = [{"relations": FRAMES}]
    lines += [
        {"subject": land, "object": town, "taxonomy": wrong}
        for land, town, wrong in facts
    ]
    (folder / "P36-subclass.json").write_text(
        "\n".join(map(json.dumps, lines)), encoding="utf-8"
    )
    suite = folder / "t.kb.yaml"
    suite.write_text(
        "suite: t\nfacts: P36-subclass.json\nformat: fktc\nmonitor: {variant: published}\n",
        encoding="utf-8",
    )
    (case,) = load_suite(suite).cases
    model = load(parse_spec(str(checkpoint), device="cpu"), threads=1)
    try:
        result = run_case(case, answers_of(model), lambda exchanges: None)
    finally:
        model.close()
    assert result.errors == ()
    columns = result.table.columns
    rows = {
        row.fact_id: dict(zip(columns, row.values, strict=True))
        for row in result.table.rows
    }
    figures = {
        metric.name: value_of(
            metric, [[row[name] for name in metric.columns] for row in rows.values()]
        )
        for metric in metrics_for("monitor", "P36", columns)
    }
    return figures, [fact.subject for fact in case.facts if rows[fact.id]["kept"]]


def agree(checkpoint: Path, facts: Told, folder: Path) -> Script:
    script = Script(checkpoint, FRAMES, facts)
    figures, counted = measured(checkpoint, facts, folder)
    assert counted == script.kept
    assert {name: figures[name] for name in script.figures} == pytest.approx(
        script.figures, abs=1e-4
    )
    return script


@pytest.mark.parametrize(
    ("kind", "endings"), [("gpt2", "stopped"), ("qwen2", "mixed"), ("t5", "mixed")]
)
@pytest.mark.slow
def test_the_published_variant_has_the_scripts_figures_whatever_the_model_and_its_answers_ends(
    kind, endings, trained, tmp_path
):
    script = agree(trained(kind, endings), taught(), tmp_path)
    assert 6 < len(script.kept) < len(taught())
    # What is held out makes it unsure, and ends of all kinds are written.
    assert 0.7 < script.figures["anchor_prob"] < 0.99
    assert 0.1 < script.figures["accuracy_qa"] < 0.95
    written = {piece for run in script.runs for piece in run.pieces}
    assert {".", *ENDS[kind]} <= written
    assert ("\n" in written) or endings == "stopped"
    # Some runs lose their full stop, and some have steps behind their end.
    lengths = {
        (len(run.steps), len(run.pieces)) for run in script.runs if "." in run.pieces
    }
    assert any(counted < whole - 2 for counted, whole in lengths)
    assert any(run.pieces[-2] == "." for run in script.runs) or endings == "mixed"
