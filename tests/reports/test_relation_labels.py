"""The label of a relation beside its id, in every output."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import jsonschema
import pytest

from pytest_kbrel.records import CaseResult, Relation, Run
from pytest_kbrel.reports.changes import changes_headline
from pytest_kbrel.reports.comment import comment_markdown
from pytest_kbrel.reports.html.page import anchors, report_html
from pytest_kbrel.reports.json_report import report_dict, schema
from pytest_kbrel.reports.junit import write_junit
from pytest_kbrel.reports.markdown import summary_markdown
from pytest_kbrel.reports.terminal import failure_text, terminal_lines


def relation(name: str, label: str) -> Relation:
    return Relation(id=name, label=label, domain="things", frames=())


@pytest.mark.parametrize(
    ("name", "label", "shown"),
    [
        ("P176", "manufacturer", "manufacturer"),
        ("P176", "P176", ""),
        ("capital_of", "capital of", ""),
        ("capital", "capital city", "capital city"),
    ],
)
def test_a_label_that_repeats_the_id_is_not_shown(
    name: str, label: str, shown: str
) -> None:
    assert relation(name, label).shown_label == shown


@pytest.fixture
def labelled(small_run: Run) -> Run:
    def with_label(case: CaseResult) -> CaseResult:
        if case.slice != "P30":
            return case
        lost, gained = (
            tuple(replace(change, label="continent") for change in changes)
            for changes in (case.lost, case.gained)
        )
        return replace(case, label="continent", lost=lost, gained=gained)

    return replace(small_run, cases=tuple(map(with_label, small_run.cases)))


def test_every_output_has_the_label(labelled: Run, tmp_path) -> None:
    assert changes_headline(labelled).endswith("; worst P30 continent")
    for name, text in {
        "terminal": "\n".join(line for line, _ in terminal_lines(labelled, width=80)),
        "failure": failure_text(labelled.cases[0], baseline_name="prod"),
        "summary": summary_markdown(labelled),
        "comment": comment_markdown(labelled),
        "page": report_html(labelled),
    }.items():
        assert "P30 continent" in text, name
    path = tmp_path / "j.xml"
    write_junit(
        labelled, path, failing={"fail"}, baseline_name="prod", as_properties=True
    )
    tree = ElementTree.parse(path)
    (case,) = (
        one for one in tree.iter("testcase") if one.get("name") == "monitor[P30]"
    )
    assert [
        one.get("value")
        for one in case.iter("property")
        if one.get("name") == "kb_relation"
    ] == ["P30 continent"]


def test_the_json_report_has_labels_beside_the_ids(
    labelled: Run, small_run: Run
) -> None:
    report = json.loads(json.dumps(report_dict(labelled)))
    jsonschema.Draft202012Validator(schema()).validate(report)
    by_slice = {case["slice"]: case for case in report["cases"]}
    assert (by_slice["P30"]["label"], by_slice["P17"]["label"]) == ("continent", "")
    assert {change["label"] for change in by_slice["P30"]["lost"]} == {"continent"}
    assert report["summary"]["by_relation"] == {
        "P30": {"lost": 7, "gained": 1, "label": "continent"}
    }
    assert report["summary"]["worst_relations"] == ["P30"]
    without = report_dict(small_run)
    assert not any(
        "label" in change for case in without["cases"] for change in case["lost"]
    )
    assert without["summary"]["by_relation"] == {"P30": {"lost": 7, "gained": 1}}


def test_links_on_the_page_are_made_of_ids(labelled: Run, small_run: Run) -> None:
    assert anchors(labelled) == anchors(small_run)
