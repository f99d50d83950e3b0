from __future__ import annotations

import json

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.openai.spec import OpenAISpec, api_key, parse_openai
from pytest_kbrel.models.registry import backend_of


@pytest.fixture(autouse=True)
def _no_settings_of_mine(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_only_the_name_is_needed(monkeypatch):
    # An unset variable is none.
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    assert parse_openai(" openai/org/gpt-x ") == OpenAISpec(
        text="openai/org/gpt-x",
        name="org/gpt-x",
        base_url="https://api.openai.com/v1",
        api_key_env="OPENAI_API_KEY",
        endpoint="chat",
        max_concurrent=8,
        timeout=60.0,
        max_retries=4,
        seed=None,
    )
    named = [backend_of(one).is_served for one in ("openai/x", " openai ")]
    others = [backend_of(one).is_served for one in ("hf/openai/x", "openairs/x", "")]
    assert (named, others) == ([True] * 2, [False] * 3)


def test_all_that_can_be_said():
    result = parse_openai(
        "openai/x",
        "base_url=http://localhost:8000/v1///,api_key_env=MY_KEY,endpoint=completions,max_concurrent=3,"
        "timeout=0.1,max_retries=0,seed=0,max_tokens_total=2000,max_cost=1.5",
    )
    assert result == OpenAISpec(
        text="openai/x",
        name="x",
        base_url="http://localhost:8000/v1",
        api_key_env="MY_KEY",
        endpoint="completions",
        max_concurrent=3,
        timeout=0.1,
        max_retries=0,
        max_tokens_total=2000,
        max_cost=1.5,
        seed=0,
    )


@pytest.mark.parametrize(
    ("args", "endpoint", "concurrent"),
    [
        ("base_url=http://h/v1/completions,num_concurrent=2", "completions", 2),
        ("base_url=http://h/v1/chat/completions/,num_concurrent=auto", "chat", 8),
        ("base_url=http://h/v1/completions,endpoint=completions", "completions", 8),
    ],
)
def test_lm_evals_words_are_understood(args, endpoint, concurrent):
    result = parse_openai("openai/x", args)
    assert (result.base_url, result.endpoint) == ("http://h/v1", endpoint)
    assert result.max_concurrent == concurrent


def test_the_environment_may_name_the_server(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert parse_openai("openai/x").base_url == "http://localhost:1/v1"
    assert parse_openai("openai/x", "base_url=http://h/v1").base_url == "http://h/v1"


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("did you mean 'base_url'", ["base_ulr=http://h/v1"]),
        ("unknown key 'dtype'; allowed: base_url", ["dtype=float32"]),
        (
            "allowed is an address such as",
            [
                f"base_url={url}"
                for url in (
                    *("localhost:8000", "ftp://h/v1", "http:///v1", "//h/v1"),
                    *("http://h:99999/v1", "http://h:0/v1", "http://[::1/v1"),
                )
            ],
        ),
        ("allowed: chat, completions", ["endpoint=chats"]),
        ("names the endpoint", ["base_url=http://h/v1/completions,endpoint=chat"]),
        (
            "allowed is a number above 0 and up to 86,400, of seconds",
            [f"timeout={one}" for one in ("0", "-1", "inf", "nan", "86401", "soon")],
        ),
        ("from 0 to 1,000", [f"max_retries={one}" for one in ("-1", "1.5", "1001")]),
        ("from 1 to 10,000, of req", ["max_concurrent=0", "num_concurrent=10001"]),
        (
            "from 0 to 9,223,372,036,854,775,807",
            [f"seed={one}" for one in (2**63, "-1", "+1", "1.0", "x", "9" * 5000)],
        ),
        ("from 1 to 100,000,000, of tokens", ["max_thinking_tokens=100000001"]),
        (
            "from 1 to 1,000,000,000,000, of tokens",
            [f"max_tokens_total={one}" for one in ("0", "-1", "1e6", "9" * 13)],
        ),
        (
            "allowed is a number above 0 and up to 1,000,000,000",
            [f"max_cost={one}" for one in ("0", "-1", "nan", "1e10", "5€")],
        ),
        ("one thing", ["max_concurrent=2,num_concurrent=2"]),
        ("no chat template", ["endpoint=completions,enable_thinking=True"]),
        ("no chat template", ['endpoint=completions,chat_template_args={"a": 1}']),
        (
            "a JSON object|no JSON",
            ["headers=x", "headers=[1]", "extra_body=7", "header={'a': 'b'}"],
        ),
        (
            "model-args: headers: .*; allowed",
            [
                f"headers={json.dumps(one)}"
                for one in (
                    *({"X": 7}, {"X": ""}, {"X": "a\nb"}, {"X": "é"}, {"X Y": "a"}),
                    *({"": "a"}, {"X_env": "not a name"}, {"_env": "X"}),
                )
            ],
        ),
        ("headers are one thing", ["headers={},header={}"]),
        (
            "extra_body: temperature is not for it",
            ['extra_body={"temperature": 1, "top_k": 4}'],
        ),
        ("is a token's id.*allowed is the token's text", ["think_end_token=7"]),
    ],
)
def test_what_is_wrong_is_said(said, wrong):
    for args in wrong:
        with pytest.raises(ModelError, match=said):
            parse_openai("openai/x", args)


@pytest.mark.parametrize("text", ["openai/", "openai"])
def test_a_model_has_a_name(text):
    with pytest.raises(ModelError, match="no model named; the form is openai/NAME"):
        parse_openai(text)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://me:sk-secret@h/v1", "h"),
        ("http://sk-secret@h/v1", "h"),
        ("http://h/v1?api-key=sk-secret", "h"),
        ("http://h/v1#sk-secret", "h"),
        ("ftp://me:sk-secret@h/v1", "h"),
        ("me:sk-secret@h/v1", "no host"),
        ("http://[sk-secret@h/v1", "no host"),
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(monkeypatch, url, host):
    with pytest.raises(
        ModelError, match=rf"^base_url of {host}: it carries .* api_key_env=NAME$"
    ) as caught:
        parse_openai("openai/x", f"base_url={url}")
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ModelError) as caught:
        parse_openai("openai/x")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("openai/x,api_key=sk-secret", "", "openai/x: found api_key=… behind the name"),
        ("openai/org/x key=sk-secret", "", "openai/org/x: found key=… behind the name"),
        ("openai/x", "api_key=sk-secret", "unknown key 'api_key'"),
        (
            "openai/x",
            "api_key='sk-secret",
            "api_key: the quotation mark ' is not closed",
        ),
        ("openai/x", "seed=1, header={sk-secret", "header: no JSON: Expecting"),
        ("openai/x", "headers=sk-secret", "headers=…: no JSON"),
        *(
            ("openai/x", f"header={json.dumps(one)}", "may be a key must be")
            for one in ({"Authorization": "secret"}, {"X": "Bearer secret"})
        ),
        ("openai/x", "auth_token=sk-secret", "auth_token=… is refused"),
        (
            "openai/x",
            "api_key_env=sk-secret",
            "api_key_env holds no name of an environment variable",
        ),
    ],
)
def test_a_key_among_the_arguments_is_refused_and_not_repeated(text, args, said):
    with pytest.raises(ModelError, match=said) as caught:
        parse_openai(text, args)
    assert "secret" not in str(caught.value)


def test_a_variable_that_is_not_set_is_named_unless_its_name_may_be_the_key():
    typed = parse_openai(
        "openai/x", "base_url=http://localhost:1/v1,api_key_env=sk_secret"
    )
    with pytest.raises(
        ModelError, match="the environment variable that api_key_env names holds no key"
    ):
        api_key(typed)


def test_a_key_comes_from_the_environment(monkeypatch):
    mine = parse_openai("openai/x", "base_url=http://localhost:1/v1")
    assert api_key(mine) == "none"
    with pytest.raises(
        ModelError, match=r"OPENAI_API_KEY holds no key for https://api\.openai\.com/v1"
    ):
        api_key(parse_openai("openai/x"))
    named = parse_openai(
        "openai/x", "base_url=http://localhost:1/v1,api_key_env=MY_KEY"
    )
    with pytest.raises(ModelError, match="MY_KEY holds no key"):
        api_key(named)
    monkeypatch.setenv("MY_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "o")
    assert (api_key(named), api_key(mine), api_key(parse_openai("openai/x"))) == (
        "k",
        "o",
        "o",
    )
