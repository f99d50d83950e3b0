"""Recorded runs in formats of other tools: what is written is read again, and valid where it says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.cli.export import write_csv, write_eee
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign import Wanted, read_run
from pytest_kbrel.records import CaseResult, MetricValue, Outcome, Run, Table

NAME = "w.kb.yaml::head_to_tail[a]"
SUITE, _, ID = NAME.partition("::")


def case(answer: str = "line\n", *, unseen: bool = False) -> CaseResult:
    """Return a case of four facts, the last of which is wrong."""
    rows = tuple(
        Outcome(
            fact_id=f"f{at}",
            question=f'What is "{at}"?',
            expected="" if unseen else f"é{at}",
            answer=f"{answer}{at}",
            label="wrong" if at == 3 else "uninformative" if unseen else "correct",
            values=(1.0,),
            prompt_digest=f"d{at}",
            cluster=f"object:{at // 2}",
        )
        for at in range(4)
    )
    figure = MetricValue(
        name="accuracy", better="higher", value=0.5, low=0.1, high=0.9, n=4
    )
    lower = replace(figure, name="monitor", better="lower", low=None)
    return CaseResult(
        id=ID,
        suite=SUITE,
        probe="head_to_tail",
        slice="a",
        verdict="pass",
        n=4,
        metrics=(figure, lower, replace(figure, name="gap", value=None)),
        table=Table(columns=("correct",), rows=rows),
    )


def run_of(case: CaseResult, created: str = "2026-11-01T10:00:00+00:00") -> Run:
    return Run(kbrel_version="0.1.0", created=created, cases=(case,))


def test_csv_is_read_again_with_texts_clusters_and_digests(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_csv([case()], path, force=False)
    rows = read_run(path, Wanted(cluster="cluster")).cases[NAME]["score"].table.rows
    assert [
        (row.answer, row.values, row.prompt_digest, row.cluster) for row in rows
    ] == [
        (f"line\n{at}", (float(at < 3),), f"d{at}", f"object:{at // 2}")
        for at in range(4)
    ]
    with pytest.raises(FileExistsError, match="--force"):
        write_csv([case()], path, force=False)


def test_records_of_every_eval_ever_are_read_again(tmp_path: Path) -> None:
    paths = write_eee(run_of(case()), [case()], "org/m", tmp_path, force=False)
    folders = {path.relative_to(tmp_path).parent.as_posix() for path in paths}
    assert folders == {"data/kbrel/org/m"}
    for path in paths:
        run = read_run(path, Wanted())
        assert run.model == "org/m"
        rows = run.cases[NAME]["as_expected"].table.rows
        assert [row.values[0] for row in rows] == [1, 1, 1, 0]
        assert rows[2].expected == "é2"


def test_half_a_surrogate_pair_is_replaced_since_no_file_holds_it(
    tmp_path: Path,
) -> None:
    # A model in Python may return one.
    write_csv([case("\ud800 a")], tmp_path / "a.csv", force=False)
    of = case("\ud800 a")
    _, lines = write_eee(run_of(of), [of], "org/m", tmp_path, force=False)
    for path, mark in ((tmp_path / "a.csv", "?"), (lines, "\ufffd")):
        assert f"{mark} a" in path.read_text(encoding="utf-8")


def test_a_report_that_was_made_at_no_time_is_refused(tmp_path: Path) -> None:
    run = run_of(case(), "x2026-11-01")
    with pytest.raises(KbrelError, match="'created': found 'x2026-11-01'; allowed: a "):
        write_eee(run, [case()], "org/m", tmp_path, force=False)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("unseen", [False, True])
def test_the_validator_of_every_eval_ever_finds_nothing(
    unseen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "every_eval_ever.validator.validate"
    validate = pytest.importorskip(name, exc_type=ImportError)
    cases = [case(unseen=unseen)]
    paths = write_eee(run_of(cases[0]), cases, "org/m", tmp_path, force=False)
    monkeypatch.chdir(tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in paths]
    # It returns 2 for warnings alone.
    assert validate.main(names) == 0
