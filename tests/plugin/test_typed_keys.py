"""A key that is typed where it would be printed and recorded is refused, and not repeated."""

from __future__ import annotations

import pytest

SECRET = "sk-very-secret"


def repeats(result: pytest.RunResult) -> bool:
    return SECRET in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--kb-model=openai/x,api_key=sk-very-secret"], "--kb-model: found api_key in it"),
        (["--kb-model=openai/x", "--kb-model-args=api_key=sk-very-secret"], "unknown key 'api_key'"),
        (
            ["--kb-model=openai/x", "--kb-model-args=base_url=http://me:sk-very-secret@h/v1"],
            "of h: it carries",
        ),
    ],
)
def test_a_typed_key_is_refused_and_not_repeated(pytester, mini_suite, flags, said):
    mini_suite()
    result = pytester.runpytest(*flags, "suites")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()
    assert not repeats(result)


def test_a_key_in_the_ini_file_is_refused_though_no_suite_is_in_sight(pytester):
    pytester.makeini(f"[pytest]\nkb_model = openai/x,api_key={SECRET}\n")
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not repeats(result)
