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
    spec = parse_openai(" openai/org/gpt-x ")
    assert spec == OpenAISpec(text="openai/org/gpt-x", name="org/gpt-x")
    assert (spec.base_url, spec.endpoint) == ("https://api.openai.com/v1", "chat")
    assert (spec.max_concurrent, spec.timeout, spec.max_retries) == (8, 60.0, 4)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert parse_openai("openai/x").base_url == "http://localhost:1/v1"
    assert parse_openai("openai/x", "base_url=http://h/v1").base_url == "http://h/v1"
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
    # As lm-eval says it.
    args = "base_url=http://h/v1/{}completions,num_concurrent=2"
    for chat in ("chat/", ""):
        result = parse_openai("openai/x", args.format(chat))
        assert result.base_url == "http://h/v1"
        assert (result.endpoint == "chat", result.max_concurrent) == (bool(chat), 2)


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
                    *("localhost:8000", "ftp://h/v1", "http:///v1"),
                    *("http://h:99999/v1", "http://h:0/v1", "http://[::1/v1"),
                )
            ],
        ),
        ("allowed: chat, completions", ["endpoint=chats"]),
        ("names the endpoint", ["base_url=http://h/v1/completions,endpoint=chat"]),
        (
            "allowed is a number above 0 and up to 86,400, of seconds",
            ["timeout=0", "timeout=86401"],
        ),
        ("from 0 to 1,000", ["max_retries=1001"]),
        ("from 1 to 10,000, of req", ["max_concurrent=0", "num_concurrent=10001"]),
        (
            "from 0 to 9,223,372,036,854,775,807",
            [f"seed={2**63}"],
        ),
        ("from 1 to 100,000,000, of tokens", ["max_thinking_tokens=100000001"]),
        (
            "from 1 to 1,000,000,000,000, of tokens",
            ["max_tokens_total=0"],
        ),
        (
            "allowed is a number above 0 and up to 1,000,000,000",
            ["max_cost=0", "max_cost=5€"],
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
        ("http://h/v1?api-key=sk-secret", "h"),
        ("http://h/v1#sk-secret", "h"),
        ("http://[sk-secret@h/v1", "no host"),
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(url, host):
    said = rf"^base_url of {host}: it carries .* api_key_env=NAME$"
    with pytest.raises(ModelError, match=said) as caught:
        parse_openai("openai/x", f"base_url={url}")
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


def test_a_key_comes_from_the_environment(monkeypatch):
    mine, typed, named = (
        parse_openai("openai/x", f"base_url=http://localhost:1/v1{more}")
        for more in ("", ",api_key_env=sk_secret", ",api_key_env=MY_KEY")
    )
    assert api_key(mine) == "none"
    # What is no usual name of a variable may be the key itself.
    for spec, said in (
        (parse_openai("openai/x"), r"OPENAI_API_KEY holds no key for https://api\.op"),
        (named, "MY_KEY holds no key"),
        (typed, "the environment variable that api_key_env names holds no key"),
    ):
        with pytest.raises(ModelError, match=said):
            api_key(spec)
    monkeypatch.setenv("MY_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "o")
    assert (api_key(named), api_key(mine)) == ("k", "o")
