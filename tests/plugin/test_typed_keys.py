"""A key that is typed where it would be printed and recorded is refused, and not repeated."""

from __future__ import annotations

import pytest

SECRET = "sk-very-secret"
AT = "base_url=http://localhost:1/v1"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--kb-model=openai/x,api_key=sk-very-secret"], "--kb-model: found api_key in it"),
        (["--kb-model=openai/x, API-KEY = sk-very-secret"], "--kb-model: found API-KEY in it"),
        (["--kb-model=openai/http://me:sk-very-secret@h/v1"], "--kb-model: found a password in an address"),
        (["--kb-model=openai/x,key=sk-very-secret"], "openai/x: found key=… behind the name"),
        (["--kb-model=openai/x", "--kb-model-args=api_key=sk-very-secret"], "unknown key 'api_key'"),
        (["--kb-model=openai/x", "--kb-model-args=api_key='sk-very-secret"], "api_key: the quotation mark '"),
        (["--kb-model=openai/x", "--kb-model-args=header={sk-very-secret"], "header: { is not closed"),
        (["--kb-model=openai/x", "--kb-model-args=auth_token=sk-very-secret"], "auth_token=… is refused"),
        (
            ["--kb-model=openai/x", f"--kb-model-args={AT},api_key_env=sk-very-secret"],
            "api_key_env holds no name",
        ),
        (
            ["--kb-model=openai/x", f"--kb-model-args={AT}?key=sk-very-secret"],
            "base_url of localhost: it carries",
        ),
        (
            ["--kb-model=openai/x", "--kb-model-args=base_url=http://me:sk-very-secret@h/v1"],
            "base_url of h: it",
        ),
        (
            ["--kb-model=openai/x", "--kb-model-args=base_url=ftp://me:sk-very-secret@h/v1"],
            "base_url of h: it",
        ),
        (
            ["--kb-model=openai/x", "--kb-model-args=base_url=me:sk-very-secret@h/v1"],
            "base_url of no host: it",
        ),
        (
            ["--kb-model=openai/x", f"--kb-model-args={AT}/#sk-very-secret"],
            "base_url of localhost: it carries",
        ),
        (
            ["--kb-model=openai/x", "--kb-model-args=base_url=http://[sk-very-secret@h"],
            "base_url of no host: it",
        ),
        (["--kb-judge=openai/x,api_key=sk-very-secret"], "--kb-judge: found api_key in it"),
        (["--kb-judge-args=auth_token=sk-very-secret"], "auth_token=… is for no model here"),
        (["--kb-judge-args=base_url=http://me:sk-very-secret@h/v1"], "base_url=… is for no model here"),
        (
            ["--kb-judge=openai/x", "--kb-judge-args=base_url=http://me:sk-very-secret@h/v1"],
            "base_url of h: it",
        ),
        (["--kb-baseline-model=openai/x,api_key=sk-very-secret"], "--kb-baseline-model: found api_key in it"),
        (
            ["--kb-baseline-model=openai/x,base_url=http://me:sk-very-secret@h/v1"],
            "--kb-baseline-model: found a password in an address",
        ),
    ],
)
def test_a_typed_key_is_refused_and_not_repeated(pytester, mini_suite, monkeypatch, flags, said):
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    mini_suite()
    model = (
        [] if any(flag.startswith("--kb-model=") for flag in flags) else ["--kb-model=scripted/knows.jsonl"]
    )
    result = pytester.runpytest(*model, *flags, "suites")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert said in text
    assert SECRET not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("where", ["KB_MODEL", "kb_model"])
def test_a_key_in_environment_or_ini_file_is_refused_though_no_suite_is_in_sight(
    pytester, monkeypatch, where
):
    spec = f"openai/x,api_key={SECRET}"
    if where == "KB_MODEL":
        monkeypatch.setenv(where, spec)
    else:
        pytester.makeini(f"[pytest]\nkb_model = {spec}\n")
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert SECRET not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("typed", "said"), [("MY_KEY", "MY_KEY"), ("sk_very_secret", "that api_key_env names")]
)
def test_a_variable_that_is_not_set_is_named_unless_its_name_may_be_the_key(
    pytester, mini_suite, monkeypatch, typed, said
):
    monkeypatch.delenv("MY_KEY", raising=False)
    mini_suite()
    result = pytester.runpytest("--kb-model=openai/x", f"--kb-model-args={AT},api_key_env={typed}", "suites")
    result.stderr.fnmatch_lines([f"*the environment variable {said} holds no key*"])
    assert "sk_very_secret" not in result.stdout.str() + result.stderr.str()


def test_an_address_from_the_environment_is_checked_too(pytester, mini_suite, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{SECRET}@h/v1")
    mini_suite()
    result = pytester.runpytest("--kb-model=openai/x", "suites")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*base_url of h: it carries*"])
    assert SECRET not in result.stdout.str() + result.stderr.str()
