"""Files that other tools made (made/README.md): they are read, paired and judged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign import Wanted, format_of, read_run

MADE = Path(__file__).with_name("made")


def compared(
    capsys: pytest.CaptureFixture[str], a: Path, b: Path, *arguments: str
) -> dict[str, Any]:
    """Return the cases of a comparison, by id."""
    main(["compare", str(a), str(b), "--max-drop=0.1", *arguments, "--json"])
    (paired,) = json.loads(capsys.readouterr().out)["paired"]
    return {case["id"].partition("::")[2]: case for case in paired["cases"]}


def values(case: dict[str, Any]) -> dict[str, tuple[float, float, int]]:
    """Return the baseline's value, the candidate's and the number of rows of each figure."""
    return {
        name: (
            round(figure["baseline"], 4),
            round(figure["baseline"] + figure["delta"], 4),
            figure["paired"],
        )
        for name, figure in case["figures"].items()
    }


def test_a_group_of_lm_eval_is_one_case_with_the_value_that_it_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = MADE / "lm_eval" / "a", MADE / "lm_eval" / "b"
    cases = compared(capsys, *runs, "--metric=acc", "--pool=made_all", "--cluster=task")
    assert {name: values(case) for name, case in cases.items()} == {
        "made_all": {"acc": (0.75, 0.5417, 72)}
    }
    assert cases["made_all"]["lost"][0]["fact_id"] == "made_all/made_biology/1"
    cases = compared(capsys, *runs, "--metric=acc", "--pool=made_science")
    assert {name: case["figures"]["acc"]["paired"] for name, case in cases.items()} == {
        "made_science": 48,
        "made_history": 24,
    }


@pytest.mark.parametrize(
    ("pool", "says"),
    [
        (
            ("made",),
            "--pool made: the results file names no such group; allowed here: made_all, made_science",
        ),
        (("made_all", "made_science"), "the task made_biology is in made_all as well"),
    ],
)
def test_a_group_that_cannot_be_pooled_is_refused(
    pool: tuple[str, ...], says: str
) -> None:
    with pytest.raises(KbrelError, match=says):
        read_run(MADE / "lm_eval" / "a", Wanted(pool=pool))


def test_only_runs_of_lm_eval_have_groups() -> None:
    (file,) = (MADE / "eee" / "a").glob("*.json")
    with pytest.raises(
        KbrelError, match="--pool g: has no groups; allowed: a run of lm_eval"
    ):
        read_run(file, Wanted(pool=("g",)))


@pytest.mark.filterwarnings("default")
def test_inspect_has_tasks_epochs_scorers_and_a_sample_that_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert format_of(MADE / "inspect" / "a") == "inspect_ai"
    pytest.importorskip("inspect_ai", exc_type=ImportError)
    cases = compared(
        capsys, MADE / "inspect" / "a", MADE / "inspect" / "b", "--cluster=unit"
    )
    assert list(cases) == ["biology", "physics"]
    # In the second epoch both runs have all right.
    assert values(cases["biology"])["match"] == (0.8571, 0.5, 7)
    assert set(values(cases["biology"])) == {
        "match",
        "lengths/letters",
        "lengths/capital",
    }
    assert "8 ids have several rows" in cases["biology"]["obstacle"]
    assert (
        "1 rows have no match, lengths/letters, lengths/capital"
        in cases["biology"]["obstacle"]
    )


def test_instances_that_are_not_those_of_their_aggregate_are_refused(
    tmp_path: Path,
) -> None:
    run = Path(shutil.copytree(MADE / "eee" / "b", tmp_path / "b"))
    (aggregate,), (instances,) = run.glob("*.json"), run.glob("*_samples.jsonl")
    for path in (aggregate, instances):
        assert read_run(path, Wanted()).cases
    lines = instances.read_text().splitlines(keepends=True)
    instances.write_text("".join(lines[1:]))
    for path in (aggregate, instances):
        with pytest.raises(
            KbrelError, match=r"_samples.jsonl: its sha256 is .*; allowed: 8e61ccafcf8d"
        ):
            read_run(path, Wanted())
    aggregate.write_text(aggregate.read_text().replace('"sha256"', '"crc"'))
    with pytest.raises(KbrelError, match=r"json: .*crc"):
        read_run(aggregate, Wanted())
