"""Flags, ini keys and variables of earlier versions."""

import pytest

from pytest_kbrel.plugin.gone import GONE

MODEL = "--kb-model=scripted/knows.jsonl"


@pytest.mark.parametrize("flag", GONE)
def test_a_removed_flag_says_what_to_do_instead(pytester, mini_suite, flag):
    mini_suite()
    result = pytester.runpytest("suites", MODEL, flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{flag} was removed; {GONE[flag]}"])


def test_a_removed_setting_has_no_effect_and_says_so(pytester, mini_suite, monkeypatch):
    mini_suite()
    monkeypatch.setenv("KB_NOISE_FLOOR", "1")
    ini = ("-o", "kb_noise_floor=1")
    result = pytester.runpytest("suites", MODEL, *ini)
    assert result.ret == pytest.ExitCode.OK
    for name in ("KB_NOISE_FLOOR", "kb_noise_floor"):
        result.stdout.fnmatch_lines([f"*PytestConfigWarning: {name} was removed; *"])
