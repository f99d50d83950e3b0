"""Waivers in whole sessions: pytest's counts, JUnit, exit status."""

import junitparser
import pytest

from tests.plugin.conftest import GATE, outcomes

# The embedded checkpoint is right about some of the tail, so that this slice fails.
FAILING = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  slices: {places-head: , places-torso: , places-tail: {gates: {accuracy: {max: 0.0}}}}
"""
PASSING = FAILING.replace("max: 0.0", "min: 0.0")
TAIL = "head_to_tail[places-tail]"


def waived(what, expires="2999-12-31"):
    return f"waivers:\n  - {{{what}, owner: Ann Example, reason: known since spring, expires: {expires}}}\n"


SLICE = waived(f'slice: "{TAIL}"')
SAID = "waived until 2999-12-31 by Ann Example: known since spring"


def found_case(report, name=TAIL):
    return next(case for case in report()["cases"] if case["id"].endswith(name))


def junit_case(name=TAIL):
    cases = [case for suite in junitparser.JUnitXml.fromfile("j.xml") for case in suite]
    return next(case for case in cases if case.name == name)


def test_a_waived_failure_is_an_expected_one(pytester, mini_suite, report):
    mini_suite(FAILING + SLICE)
    result = pytester.runpytest(*GATE, "-rx", "--junitxml=j.xml")
    assert result.ret == pytest.ExitCode.OK
    assert outcomes(result) == {"passed": 4, "xfailed": 1}
    result.stdout.fnmatch_lines([f"XFAIL *places-tail* - {SAID}"])
    case = found_case(report)
    assert (case["verdict"], case["gates"][0]["verdict"]) == ("fail", "fail")
    assert (case["waiver"]["owner"], case["waiver"]["line"]) == ("Ann Example", 7)
    summary = report()["summary"]
    assert (summary["verdict"], summary["fail"], summary["waived"]) == ("pass", 1, 1)
    assert (report()["exit_status"], report()["complete"]) == (0, True)
    (skipped,) = junit_case().result
    assert (skipped.message, junit_case().is_skipped) == (SAID, True)


def test_an_expired_waiver_fails_a_case_whose_gates_pass(pytester, mini_suite, report):
    mini_suite(PASSING + waived("fact: P36:Norway", expires="2026-01-31"))
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(result) == {"passed": 4, "failed": 1}
    why = "the waiver of fact P36:Norway expired on 2026-01-31 by Ann Example: known"
    assert f"\n{why}" in result.stdout.str()
    case = found_case(report)
    assert (case["verdict"], case["gates"][0]["verdict"]) == ("fail", "pass")
    assert report()["summary"]["verdict"] == "fail"


def test_runxfail_lets_no_waiver_excuse_anything(pytester, mini_suite, report):
    mini_suite(FAILING + SLICE)
    result = pytester.runpytest(*GATE, "--runxfail")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert outcomes(result) == {"passed": 4, "failed": 1}
    assert (report()["summary"]["verdict"], found_case(report)["verdict"]) == (
        "fail",
        "fail",
    )


@pytest.mark.slow
def test_workers_go_by_the_controllers_day(pytester, mini_suite, report):
    mini_suite(PASSING + SLICE)
    pytester.makeconftest(
        """
        from pytest_kbrel.plugin import options

        def pytest_configure(config):
            if not hasattr(config, "workerinput"):
                config.stash[options.begun_key] = "3000-01-01", "the run"
        """
    )
    for more in ((), ("-n2",)):
        result = pytester.runpytest(*GATE, *more)
        assert outcomes(result) == {"passed": 4, "failed": 1}
        assert found_case(report)["expired"][0]["expired"] is True


def test_a_run_with_a_waived_failure_can_be_blessed(pytester, mini_suite, report):
    mini_suite(FAILING + SLICE)
    result = pytester.runpytest(*GATE, "--kb-baseline-update=prod")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["blessed as prod: baselines?prod"])


def test_a_waived_case_over_several_slices_is_expected_to_fail(pytester, mini_suite):
    overall = "  overall: {gates: {gap: {max: -1}}}\n"
    mini_suite(PASSING + overall + SLICE.replace(TAIL, "head_to_tail[overall]"))
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.OK
    assert outcomes(result) == {"passed": 4, "xfailed": 1}
