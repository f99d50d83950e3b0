import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.json_report import (
    read_report,
    report_dict,
    schema,
    write_json,
)
from pytest_kbrel.reports.markdown import summary_markdown


def check(report):
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
def test_every_report_obeys_the_schema(name, request):
    check(report_dict(request.getfixturevalue(name)))


def test_the_schema_refuses_what_is_no_report(small_run):
    report = report_dict(small_run)
    report["cases"][0]["verdict"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        check(report)


def test_unknown_keys_are_no_error(small_run, tmp_path):
    report = report_dict(small_run) | {"tomorrow": 1}
    report["cases"][0]["tomorrow"] = 1
    check(report)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    assert read_report(path) == report


def test_aggregates_of_two_suites_stay_apart(small_run, make_case, make_metric):
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


@pytest.mark.parametrize("name", ["small_run", "hostile_run", "empty_run"])
def test_what_is_written_is_what_is_read(name, request, tmp_path):
    run = request.getfixturevalue(name)
    path = tmp_path / "report.json"
    write_json(run, path)
    assert read_report(path) == read_report(tmp_path) == report_dict(run)
    raw = path.read_bytes()
    assert b"\x1b" not in raw
    assert b"\xc2\x9b" not in raw
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_a_number_that_is_none_is_not_written(small_run, tmp_path):
    case, *rest = small_run.cases
    broken = replace(case, metrics=(replace(case.metrics[0], value=float("nan")),))
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="not JSON compliant"):
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
def test_a_foreign_report_is_one_clear_error(text, message, tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(KbrelError, match=message) as caught:
        read_report(path)
    assert str(path) in str(caught.value)


def test_the_order_of_cases_changes_no_report(small_run):
    shuffled = replace(small_run, cases=tuple(reversed(small_run.cases)))
    for report in (report_dict, report_html, summary_markdown):
        assert report(shuffled) == report(small_run)


def test_every_key_of_the_schema_is_documented():
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
