"""Reports for programs: report.json and its schema, and JUnit files as CI systems read them."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import junitparser
import pytest

from pytest_kbrel.catalogue.verdicts import failing
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.reports import sha256_of
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.json_report import (
    check_file,
    read_report,
    read_run,
    report_dict,
    schema,
    write_json,
)
from pytest_kbrel.reports.junit import (
    case_properties,
    move_properties,
    suite_properties,
    write_junit,
    xml_text,
)
from pytest_kbrel.reports.rendering import summary_markdown
from tests.junit_schema import junit_errors
from tests.reports.conftest import case, metric, rich, small

RUNS = ["rich_run", "hostile_run", "empty_run"]
FAILING = failing(compared=True, strict=True)


@pytest.mark.parametrize("name", RUNS)
def test_a_report_obeys_the_schema_and_is_read_as_it_was_written(
    name, request, tmp_path
):
    run = replace(
        request.getfixturevalue(name),
        blessed="2025-12-31T00:00:00+00:00",
        comparisons=7,
    )
    write_json(run, tmp_path / "report.json")
    report = report_dict(run)
    jsonschema.Draft202012Validator(schema()).validate(report)
    assert read_report(tmp_path) == read_report(tmp_path / "report.json") == report
    assert report_dict(read_run(tmp_path)) == report
    # Terminals obey some characters, and others mislead readers.
    text = (tmp_path / "report.json").read_text(encoding="utf-8")
    assert not re.search(
        "[\x1b\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", text
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report | {"cases": [{"verdict": "maybe"}]}, schema())


def test_a_number_that_is_none_is_not_written(tmp_path):
    broken = case("monitor", "P1", "pass", (metric("ird", 0.5, low=float("nan")),))
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(replace(small(), cases=(broken,)), path)
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("\udc80", "is not JSON"),
        ("[]", "found list"),
        ('{"schema_version": "1"}', "schema_version is '1', needed is a number from 1"),
        ('{"schema_version": true}', "schema_version is True, needed is a number from 1"),
        ('{"schema_version": 2}', "reads up to 1: upgrade"),
        ('{"schema_version": 1, "cases": []}', "is no whole report: kbrel_version, created, model"),
    ],
)  # fmt: skip
def test_a_foreign_report_is_one_clear_error(text, message, tmp_path):
    path = tmp_path / "report.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(KbrelError, match=message) as caught:
        read_report(path)
    assert str(path) in str(caught.value)


def test_older_reports_and_later_ones_with_more_keys_are_read(tmp_path):
    path = tmp_path / "report.json"
    report = {key: report_dict(small())[key] for key in schema()["required"]}
    report |= {"schema_version": 1, "tomorrow": 1}
    path.write_text(json.dumps(report), encoding="utf-8")
    assert read_report(path) == report
    assert len(schema()["required"]) == 13


def test_a_file_belongs_to_the_report_that_names_its_digest(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_bytes(b"one\n")
    for files in ({path.name: sha256_of(path)}, {"other": "0"}, None, []):
        check_file({"files": files}, path)
    for digest, where, why in (
        ("0" * 64, path, r"is not the file that .*report.json was written with \(sha256 .{12}, not 0{12}\)"),
        ("", path, "is not the file"),
        (sha256_of(path), tmp_path / "nowhere" / path.name, "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(KbrelError, match=why):
            check_file({"files": {path.name: digest}}, where)


def test_the_order_of_cases_changes_no_report():
    shuffled = replace(rich(), cases=tuple(reversed(rich().cases)))
    for report in (report_dict, report_html, summary_markdown):
        assert report(shuffled) == report(rich())


def test_every_key_of_the_schema_is_documented():
    page = (Path(__file__).parents[2] / "docs" / "report-keys.md").read_text(
        encoding="utf-8"
    )
    parts = [schema(), *schema()["$defs"].values()]
    keys = {key for part in parts for key in part.get("properties", {})}
    assert {key for key in keys if not re.search(f"`{key}`|{key}[,}}]", page)} == set()


def written(run, path, *, as_properties=False):
    write_junit(
        run,
        path,
        failing=FAILING,
        baseline_name=run.baseline,
        as_properties=as_properties,
    )
    return path


@pytest.mark.parametrize("name", RUNS)
def test_a_junit_file_obeys_the_schema_of_jenkins(name, request, tmp_path):
    assert (
        junit_errors(written(request.getfixturevalue(name), tmp_path / "j.xml")) == []
    )


def test_a_reader_finds_the_figures_of_each_case_in_its_output(tmp_path):
    # Names stay whole that two cases may share the beginning of.
    twins = tuple(replace(rich().cases[1], id="x" * 300 + end) for end in "ab")
    run = replace(rich(), cases=(*rich().cases, *twins))
    (suite,) = junitparser.JUnitXml.fromfile(str(written(run, tmp_path / "j.xml")))
    cases = {one.name: one for one in suite}
    assert len(cases) == suite.tests == len(run.cases)
    for of in run.cases:
        told = dict(line.split("=", 1) for line in cases[of.id].system_out.splitlines())
        assert told == dict(case_properties(of))
        assert cases[of.id].classname == "suites.world.kb.yaml"
        assert cases[of.id].is_failure == (of.verdict in FAILING and not of.waived)
    assert {one.name: one.value for one in suite.properties()} == dict(
        suite_properties(run)
    )


def test_what_a_test_records_and_prints_itself_stays():
    one = ElementTree.fromstring(
        '<testcase><properties><property name="kb_n" value="1"/><property name="kb_x" value="a=b"/>'
        '<property name="theirs" value="2"/></properties><failure/><system-out>theirs</system-out></testcase>'
    )
    for _ in range(2):
        move_properties(one)
        assert one.findtext("system-out") == "kb_n=1\nkb_x=a=b\ntheirs"
        assert [of.get("name") for of in one.iter("property")] == ["theirs"]


def test_figures_of_two_suites_are_told_apart():
    overall = case(
        "monitor", "overall", "pass", (metric("monitor", 0.4),), aggregate=True
    )
    other = replace(
        overall, suite="b.kb.yaml", metrics=(metric("monitor", 0.5), metric("gap", 0.1))
    )
    run = replace(small(), cases=(overall, other))
    assert report_dict(run)["aggregates"]["monitor"] == {
        "monitor (b.kb.yaml::monitor[overall])": 0.5,
        "gap": 0.1,
        "monitor (suites/world.kb.yaml::monitor[overall])": 0.4,
    }
    names = [name for name, _ in suite_properties(run)]
    assert "kb_monitor_overall_monitor (b.kb.yaml::monitor[overall])" in names


def test_no_character_is_left_that_xml_forbids(hostile_run):
    texts = [
        text
        for one in hostile_run.cases
        for pair in case_properties(one)
        for text in pair
    ]
    texts += [text for pair in suite_properties(hostile_run) for text in pair]
    everything = (*range(0x300), *range(0xD7F0, 0xE010), *range(0xFFF0, 0x10010))
    texts += [xml_text(chr(code)) for code in everything]
    for text in texts:
        assert not re.search(
            "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", text
        )
        assert len(text) <= 200
