from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.baselines import (
    baseline_directory,
    check_target,
    read_baseline,
    write_baseline,
)
from pytest_kbrel.baselines.comparability import judge_differences
from pytest_kbrel.errors import BaselineError
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import CaseResult, Fingerprint, Run, Table
from tests.gates.tables import answers, case, decided, measure

MODEL = Fingerprint(
    spec="reference",
    backend="hf",
    backend_version="4.57",
    architecture="llama",
    parameters=1_000_000,
    weights_digest="w" * 64,
    tokenizer_digest="t" * 64,
    dtype="float32",
    device="cpu",
    scoring_version=1,
)


def sound(*cases: CaseResult, **more: Any) -> Run:
    given: dict[str, Any] = {
        "kbrel_version": "0.1.0",
        "created": "2026-01-02T03:04:05+00:00",
        "model": MODEL,
        "environment": (("commit", "abc123"), ("torch", "2.9")),
        "settings": (("model", "reference"), ("seed", "0")),
        "cases": cases
        or (
            decided(case(), answers("++-?")),
            decided(case(slice="world-tail"), answers("+--")),
        ),
    }
    return Run(**{**given, **more})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    run = sound()
    write_baseline(tmp_path / "baselines" / "prod", run, reason="first release")
    actual = read_baseline("prod", tmp_path)
    assert (actual.reason, actual.created, actual.model) == (
        "first release",
        run.created,
        MODEL,
    )
    assert (actual.commit, actual.versions) == ("abc123", (("torch", "2.9"),))
    assert actual.settings == run.settings
    for result in run.cases:
        blessed = actual.case(result)
        assert blessed is not None
        assert blessed.table.columns == result.table.columns
        for row, again in zip(result.table.rows, blessed.table.rows, strict=True):
            assert again == dataclasses.replace(row, question="", expected="")
        assert blessed.settings == result.settings
        assert dict(blessed.metrics) == {
            metric.name: metric.value for metric in result.metrics
        }
        metrics = metrics_for(result.probe, result.slice, result.table.columns)
        assert {
            value.delta for value in measure(result.table, metrics, blessed.table)
        } == {0.0}


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    run = sound()
    shuffled = dataclasses.replace(
        run,
        cases=tuple(
            dataclasses.replace(
                result,
                duration=9.9,
                table=Table(columns=result.table.columns, rows=result.table.rows[::-1]),
            )
            for result in reversed(run.cases)
        ),
    )
    write_baseline(tmp_path / "a", run)
    write_baseline(tmp_path / "b", shuffled)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "b").iterdir())
    assert names[0] == "baseline.json"
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (
            tmp_path / "b" / name
        ).read_bytes()


def test_a_folder_that_was_meant_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_baseline(tmp_path / "b", sound())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BaselineError, match=r"written \./b"):
        read_baseline("b", tmp_path / "root")


def rewrite(**changes: Any) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        file = path / "baseline.json"
        meta = json.loads(file.read_text(encoding="utf-8"))
        for key, value in changes.items():
            if value is None:
                del meta[key]
            else:
                meta[key] = value
        file.write_text(json.dumps(meta), encoding="utf-8")

    return spoil


def write(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda path: (path / name).write_bytes(data) and None


JUDGE = dataclasses.replace(
    MODEL,
    spec="openai/judge",
    backend="openai",
    architecture="judge",
    weights_digest="",
    chat_template=True,
)
JUDGED = (("judge", "openai/judge"), ("model", "reference"))


def test_the_judge_is_blessed_with_the_run(tmp_path: Path) -> None:
    writer = dataclasses.replace(JUDGE, spec="openai/writer")
    write_baseline(tmp_path / "b", sound(settings=JUDGED, helpers=(JUDGE, writer)))
    actual = read_baseline(f"{tmp_path}/b", tmp_path)
    assert actual.helpers == (JUDGE, writer)
    assert actual.judge == JUDGE


@pytest.mark.parametrize("value", ["true", "1e999", "NaN", '"high"'])
def test_a_figure_that_is_no_finite_number(value: str, tmp_path: Path) -> None:
    first = decided(case(), answers("++--"))
    write_baseline(tmp_path / "b", sound(first))
    file = tmp_path / "b" / "baseline.json"
    meta = json.loads(file.read_text("utf-8"))
    (blessed,) = meta["cases"].values()
    blessed["metrics"]["accuracy"] = "HERE"
    file.write_text(json.dumps(meta).replace('"HERE"', value), "utf-8")
    with pytest.raises(BaselineError, match=r"finite number"):
        read_baseline(f"{tmp_path}/b", tmp_path)


def test_judges_differ_by_what_they_are_and_not_by_where_they_run() -> None:
    assert judge_differences(None, None) == ()
    assert judge_differences(JUDGE, None) == ("judge (openai/judge and rules)",)
    assert judge_differences(None, JUDGE) == ("judge (rules and openai/judge)",)
    moved = dataclasses.replace(
        JUDGE, device="http://b/v1", backend_version="9", spec="openai/alias"
    )
    assert judge_differences(JUDGE, moved) == ()
    for name, value in (
        ("architecture", "other"),
        ("weights_digest", "x"),
        ("derived", "seed=1"),
    ):
        (words,) = judge_differences(JUDGE, dataclasses.replace(JUDGE, **{name: value}))
        assert name in words
        assert repr(value) in words


def other_suite() -> CaseResult:
    return decided(case(suite="suites/other.kb.yaml"), answers("+-"))


def test_blessing_some_suites_does_not_drop_the_others(tmp_path: Path) -> None:
    both = sound(decided(case(), answers("+-")), other_suite())
    write_baseline(tmp_path / "b", both)
    before = (tmp_path / "b" / "baseline.json").read_bytes()
    with pytest.raises(
        BaselineError, match=r"has world\.kb\.yaml, which this run lacks; allowed: "
    ) as caught:
        write_baseline(tmp_path / "b", sound(other_suite()))
    assert str(caught.value).startswith(f"{tmp_path / 'b'}: ")
    assert (tmp_path / "b" / "baseline.json").read_bytes() == before
    write_baseline(tmp_path / "c", sound(other_suite()))
    write_baseline(tmp_path / "c", both)
    assert len(read_baseline(f"{tmp_path}/c", tmp_path).cases) == 2


def file_there(target: Path) -> None:
    target.write_text("x", encoding="utf-8")


def folder_there(target: Path) -> None:
    target.mkdir()
    (target / "thesis.txt").write_text("years of work", encoding="utf-8")


def file_above(target: Path) -> None:
    target.parent.rmdir()
    target.parent.write_text("x", encoding="utf-8")


def baseline_there(spoil: Callable[[Path], None]) -> Callable[[Path], None]:
    def prepare(target: Path) -> None:
        write_baseline(target, sound())
        spoil(target)

    return prepare


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (file_there, "something else is there"),
        (folder_there, "something else is there"),
        (file_above, "is a file"),
        (baseline_there(write("baseline.json", b"{not json")), "cannot be read"),
        (baseline_there(rewrite(schema_version=99)), "found schema_version 99"),
        (baseline_there(rewrite(cases=None)), "names no cases"),
    ],
)
def test_a_bad_target_is_found_before_a_run_and_after_it(
    tmp_path: Path, prepare: Callable[[Path], None], message: str
) -> None:
    target = tmp_path / "shelf" / "b"
    target.parent.mkdir()
    prepare(target)
    for attempt in (check_target, lambda path: write_baseline(path, sound())):
        with pytest.raises(BaselineError, match=message) as caught:
            attempt(target)
        assert str(caught.value).startswith(str(target))
        assert "allowed: " in str(caught.value)


def test_a_tilde_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert baseline_directory("~/b", tmp_path / "root") == tmp_path / "b"
    write_baseline(tmp_path / "b", sound())
    assert read_baseline("~/b", tmp_path / "root").path == tmp_path / "b"
    with pytest.raises(BaselineError, match="allowed: "):
        read_baseline("~nobody-of-this-name/b", tmp_path)
