"""What each setting accepts and refuses, without a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.plugin import options
from pytest_kbrel.plugin.options import find_suites
from pytest_kbrel.plugin.settings import read_settings
from tests.stub_config import StubConfig


@pytest.fixture
def given(tmp_path, monkeypatch):
    for flag in options.FLAGS:
        monkeypatch.delenv(flag.environment, raising=False)
    return lambda **settings: StubConfig(tmp_path, **settings)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("model_args", "dtype=float32", "dtype=float32"),
        ("batch_size", "1", "1"),
        ("apply_chat_template", True, True),
        *(
            ("apply_chat_template", text, True)
            for text in ("1", "true", "yes", "on", "TRUE", "Yes", "oN")
        ),
        *(
            ("apply_chat_template", text, False)
            for text in ("", "0", "false", "no", "off", "FALSE", "No")
        ),
        ("plan", True, True),
        ("gpus_per_worker", "8", 8),
        ("judge_args", "seed=1", "seed=1"),
        ("baseline_model", "m", "m"),
        ("baseline_update", "next", "next"),
        ("inconclusive", "fail", "fail"),
        ("limit", "1", 1),
        ("top_k", "0", 0),
        ("top_k", "64", 64),
        ("seed", "-3", -3),
        ("prices", "0,0", (0.0, 0.0)),
    ],
)
def test_what_a_setting_reads(given, name, text, value):
    result = getattr(read_settings(given(**{name: text})), name)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("batch_size", text) for text in ("0", "-1", "1.5", "Auto", "²", "")),
        *(("attribute", text) for text in ("-1", "1.5", "x", "²", "")),
        *(("inconclusive", text) for text in ("Warn", "FAIL", "pass", "")),
        *(("gpus_per_worker", text) for text in ("0", "-1", "1.5", "all", "1025")),
        *(("limit", text) for text in ("0", "0.0", "-1", "1.5", "x", "²")),
        *(("seed", text) for text in ("1.5", "x", "1e3")),
        *(
            ("prices", text)
            for text in (
                "1",
                "1,2,3",
                "-1,2",
                "1,-2",
                "nan,1",
                "1,nan",
                "inf,1",
                "1,inf",
                "a,b",
            )
        ),
        *(("batch_size", text) for text in ("1000000001", "0x10", "1_000")),
        *(("attribute", text) for text in ("1000001", "1e3")),
        *(("top_k", text) for text in ("65", "-1", "1.5", "x", "")),
        *(("limit", text) for text in ("1000000001", "1e400", "nan", "1:30")),
        *(("seed", text) for text in (str(2**63), str(-(2**63) - 1), "1_0")),
        *(("prices", text) for text in ("1000001,1", "1e400,1", "1_0,1")),
        *(("apply_chat_template", text) for text in ("2", "y", "truthy")),
    ],
)
def test_what_a_setting_refuses(given, name, text):
    with pytest.raises(
        pytest.UsageError, match=rf"(--kb-|KB_).*: found {text!r}; allowed: "
    ):
        read_settings(given(**{name: text}))


def test_the_line_goes_before_the_environment_and_that_before_the_ini_file(
    given, monkeypatch
):
    ini = {"kb_device": "from-ini"}
    assert read_settings(given(ini=ini)).device == "from-ini"
    monkeypatch.setenv("KB_DEVICE", "")
    assert read_settings(given(ini=ini)).device == "from-ini"
    monkeypatch.setenv("KB_DEVICE", "from-environment")
    assert read_settings(given(ini=ini)).device == "from-environment"
    assert read_settings(given(ini=ini, device="typed")).device == "typed"
    # What is typed is meant, also where it is nothing.
    assert read_settings(given(ini=ini, device="")).device == ""


def test_folders_begin_where_pytest_was_called(given, tmp_path):
    result = read_settings(given(output_path="out", use_cache="OFF"))
    assert (result.output_path, result.use_cache) == (
        tmp_path / "out",
        tmp_path / "OFF",
    )
    result = read_settings(given(output_path="/out", use_cache="~/kept"))
    assert (result.output_path, result.use_cache) == (
        Path("/out"),
        Path.home() / "kept",
    )


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({}, set()),
        ({"baseline": "prod"}, {"no baseline"}),
        ({"baseline": "published/monitor/llama"}, set()),
        ({"inconclusive": "fail"}, {"inconclusive"}),
    ],
)
def test_the_verdicts_that_fail_a_run(given, settings, more):
    assert (
        read_settings(given(**settings)).failing
        == {"fail", "invalid", "not run", "not comparable"} | more
    )


@pytest.mark.parametrize(
    ("environment", "ini", "typed", "name"),
    [
        ({"KB_BASELINE_UPDATE": "of-environment"}, {}, {}, "of-environment"),
        (
            {},
            {"kb_baseline_update": "in-ini"},
            {"baseline_update": "", "baseline": "b"},
            "in-ini",
        ),
        ({}, {}, {"baseline_update": "./here"}, "./here"),
    ],
)
def test_under_which_name_a_run_is_blessed(
    given, tmp_path, monkeypatch, environment, ini, typed, name
):
    (tmp_path / "here").mkdir()
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    assert read_settings(given(ini=ini, **typed)).baseline_update == name


def test_a_typed_model_goes_before_a_record_that_is_not_typed(given, monkeypatch):
    monkeypatch.setenv("KB_FROM_RUN", "run")
    assert read_settings(given(model="m")).from_run is None
    for config in (given(), given(from_run="run"), given(from_run="run", model="m")):
        # That folder is read, and is not there.
        with pytest.raises(pytest.UsageError, match="--kb-from-run"):
            read_settings(config)
    with pytest.raises(
        pytest.UsageError, match=f"^--kb-from-run: {Path.home() / 'run'}: is not there"
    ):
        read_settings(given(from_run="~/run"))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "collectonly",
            "showfixtures",
            "show_fixtures_per_test",
            "markers",
            "cacheshow",
            "setupplan",
        ),
        "setuponly",
    ],
)
def test_a_run_that_only_shows_things(given, name):
    assert options.is_listing_only(given(others={name: True}))
    assert not options.is_listing_only(given(others={name: False, "verbose": 1}))


def test_suites_are_seen_two_levels_deep_and_named_once(given, tmp_path):
    for name in (
        "b.kb.yaml",
        "a.kb.yaml",
        "x/c.kb.yaml",
        "x/y/d.kb.yaml",
        "e.kb.yml",
        "x/f.yaml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert find_suites(given(args=["."])) == ["a.kb.yaml", "b.kb.yaml", "x/c.kb.yaml"]
    assert find_suites(given(args=["x", "x/c.kb.yaml::monitor[P36]"])) == [
        "x/c.kb.yaml",
        "x/y/d.kb.yaml",
    ]
    # A name that no file has is the user's to hear of.
    assert find_suites(given(args=["gone.kb.yaml", "e.kb.yml"])) == ["gone.kb.yaml"]


def test_flags_of_the_command_line_have_their_own_shapes(pytester):
    switches = ("plan", "apply_chat_template", "junit_properties")
    config = pytester.parseconfig(
        *(f"--kb-{name.replace('_', '-')}" for name in switches), "--kb-seed", "0", "x"
    )
    assert config.args == ["x"]
    result = read_settings(config)
    assert [getattr(result, name) for name in switches] == [True] * 3
    assert result.seed == 0
    none = pytester.parseconfig("x")
    for flag in options.FLAGS:
        assert not options.is_explicit(none, flag.name)
    # The only one that may stand without a value.
    bare = pytester.parseconfig("x", "--kb-baseline=b", "--kb-baseline-update")
    assert read_settings(bare).baseline_update == "b"
    for name in ("model", "limit", "use_cache"):
        with pytest.raises(pytest.UsageError, match="expected one argument"):
            pytester.parseconfig("x", f"--kb-{name.replace('_', '-')}")


@pytest.mark.parametrize("name", ["model", "judge", "baseline_model"])
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("openai/x,api_key=sk-secret", "api_key"),
        ("openai/x, API-KEY = sk-secret", "API-KEY"),
        ("openai/x,base_url=http://h/v1?token=sk-secret", "token"),
        ("openai/x,base_url=http://me:sk-secret@h/v1", "a password in an address"),
    ],
)
def test_a_key_in_a_models_name_is_refused_and_not_repeated(
    given, monkeypatch, name, text, result
):
    flag = f"--kb-{name.replace('_', '-')}"
    with pytest.raises(
        pytest.UsageError, match=f"^{flag}: found {result} in it, not repeated"
    ) as caught:
        read_settings(given(**{name: text}))
    assert "secret" not in str(caught.value)
    with pytest.raises(pytest.UsageError):
        read_settings(given(ini={f"kb_{name}": text}))
    monkeypatch.setenv(f"KB_{name.upper()}", text)
    with pytest.raises(pytest.UsageError):
        read_settings(given())


def test_a_models_name_and_arguments_without_a_key_are_taken(given):
    text = "openai/x,base_url=http://h/v1,api_key_env=MY_KEY,think_end_token=</t>"
    assert read_settings(given(baseline_model=text)).baseline_model == text
