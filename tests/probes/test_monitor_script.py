"""MONITOR's published variant against an oracle that asks trained checkpoints one sequence at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.monitor import pfd
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.spec import parse_spec
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import Exchange, Generated, Scored, Table
from pytest_kbrel.suites import load_suite
from tests.function_model import answers_of
from tests.metrics import value_of
from tests.probes.script_oracle import Script, Told, trimmed
from tests.probes.trained_checkpoints import ENDINGS, ENDS, FRAMES, make_trained, taught


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


@pytest.mark.slow
def test_the_published_variant_has_the_scripts_figures(trained, tmp_path):
    script = agree(trained("gpt2", "stopped"), taught()[3:6], tmp_path)
    # An object with a full stop is never the answer.
    assert script.kept == ["Turdia", "Barland"]


@pytest.mark.parametrize("endings", ENDINGS)
@pytest.mark.parametrize("kind", ENDS)
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


PUBLIC = Path(__file__).resolve().parents[2].parent / "shared" / "public-data" / "fktc"
# Six frames, as two relations of the authors have; written by us.
FKTC_FRAMES = (
    "What is the capital of [X]?",
    "Which city is the capital of [X]?",
    "Name the capital city of [X].",
    "From which city is [X] governed?",
    "[X] has which city as its capital?",
    "Which capital does [X] have?",
)
CITIES = {
    "China": "Beijing",
    "Japan": "Tokyo",
    "France": "Paris",
    "Italy": "Rome",
    "Spain": "Madrid",
}


@pytest.fixture(scope="module")
def model():
    model = load(parse_spec("reference"))
    yield model
    model.close()


@pytest.fixture
def capitals(tmp_path) -> Path:
    path = tmp_path / "P36-subclass.json"
    lines: list[dict[str, object]] = [{"relations": list(FKTC_FRAMES)}]
    for country, city in CITIES.items():
        wrong = [*(other for other in CITIES.values() if other != city), "Oslo"]
        lines.append({"subject": country, "object": city, "taxonomy": wrong})
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    return path


def run_published(
    model, facts: Path, **settings: object
) -> tuple[Table, list[Exchange]]:
    beside = settings.pop("beside", facts.parent / "fktc.kb.yaml")
    stated = "".join(f"  {key}: {value}\n" for key, value in settings.items())
    suite = Path(str(beside))
    suite.write_text(
        f"suite: t\nfacts: {facts}\nformat: fktc\nmonitor:\n{stated}", encoding="utf-8"
    )
    exchanges: list[Exchange] = []
    (case, *_) = load_suite(suite).cases
    result = run_case(case, answers_of(model), exchanges.extend)
    assert result.errors == ()
    return result.table, exchanges


@pytest.mark.parametrize("variant", ["definition", "published"])
@pytest.mark.slow
def test_six_frames_are_six_everywhere(model, capitals, variant):
    table, exchanges = run_published(model, capitals, variant=variant, study="full")
    counted = [
        dict(zip(table.columns, row.values, strict=True))
        for row in table.rows
        if row.values[0]
    ]
    assert counted
    for row in counted:
        assert (row["calls:monitor"], row["calls:study"]) == (
            6 + 1 + 5,
            6 * (1 + 1 + 5),
        )
    by = {
        metric.name: metric for metric in metrics_for("monitor", "P36", table.columns)
    }
    result = value_of(
        by["saving_calls"],
        [[row[name] for name in by["saving_calls"].columns] for row in counted],
    )
    assert result == pytest.approx(42 / 12)
    fact = next(row.fact_id for row in table.rows if row.values[0])
    again = distances(exchanges, fact, variant)
    assert dict(zip(table.columns, row_of(table, fact), strict=True))[
        "pfd"
    ] == pytest.approx(again)


def row_of(table: Table, fact: str) -> tuple[float, ...]:
    return next(row.values for row in table.rows if row.fact_id == fact)


def distances(exchanges: list[Exchange], fact: str, variant: str) -> float:
    """The PFD of one fact, from what the model answered: a mean over six frames."""
    ending = "/score" if variant == "definition" else ""
    of = {
        e.ask.role.removesuffix(ending): e.response
        for e in exchanges
        if e.ask.fact_id == fact
    }
    first = of["positive:0"]
    if isinstance(first, Scored):
        frames = [of[f"none:{frame}"] for frame in range(6)]
        return pfd(
            first.probabilities,
            [actual.probabilities for actual in frames if isinstance(actual, Scored)],
        )
    assert isinstance(first, Generated)
    watched = next(
        e.ask.request.watch  # type: ignore[union-attr]
        for e in exchanges
        if e.ask.fact_id == fact and e.ask.role == "none:0"
    )
    anchor = [step.probability for step in first.steps[: len(watched)]]
    total = 0.0
    for frame in range(6):
        steps = of[f"none:{frame}"].steps  # type: ignore[union-attr]
        counted = trimmed([step.token for step in steps], ("", "</s>"))
        foreign = [step.watched or 0.0 for step in steps[:counted]][: len(anchor)]
        foreign += [0.0] * (len(anchor) - len(foreign))
        total += sum(abs(a - b) for a, b in zip(anchor, foreign, strict=True)) / len(
            anchor
        )
    return total / 6


@pytest.mark.slow
@pytest.mark.skipif(not PUBLIC.is_dir(), reason="the public files are not here")
@pytest.mark.parametrize("variant", ["definition", "published"])
@pytest.mark.parametrize(("name", "frames"), [("P264", 6), ("P1412", 7)])
def test_a_public_relation_runs_in_both_variants(
    model, tmp_path, name, frames, variant
):
    table, _ = run_published(
        model,
        PUBLIC / f"{name}-subclass.json",
        variant=variant,
        limit=4,
        study="full",
        beside=tmp_path / "public.kb.yaml",
    )
    assert len(table.rows) == 4
    assert sum(column.startswith("cell:none:") for column in table.columns) == frames
    assert sum(column.startswith("cell:") for column in table.columns) == frames * 7
