"""JUnit files: properties, where the figures of cases stand, and what CI systems read of them."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import junitparser
import pytest

from pytest_kbrel.catalogue.verdicts import failing
from pytest_kbrel.reports.junit import (
    case_properties,
    move_properties,
    suite_properties,
    write_junit,
    xml_text,
)
from tests.junit_schema import junit_errors

FAILING = failing(compared=True, strict=True)


def written(run, path, *, as_properties=False):
    write_junit(
        run,
        path,
        failing=FAILING,
        baseline_name=run.baseline,
        as_properties=as_properties,
    )
    return path


def figures(case):
    return dict(line.split("=", 1) for line in case.system_out.splitlines())


@pytest.mark.parametrize(
    "name", ["small_run", "rich_run", "hostile_run", "empty_run", "stopped_run"]
)
def test_every_file_obeys_the_schema_of_jenkins(name, request, tmp_path):
    assert (
        junit_errors(written(request.getfixturevalue(name), tmp_path / "j.xml")) == []
    )


def test_a_reader_finds_the_figures_of_each_case_in_its_output(rich_run, tmp_path):
    (suite,) = junitparser.JUnitXml.fromfile(str(written(rich_run, tmp_path / "j.xml")))
    cases = {case.name: case for case in suite}
    assert len(cases) == suite.tests == len(rich_run.cases)
    for of in rich_run.cases:
        assert figures(cases[of.id]) == dict(case_properties(of))
        assert cases[of.id].classname == "suites.world.kb.yaml"
        assert cases[of.id].is_failure == (of.verdict in FAILING and not of.waived)
    assert suite.failures == sum(case.is_failure for case in cases.values()) == 1
    assert {one.name: one.value for one in suite.properties()} == dict(
        suite_properties(rich_run)
    )


def test_names_stay_whole_that_two_cases_may_share_the_beginning_of(
    small_run, tmp_path
):
    names = ["x" * 300 + end for end in "ab"]
    run = replace(
        small_run, cases=tuple(replace(small_run.cases[0], id=name) for name in names)
    )
    (suite,) = junitparser.JUnitXml.fromfile(str(written(run, tmp_path / "j.xml")))
    assert [case.name for case in suite] == names


def test_lines_stand_above_the_output_of_the_test_itself():
    case = ElementTree.fromstring(
        '<testcase><properties><property name="kb_n" value="1"/><property name="kb_x" value="a=b"/>'
        "</properties><failure/><system-out>theirs</system-out></testcase>"
    )
    move_properties(case)
    assert case.findtext("system-out") == "kb_n=1\nkb_x=a=b\ntheirs"
    assert [part.tag for part in case] == ["failure", "system-out"]


def test_properties_that_a_test_records_itself_stay():
    case = ElementTree.fromstring(
        '<testcase><properties><property name="theirs" value="1"/><property name="kb_n" value="2"/>'
        "</properties></testcase>"
    )
    move_properties(case)
    assert [one.get("name") for one in case.iter("property")] == ["theirs"]
    assert case.findtext("system-out") == "kb_n=2\n"
    move_properties(case)
    assert case.findtext("system-out") == "kb_n=2\n"


def test_figures_of_two_suites_are_told_apart(small_run):
    overall = small_run.cases[-1]
    other = replace(overall, suite="other.kb.yaml")
    names = [
        name for name, _ in suite_properties(replace(small_run, cases=(overall, other)))
    ]
    assert names[-2:] == [
        "kb_monitor_overall_monitor (other.kb.yaml::monitor[overall])",
        "kb_monitor_overall_monitor (suites/world.kb.yaml::monitor[overall])",
    ]


def test_hostile_text_makes_xml_that_parses(hostile_run):
    pairs = suite_properties(hostile_run)
    for case in hostile_run.cases:
        pairs += case_properties(case)
    root = ElementTree.Element("properties")
    for name, value in pairs:
        assert type(name) is str
        assert type(value) is str
        assert len(value) <= 200
        ElementTree.SubElement(root, "property", name=name, value=value)
    assert len(
        ElementTree.fromstring(ElementTree.tostring(root, encoding="utf-8"))
    ) == len(pairs)


def test_no_character_is_left_that_xml_forbids():
    everything = "".join(
        map(chr, (*range(0x300), *range(0xD7F0, 0xE010), *range(0xFFF0, 0x10010)))
    )
    for at in range(0, len(everything), 50):
        assert not re.search(
            "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]",
            xml_text(everything[at : at + 50]),
        )
