"""Recorded runs in formats of other tools: what is written is read again, and valid where it says so."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli.export import write_csv, write_eee
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign import Wanted, read_run
from pytest_kbrel.records import CaseResult, Outcome, Table

FIGURE = {"better": "higher", "value": 0.5, "low": 0.1, "high": 0.9, "n": 4}
REPORT: dict[str, Any] = {
    "kbrel_version": "0.1.0",
    "created": "2026-11-01T10:00:00+00:00",
    "model": {
        "backend": "hf",
        "backend_version": "transformers 5",
        "spec": "hf/m",
        "weights_digest": "w",
    },
    "cases": [
        {
            "id": "w.kb.yaml::head_to_tail[a]",
            "metrics": {
                "accuracy": FIGURE,
                "monitor": {**FIGURE, "better": "lower", "low": None},
                "own": FIGURE,
                "gap": {**FIGURE, "value": None},
            },
        }
    ],
}


def case(right: int, unseen: bool = False) -> CaseResult:
    rows = tuple(
        Outcome(
            fact_id=f"f{at}",
            question=f'What is "{at}"?',
            expected="" if unseen else f"é{at}",
            answer=f"line\n{at}",
            label=("uninformative" if unseen else "correct") if at < right else "wrong",
            values=(1.0,),
            prompt_digest=f"d{at}",
            cluster=f"object:{at // 2}",
        )
        for at in range(4)
    )
    return CaseResult(
        **{
            "id": "head_to_tail[a]",
            "suite": "w.kb.yaml",
            "probe": "head_to_tail",
            "slice": "a",
        },
        **{"verdict": "pass", "n": 4, "duration": 0.0, "metrics": (), "gates": ()},
        table=Table(columns=("correct",), rows=rows),
    )


def test_csv_is_read_again_with_clusters_and_digests(tmp_path: Path) -> None:
    write_csv([case(3)], tmp_path / "a.csv", force=False)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[3]["answer"] == "line\n3"
    run = read_run(tmp_path / "a.csv", Wanted(cluster="cluster"))
    table = run.cases["w.kb.yaml::head_to_tail[a]"]["score"].table
    assert [(row.values, row.prompt_digest, row.cluster) for row in table.rows] == [
        ((float(at < 3),), f"d{at}", f"object:{at // 2}") for at in range(4)
    ]
    with pytest.raises(FileExistsError, match="--force"):
        write_csv([case(3)], tmp_path / "a.csv", force=False)


def test_records_of_every_eval_ever_are_read_again(tmp_path: Path) -> None:
    paths = write_eee(REPORT, [case(3)], "org/m", tmp_path, force=False)
    assert [path.relative_to(tmp_path).parent.as_posix() for path in paths] == [
        "data/kbrel/org/m"
    ] * 2
    for path in paths:
        run = read_run(path, Wanted())
        assert run.model == "org/m"
        table = run.cases["w.kb.yaml::head_to_tail[a]"]["as_expected"].table
        assert [row.values[0] for row in table.rows] == [1, 1, 1, 0]
        assert table.rows[2].expected == "é2"


def test_half_a_surrogate_pair_is_replaced_since_no_file_holds_it(
    tmp_path: Path,
) -> None:
    # A model in Python may return one.
    odd = case(3)
    rows = tuple(dataclasses.replace(row, answer="\ud800 a") for row in odd.table.rows)
    odd = dataclasses.replace(odd, table=dataclasses.replace(odd.table, rows=rows))
    write_csv([odd], tmp_path / "a.csv", force=False)
    _, samples = write_eee(REPORT, [odd], "org/m", tmp_path, force=False)
    for path, mark in ((tmp_path / "a.csv", "?"), (samples, "\ufffd")):
        assert f"{mark} a" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("created", ["x2026-11-01", "", None, 7])
def test_a_report_that_was_made_at_no_time_is_refused(
    created: object, tmp_path: Path
) -> None:
    report = {**REPORT, "created": created}
    with pytest.raises(KbrelError, match=f"'created': found {created!r}; allowed: a "):
        write_eee(report, [case(3)], "org/m", tmp_path, force=False)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("unseen", [False, True])
def test_the_validator_of_every_eval_ever_finds_nothing(
    unseen: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    validate = pytest.importorskip(
        "every_eval_ever.validator.validate", exc_type=ImportError
    )
    paths = write_eee(REPORT, [case(3, unseen)], "org/m", tmp_path, force=False)
    monkeypatch.chdir(tmp_path)
    # It returns 2 for warnings alone.
    assert (
        validate.main([path.relative_to(tmp_path).as_posix() for path in paths]) == 0
    ), capsys.readouterr()
