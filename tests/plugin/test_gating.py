"""Whole sessions that pass and fail: outcomes, reports, aggregates, exit status."""

import json
import re
from pathlib import Path

import junitparser
import pytest

from pytest_kbrel import resources
from tests.plugin.conftest import GATE, outcomes

STRICT = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates: {monitor: {max: 0.0}}
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.0}}
  overall: {gates: {gap: {max: -1}}}
"""


def test_a_green_run_counts_aggregates_as_cases_and_writes_every_report(
    pytester, mini_suite, report
):
    mini_suite()
    result = pytester.runpytest(*GATE, "--junitxml=kbrel-report/junit.xml")
    assert result.ret == pytest.ExitCode.OK
    # Six slices and three aggregates: one relation alone has no overall MONITOR.
    assert outcomes(result) == {"passed": 9}
    result.stdout.fnmatch_lines(["*knowledge reliability*"])
    actual = report()
    assert actual["summary"]["pass"] + actual["summary"]["no baseline"] == 9
    assert actual["exit_status"] == 0
    assert actual["complete"] is True
    assert sorted(path.name for path in (pytester.path / "kbrel-report").iterdir()) == [
        "junit.xml",
        "outcomes.jsonl.xz",
        "report.html",
        "report.json",
        "responses.jsonl",
        "summary.md",
    ]
    cases = [
        case
        for suite in junitparser.JUnitXml.fromfile("kbrel-report/junit.xml")
        for case in suite
    ]
    assert "head_to_tail[overall]" in {case.name for case in cases}
    assert len(cases) == 9


def test_the_loop_of_the_documentation_takes_each_slice_once(
    pytester, mini_suite, report, capsys
):
    page = Path(__file__).parents[2] / "docs" / "report.md"
    code = page.read_text("utf-8").partition("```python\n")[2]
    mini_suite()
    pytester.runpytest(*GATE)
    capsys.readouterr()
    exec(code.partition("```")[0], {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(report()["cases"])
    assert sum("overall" in line for line in lines) == 3


def test_a_failing_aggregate_makes_the_run_red(pytester, mini_suite):
    mini_suite(STRICT.replace("{max: 0.0}", "{max: 9.0}"))
    result = pytester.runpytest(*GATE, "--junitxml=j.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(result) == {"passed": 5, "failed": 1}
    result.stdout.fnmatch_lines(["FAILED suites/mini.kb.yaml::head_to_tail?overall?*"])
    failed = [
        case.name
        for suite in junitparser.JUnitXml.fromfile("j.xml")
        for case in suite
        if case.is_failure
    ]
    assert failed == ["head_to_tail[overall]"]


def test_an_aggregate_is_decided_only_when_all_its_slices_ran(pytester, mini_suite):
    mini_suite()
    result = pytester.runpytest(*GATE, "-k", "places-head or places-tail")
    assert outcomes(result) == {"passed": 2, "deselected": 4}


def test_last_failed_runs_what_failed(pytester, mini_suite):
    mini_suite(STRICT)
    pytester.runpytest(*GATE, "-k", "monitor")
    result = pytester.runpytest(*GATE, "--lf", "-v")
    result.stdout.fnmatch_lines(["*monitor?P36? FAILED*"])
    assert outcomes(result)["failed"] == 1


@pytest.mark.slow
def test_a_run_that_dies_leaves_no_older_runs_report_behind(
    pytester, mini_suite, report
):
    mini_suite()
    pytester.runpytest(*GATE, "-k", "P36")
    assert report()["summary"]["verdict"] == "pass"
    pytester.makeconftest(
        "def pytest_collection_modifyitems(items): raise RuntimeError('dies')"
    )
    pytester.runpytest_subprocess(*GATE)
    assert report()["summary"]["verdict"] == "invalid"
    assert report()["exit_status"] == pytest.ExitCode.INTERNAL_ERROR


def test_the_first_suite_of_the_page_on_gates_runs(pytester):
    page = (Path(__file__).parents[2] / "docs/gates.md").read_text("utf-8")
    name, suite, command = re.search(
        r'```yaml title="(.*?)"\n(.*?)```\n\n```console\n\$ pytest (.*?)\n',
        page,
        re.DOTALL,
    ).groups()
    (pytester.path / "suites").mkdir()
    (pytester.path / "suites/world").symlink_to(resources.suites() / "world")
    (pytester.path / name).write_text(suite, "utf-8")
    # The last word of each question, so that the answers differ.
    rule = {"pattern": r"(\w+)\?[^?]*$", "text": r"\1"}
    (pytester.path / "knows.jsonl").write_text(json.dumps(rule), "utf-8")
    flags = re.sub(r"\./\w+", "scripted/knows.jsonl", command)
    result = pytester.runpytest(*flags.split(), "--kb-limit=60")
    result.assert_outcomes(passed=4)
