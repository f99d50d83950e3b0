"""Consistency means little by itself: a gate may ask that it stand above a control."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import MODEL

SUITE = """\
suite: mini
facts: facts.jsonl
reliability:
  choices: 3
  distractors: 6
  slices: [seen-zero-shot]
  gates:
    c_correct: {{above_control: {bound}}}
"""


@pytest.mark.parametrize(("bound", "ret"), [(0.05, pytest.ExitCode.OK), (0.85, pytest.ExitCode.TESTS_FAILED)])
def test_consistency_must_stand_above_the_control(pytester, mini_suite, report, bound, ret):
    mini_suite(SUITE.format(bound=bound))
    result = pytester.runpytest(MODEL, "suites")
    assert result.ret == ret
    (case,) = [case for case in report()["cases"] if not case["aggregate"]]
    (gate,) = case["gates"]
    assert gate["rule"] == "above_control"
    control = case["metrics"]["c_correct_control_random"]["value"]
    assert control == pytest.approx(0.2)
    above = case["metrics"]["c_correct"]["value"] - control
    assert (above >= bound) is (gate["verdict"] == "pass")
    assert "its control c_correct_control_random, 0.200" in gate["reason"]
    if ret:
        result.stdout.fnmatch_lines(
            ["*c_correct above_control 0.85: fail", "*better than the control", "*reason*its control*"]
        )


def test_a_metric_without_a_control_is_an_error_with_its_line(pytester, mini_suite):
    mini_suite(SUITE.format(bound=0.05).replace("c_correct:", "uninformative:"))
    result = pytester.runpytest(MODEL, "suites")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*mini.kb.yaml:8: 'above_control' compares a metric with its control*"])
