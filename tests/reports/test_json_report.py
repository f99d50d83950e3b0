from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import CaseResult, MetricValue, Run
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.json_report import (
    comparable,
    read_report,
    report_dict,
    schema,
    write_json,
)
from pytest_kbrel.reports.markdown import summary_markdown


def check(report: object) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.Draft202012Validator(schema()).validate(report)


@pytest.mark.parametrize(
    "name",
    [
        "small_run",
        "rich_run",
        "hostile_run",
        "empty_run",
        pytest.param("big_run", marks=pytest.mark.slow),
    ],
)
def test_every_report_obeys_the_schema(
    name: str, request: pytest.FixtureRequest
) -> None:
    check(report_dict(request.getfixturevalue(name)))


def test_the_schema_refuses_what_is_no_report(small_run: Run) -> None:
    report = report_dict(small_run)
    report["cases"][0]["verdict"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        check(report)


def test_unknown_keys_are_no_error(small_run: Run, tmp_path: Path) -> None:
    report = report_dict(small_run) | {"tomorrow": 1}
    report["cases"][0]["tomorrow"] = 1
    check(report)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    assert read_report(path) == report


def test_the_report_has_the_form_of_the_contract(small_run: Run) -> None:
    report = report_dict(small_run)
    case = next(
        case
        for case in report["cases"]
        if case["id"] == "suites/world.kb.yaml::monitor[P30]"
    )
    assert case["metrics"]["accuracy"] == {
        "better": "higher",
        "value": 0.512,
        "low": pytest.approx(0.432),
        "high": pytest.approx(0.592),
        "n": 120,
        "baseline": pytest.approx(0.583),
        "delta": -0.071,
        "delta_low": pytest.approx(-0.111),
        "delta_high": pytest.approx(-0.031),
        "p": 0.0004,
        "mde": 0.05,
        "paired": 118,
        "note": "",
        "unpaired": False,
        "design_effect": None,
        "clusters": None,
    }
    assert case["gates"][1]["verdict"] == "fail"
    assert case["lost"][0]["new_answer"] == "Africa"
    assert report["aggregates"] == {
        "monitor": {"monitor": 0.401},
        "head_to_tail": {},
        "reliability": {},
        "pooled": {},
    }
    assert report["correlations"] == []
    assert report["summary"] == {
        "verdict": "fail",
        "pass": 4,
        "fail": 1,
        "inconclusive": 1,
        "not comparable": 0,
        "no baseline": 0,
        "invalid": 0,
        "not run": 0,
        "waived": 0,
        "facts_lost": 7,
        "facts_gained": 1,
        "by_bucket": {
            "head": {"lost": 5, "gained": 0},
            "tail": {"lost": 2, "gained": 1},
        },
        "by_relation": {"P30": {"lost": 7, "gained": 1}},
        "worst_relations": ["P30"],
        "headline": "7 facts lost, 1 gained; 5 of the 7 are head; worst P30",
    }


def test_the_models_that_helped_are_in_the_report(small_run: Run) -> None:
    assert small_run.model is not None
    judge = replace(
        small_run.model,
        spec="openai/judge",
        backend="openai",
        device="http://localhost:1/v1",
    )
    one = report_dict(replace(small_run, helpers=(judge,)))
    check(one)
    assert one["helpers"][0]["spec"] == "openai/judge"
    moved = replace(
        judge, device="http://localhost:2/v1", backend_version="openai 9, served fp_1"
    )
    other = report_dict(replace(small_run, helpers=(moved,)))
    assert one != other
    assert comparable(one) == comparable(other)
    assert comparable(one) != comparable(
        report_dict(replace(small_run, helpers=(replace(judge, spec="x"),)))
    )


def test_an_empty_or_broken_run_is_no_pass_and_a_partial_one_may_be(
    small_run: Run, empty_run: Run
) -> None:
    assert report_dict(empty_run)["summary"]["verdict"] == "invalid"
    passed = tuple(case for case in small_run.cases if case.verdict == "pass")
    assert report_dict(replace(small_run, cases=passed))["summary"]["verdict"] == "pass"
    assert (
        report_dict(replace(small_run, cases=passed, complete=False))["summary"][
            "verdict"
        ]
        == "pass"
    )
    broken = replace(small_run, cases=passed, problems=("gw1 crashed",))
    assert report_dict(broken)["summary"]["verdict"] == "invalid"


def test_aggregates_of_two_suites_stay_apart(
    small_run: Run,
    make_case: Callable[..., CaseResult],
    make_metric: Callable[..., MetricValue],
) -> None:
    one = make_case(
        "monitor", "overall", "pass", (make_metric("monitor", 0.4),), aggregate=True
    )
    other = replace(
        one,
        suite="b.kb.yaml",
        metrics=(make_metric("monitor", 0.5), make_metric("gap", 0.1)),
    )
    assert report_dict(replace(small_run, cases=(one, other)))["aggregates"][
        "monitor"
    ] == {
        "monitor (b.kb.yaml::monitor[overall])": 0.5,
        "gap": 0.1,
        "monitor (suites/world.kb.yaml::monitor[overall])": 0.4,
    }


def test_the_order_of_arrival_and_the_place_of_work_leave_no_trace(
    small_run: Run, tmp_path: Path
) -> None:
    assert small_run.model is not None
    elsewhere = replace(
        small_run,
        created="2027-01-01T00:00:00+00:00",
        model=replace(small_run.model, device="cuda:1"),
        environment=(("python", "3.13.0"), ("workers", "2")),
        settings=tuple(reversed(small_run.settings)),
        cases=tuple(replace(case, duration=9.0) for case in reversed(small_run.cases)),
    )
    one, other = report_dict(small_run), report_dict(elsewhere)
    assert one != other
    assert comparable(one) == comparable(other)
    assert "created" in one, "comparable() must leave its argument alone"
    assert json.dumps(comparable(one)) == json.dumps(comparable(other)), (
        "in the same order of keys, too"
    )


def test_another_answer_is_never_comparable(small_run: Run) -> None:
    case, *rest = small_run.cases
    other = replace(small_run, cases=(replace(case, lost=case.lost[1:]), *rest))
    assert comparable(report_dict(small_run)) != comparable(report_dict(other))


@pytest.mark.parametrize("name", ["small_run", "hostile_run", "empty_run"])
def test_what_is_written_is_what_is_read(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: Run = request.getfixturevalue(name)
    path = tmp_path / "report.json"
    write_json(run, path)
    assert read_report(path) == read_report(tmp_path) == report_dict(run)
    raw = path.read_bytes()
    assert b"\x1b" not in raw
    assert b"\xc2\x9b" not in raw
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_a_number_that_is_none_is_not_written(small_run: Run, tmp_path: Path) -> None:
    case, *rest = small_run.cases
    broken = replace(case, metrics=(replace(case.metrics[0], value=float("nan")),))
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="no wire form"):
        write_json(replace(small_run, cases=(broken, *rest)), path)
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("\udc80", "is not JSON"),
        ("[]", "found list"),
        ('{"schema_version": 2}', "reads up to 1: upgrade"),
        ('{"schema_version": 1, "cases": []}', "model, environment"),
    ],
)
def test_a_foreign_report_is_one_clear_error(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(KbrelError, match=message) as caught:
        read_report(path)
    assert str(path) in str(caught.value)


def test_the_order_of_cases_changes_no_report(small_run: Run) -> None:
    shuffled = replace(small_run, cases=tuple(reversed(small_run.cases)))
    for report in (report_dict, report_html, summary_markdown):
        assert report(shuffled) == report(small_run)


def test_every_key_of_the_schema_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "report-keys.md").read_text(
        encoding="utf-8"
    )
    parts = [schema(), *schema()["$defs"].values()]
    keys = {key for part in parts for key in part.get("properties", {})}
    assert {
        key
        for key in keys
        if f"`{key}`" not in page and f"{key}," not in page and f"{key}}}" not in page
    } == set()
