from __future__ import annotations

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.openai.spec import OpenAISpec, api_key, parse_openai
from pytest_kbrel.models.registry import backend_of


@pytest.fixture(autouse=True)
def _no_settings_of_mine(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_only_the_name_is_needed():
    assert parse_openai("openai/gpt-x") == OpenAISpec(text="openai/gpt-x", name="gpt-x")
    assert parse_openai(" openai/org/gpt-x ").name == "org/gpt-x"
    assert backend_of("openai/x").is_served
    assert backend_of("openai").is_served
    assert not backend_of("hf/openai/x").is_served
    assert not backend_of("openairs/x").is_served


def test_all_that_can_be_said():
    result = parse_openai(
        "openai/x",
        "base_url=http://localhost:8000/v1/,api_key_env=MY_KEY,endpoint=completions,max_concurrent=3,"
        "timeout=2.5,max_retries=0,seed=5,max_tokens_total=2000,max_cost=1.5",
    )
    assert result == OpenAISpec(
        text="openai/x",
        name="x",
        base_url="http://localhost:8000/v1",
        api_key_env="MY_KEY",
        endpoint="completions",
        max_concurrent=3,
        timeout=2.5,
        max_retries=0,
        max_tokens_total=2000,
        max_cost=1.5,
        seed=5,
    )


def test_lm_evals_words_are_understood():
    result = parse_openai(
        "openai/x", "base_url=http://localhost:8000/v1/completions,num_concurrent=2"
    )
    assert (result.base_url, result.endpoint, result.max_concurrent) == (
        "http://localhost:8000/v1",
        "completions",
        2,
    )
    assert (
        parse_openai("openai/x", "base_url=http://h/v1/chat/completions").endpoint
        == "chat"
    )


def test_the_environment_may_name_the_server(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    assert parse_openai("openai/x").base_url == "http://localhost:1/v1"
    assert (
        parse_openai("openai/x", "base_url=http://localhost:2/v1").base_url
        == "http://localhost:2/v1"
    )


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("openai/", "", "no model named; the form is openai/NAME"),
        ("openai", "", "no model named"),
        ("openai/x", "base_ulr=http://h/v1", "did you mean 'base_url'"),
        ("openai/x", "dtype=float32", "unknown key 'dtype'; allowed: base_url"),
        ("openai/x", "base_url=localhost:8000", "allowed is an address such as"),
        ("openai/x", "base_url=ftp://h/v1", "allowed is an address such as"),
        ("openai/x", "endpoint=chats", "allowed: chat or completions"),
        (
            "openai/x",
            "base_url=http://h/v1/completions,endpoint=chat",
            "names the endpoint completions",
        ),
        (
            "openai/x",
            "base_url=http://h:99999/v1",
            "base_url 'http://h:99999/v1'; allowed is an address",
        ),
        (
            "openai/x",
            "base_url=http://h:" + "9" * 5000 + "/v1",
            "...'; allowed is an address such as",
        ),
        ("openai/x", "base_url=http://[::1/v1", "allowed is an address such as"),
        ("openai/x", "timeout=0", "timeout '0'"),
        ("openai/x", "timeout=inf", "timeout 'inf'"),
        (
            "openai/x",
            "timeout=86401",
            "timeout '86401'; allowed is a number above 0 and up to 86,400, of",
        ),
        ("openai/x", "timeout=nan", "timeout 'nan'"),
        ("openai/x", "max_retries=1001", "allowed is a whole number from 0 to 1,000"),
        ("openai/x", "num_concurrent=10001", "from 1 to 10,000, of requests"),
        ("openai/x", f"seed={2**63}", "from 0 to 9,223,372,036,854,775,807"),
        ("openai/x", "seed=" + "9" * 5000, "seed '" + "9" * 57 + "...'; allowed"),
        (
            "openai/x",
            "max_thinking_tokens=100000001",
            "from 1 to 100,000,000, of tokens",
        ),
        ("openai/x", "timeout=soon", "timeout 'soon'"),
        ("openai/x", "max_tokens_total=0", "from 1 to 1,000,000,000,000, of tokens"),
        *(
            ("openai/x", f"max_tokens_total={n}", f"max_tokens_total '{n}'")
            for n in ("-1", "1e6", "nan", "9" * 13)
        ),
        (
            "openai/x",
            "max_cost=0",
            "max_cost '0'; allowed is a number above 0 and up to 1,000,000,000",
        ),
        *(
            ("openai/x", f"max_cost={n}", f"max_cost '{n}'")
            for n in ("-1", "nan", "inf", "1e10", "5€")
        ),
        ("openai/x", "max_retries=-1", "max_retries '-1'"),
        ("openai/x", "seed=x", "seed 'x'"),
        ("openai/x", "max_concurrent=0", "max_concurrent '0'"),
        ("openai/x", "max_concurrent=2,num_concurrent=2", "one thing"),
    ],
)
def test_what_is_wrong_is_said(text, args, said):
    with pytest.raises(ModelError, match=said):
        parse_openai(text, args)


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
        ("openai/x", "seed=1, header={sk-secret", "header: { is not closed by }"),
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
