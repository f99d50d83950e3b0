"""A model of which no case can be decided is said once, and no further case is begun."""

from __future__ import annotations

import pytest

from pytest_kbrel.errors import ModelError
from tests.plugin.conftest import GATED, MODEL

WHY = "./checkpoint: the weights hold NaN"
# In the worker as well, which runs no test of ours.
BROKEN = f"""
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import scripted


def broken(spec):
    raise ModelError({WHY!r})


scripted.load = broken
"""


def test_a_model_that_cannot_be_loaded_is_told_once(pytester, mini_suite, report, monkeypatch):
    from pytest_kbrel.models import scripted

    def broken(spec):
        raise ModelError(WHY)

    monkeypatch.setattr(scripted, "load", broken)
    mini_suite(GATED)
    result = pytester.runpytest(MODEL, "suites", "--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(failed=1)
    assert result.stdout.str().count(f"\n{WHY}\n") == 1
    result.stdout.fnmatch_lines(["*Exit: kbrel: no further case is begun, since all would fail of the same*"])
    actual = report()
    cases = [case for case in actual["cases"] if not case["aggregate"]]
    assert sorted(case["verdict"] for case in cases) == ["invalid", "not run", "not run"]
    assert f"no case can be decided: {WHY}" in actual["problems"]
    assert actual["exit_status"] == 4
    assert (pytester.path / "junit.xml").read_text().count("<failure") == 1


@pytest.mark.slow
def test_workers_tell_it_once_too(pytester, mini_suite, report):
    mini_suite(GATED)
    pytester.makeconftest(BROKEN)
    result = pytester.runpytest_subprocess(MODEL, "suites", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(failed=1)
    assert result.stdout.str().count(f"\n{WHY}\n") == 1
    verdicts = [case["verdict"] for case in report()["cases"]]
    assert "pass" not in verdicts
    assert "not run" in verdicts


def test_a_model_to_compare_with_and_a_judge_are_named_by_their_flags(pytester, mini_suite, monkeypatch):
    from pytest_kbrel.models import scripted

    load = scripted.load

    def broken(spec):
        if "int4" in spec.text:
            raise ModelError(WHY)
        return load(spec)

    monkeypatch.setattr(scripted, "load", broken)
    mini_suite(GATED)
    for flag in ("--kb-baseline-model", "--kb-judge"):
        result = pytester.runpytest(MODEL, "suites", f"{flag}=scripted/int4.jsonl")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.assert_outcomes(failed=1)
        assert result.stdout.str().count(f"\n{flag}: {WHY}\n") == 1


def test_a_cause_of_one_case_stops_no_others(pytester, mini_suite, report):
    mini_suite(GATED)
    rule = '{"contains": "Norway?", "error": "out of memory"}\n'
    path = pytester.path / "knows.jsonl"
    path.write_text(rule + path.read_text())
    result = pytester.runpytest(MODEL, "suites")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "not run" not in [case["verdict"] for case in report()["cases"]]
