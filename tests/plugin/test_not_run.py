"""A session that stops before some of its cases calls them not run, everywhere, and passes in no way."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import jsonschema
import pytest

from pytest_kbrel.reports.json_report import schema
from tests.plugin.conftest import MODEL, ONE

STOPS = [
    pytest.param(("-x",), id="serial"),
    pytest.param(("--maxfail=1", "-n1"), id="n1", marks=pytest.mark.slow),
]
FAILING = ONE + "  gates: {accuracy: {max: 0.0}}\n"


OVERALL = (
    FAILING
    + """\
  overall:
    gates: {gap: {max: 1.0}}
overall:
  gates: {as_expected: {min: 0.1}}
"""
)


@pytest.mark.parametrize("stop", STOPS)
def test_cases_behind_the_last_failure_are_not_run(pytester, mini_suite, report, stop):
    mini_suite(FAILING)
    result = pytester.runpytest(MODEL, "suites", "--junitxml=junit.xml", *stop)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    actual = report()
    jsonschema.validate(actual, schema())
    verdicts = [case["verdict"] for case in actual["cases"]]
    assert set(verdicts) == {"fail", "not run"}
    left = verdicts.count("not run")
    summary = actual["summary"]
    assert (summary["fail"], summary["not run"], summary["invalid"]) == (len(verdicts) - left, left, 0)
    assert summary["verdict"] == "fail"
    assert not actual["complete"]
    assert f"fail: {len(verdicts) - left} fail, {left} not run" in result.stdout.str()
    folder = pytester.path / "kbrel-report"
    assert f"{left} not run" in (folder / "summary.md").read_text()
    page = (folder / "report.html").read_text()
    assert page.count('<span class="word not-run">not run</span>') >= left
    assert f"{left} cases not run: the session stopped before them" in page
    assert "partial run" not in page + result.stdout.str()
    suite = ET.parse(pytester.path / "junit.xml").getroot().find("testsuite")
    told = {one.get("name"): one.get("value") for one in suite.find("properties")}
    assert told["kb_not_run"] == str(left)
    assert int(suite.get("tests")) == len(verdicts) - left


@pytest.mark.parametrize("stop", STOPS)
def test_figures_over_cases_that_were_not_run_are_not_run_either(pytester, mini_suite, report, stop):
    mini_suite(OVERALL)
    result = pytester.runpytest(MODEL, "suites", "--junitxml=junit.xml", *stop)
    actual = report()
    jsonschema.validate(actual, schema())
    over = {case["id"].partition("::")[2]: case for case in actual["cases"] if case["aggregate"]}
    assert list(over) == ["head_to_tail[overall]", "pooled[overall]"]
    assert {case["verdict"] for case in over.values()} == {"not run"}
    assert {error for case in over.values() for error in case["errors"]} == {
        "the session stopped before this case"
    }
    left = actual["summary"]["not run"]
    assert left == sum(case["verdict"] == "not run" for case in actual["cases"])
    folder = pytester.path / "kbrel-report"
    page = (folder / "report.html").read_text()
    for name in over:
        assert f'<span class="name">{name}</span> <span class="word not-run">not run</span>' in page
    assert page.count('<p class="soft small">the session stopped before it</p>') == 2
    result.stdout.fnmatch_lines(
        ["Over all slices", "  pooled?overall?  not run", "    the session stopped before it"]
    )
    summary = (folder / "summary.md").read_text()
    assert "| **not run** | pooled\\[overall\\] | 0 |" in summary
    assert f"{left} cases not run: the session stopped before them" in summary
    suite = ET.parse(pytester.path / "junit.xml").getroot().find("testsuite")
    told = {one.get("name"): one.get("value") for one in suite.find("properties")}
    assert told["kb_not_run"] == str(left)


def test_of_a_selection_that_stopped_no_figure_over_all_was_expected(pytester, mini_suite, report):
    mini_suite(OVERALL)
    pytester.runpytest(MODEL, "suites", "-x", "-k", "not torso")
    assert {case["verdict"] for case in report()["cases"]} == {"fail", "not run"}
    assert not [case for case in report()["cases"] if case["aggregate"]]


def test_a_session_that_only_stopped_is_no_pass(pytester, mini_suite, report):
    mini_suite(FAILING.replace("{max: 0.0}", "{min: 0.0}"))
    pytester.makeconftest(
        "def pytest_runtest_teardown(item):\n    item.session.shouldstop = 'that is enough'\n"
    )
    pytester.runpytest(MODEL, "suites")
    actual = report()["summary"]
    # Two slices, and the two figures over all of them.
    assert (actual["pass"], actual["not run"]) == (1, 4)
    assert actual["verdict"] == "invalid"


def test_an_item_that_was_under_way_is_invalid(pytester, mini_suite, report):
    mini_suite(FAILING)
    pytester.makeconftest("import pytest\n\n\ndef pytest_runtest_setup(item):\n    raise KeyboardInterrupt\n")
    pytester.runpytest_subprocess(MODEL, "suites")
    actual = report()["summary"]
    assert (actual["invalid"], actual["not run"]) == (1, 4)
