"""What each setting accepts and refuses, without a session."""

import re
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
    ("name", "texts"),
    [
        ("batch_size", ["0", "1.5", "Auto", "²", "", "1000000001", "0x10", "9" * 5000]),
        ("inconclusive", ["Warn", "pass", ""]),
        ("gpus_per_worker", ["0", "1.5", "1025"]),
        ("limit", ["0", "0.0", "-1", "1.5", "²", "1e400", "nan", "1000000001"]),
        ("seed", ["1.5", "x", str(2**63), "1_0"]),
        ("prices", ["1", "1,2,3", "-1,2", "1,nan", "inf,1", "a,b", "1000001,1"]),
        ("top_k", ["65", "-1", ""]),
        ("apply_chat_template", ["2", "truthy"]),
    ],
)
def test_what_a_setting_refuses(given, name, texts):
    for text in texts:
        with pytest.raises(
            pytest.UsageError,
            match=rf"(--kb-|KB_).*: found '{text[:57]}.*'; allowed: ",
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


def test_the_help_begins_with_the_six_flags_of_a_first_gate(pytester):
    text = pytester.runpytest("--help").stdout.str()
    first, rest = text.split("pytest-kbrel: gate")[1].split("pytest-kbrel: further")
    flags = (
        "model model-args apply-chat-template baseline baseline-model baseline-update"
    )
    assert re.findall(r"^  --kb-([a-z-]+)", first, re.M) == flags.split()
    assert len(re.findall(r"^  --kb-", rest, re.M)) == len(options.FLAGS) - 6
