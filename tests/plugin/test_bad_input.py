from __future__ import annotations

import json
import shutil

import pytest

from pytest_kbrel.reference import resolve
from tests.plugin.conftest import GATED, KNOWS

ONE_SLICE = GATED + "  slices: [places-head]\n"


@pytest.fixture
def checkpoint(pytester):
    """A copy of the embedded checkpoint that a test may break."""
    folder, _ = resolve("")
    return shutil.copytree(folder, pytester.path / "checkpoint")


def gate(pytester, model, *more):
    return pytester.runpytest(f"--kb-model={model}", "suites", *more)


def no_traceback(result):
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("./nowhere", "*nowhere*"),
        ("suites", "*config.json*"),
        ("reference:overconfidant", "*overconfidant*did you mean 'overconfident'*"),
        ("openai/gpt", "openai/gpt: *OPENAI_API_KEY holds no key*base_url*"),
        ("openai/", "openai/: no model named*openai/NAME*"),
        ("vllm/gpt", "gpt: no such folder*a hub id org/name*"),
    ],
)
def test_what_is_no_model_is_a_usage_error(pytester, mini_suite, model, said):
    mini_suite(ONE_SLICE)
    result = gate(pytester, model)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
    no_traceback(result)


def test_nan_weights_are_named_once_and_nothing_passes(pytester, mini_suite, checkpoint):
    from safetensors.torch import load_file, save_file

    weights = load_file(checkpoint / "model.safetensors")
    name = sorted(weights)[0]
    weights[name].view(-1)[0] = float("nan")
    save_file(weights, checkpoint / "model.safetensors", metadata={"format": "pt"})
    mini_suite(ONE_SLICE)
    result = gate(pytester, "./checkpoint")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(failed=1)
    assert result.parseoutcomes().get("passed", 0) == 0
    result.stdout.fnmatch_lines([f"*{name}*"])
    no_traceback(result)


def test_a_tokenizer_that_does_not_fit_is_an_error(pytester, mini_suite, checkpoint):
    path = checkpoint / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = tokenizer["model"]["vocab"]
    highest = max(vocabulary.values())
    tokenizer["added_tokens"].append(
        {
            "id": highest + 5000,
            "content": "<far>",
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": False,
        }
    )
    vocabulary["<far>"] = highest + 5000
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    mini_suite(ONE_SLICE)
    result = gate(pytester, "./checkpoint")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*tokenizer*"])
    no_traceback(result)


@pytest.mark.parametrize("content", ["{", "[]", '{"some": "other file"}'])
def test_a_foreign_baseline_is_a_usage_error(pytester, mini_suite, content):
    mini_suite(ONE_SLICE)
    folder = pytester.mkdir("foreign")
    (folder / "baseline.json").write_text(content)
    result = gate(pytester, KNOWS, "--kb-baseline=./foreign")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *foreign*"])
    no_traceback(result)


def test_a_missing_baseline_is_a_usage_error_that_names_those_there_are(pytester, mini_suite):
    mini_suite(ONE_SLICE)
    result = gate(pytester, KNOWS, "--kb-baseline=referense")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *referense*"])


def test_a_model_that_answers_nothing_never_passes(pytester, mini_suite, report):
    mini_suite(ONE_SLICE)
    (pytester.path / "mute.yaml").write_text("default: {text: ''}")
    result = gate(pytester, "scripted/mute.yaml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert [case["verdict"] for case in report()["cases"]] == ["invalid"]
    result.stdout.fnmatch_lines(["*empty*"])


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--kb-limit=0", "*--kb-limit*'0'*"),
        ("--kb-limit=2.5", "*--kb-limit*'2.5'*"),
        ("--kb-seed=x", "*--kb-seed*'x'*"),
        ("--kb-batch-size=big", "*--kb-batch-size*'big'*"),
        ("--kb-inconclusive=fial", "*--kb-inconclusive*'fial'*did you mean 'fail'*"),
        ("--kb-device=cuda:9", "device 'cuda:9' is not available: allowed on this machine: auto, cpu*"),
        ("--kb-judge=oracle", "--kb-judge: found 'oracle'; allowed: rules, openai/NAME*reference"),
        ("--kb-model-args=dtyp=float32", "*dtyp*did you mean 'dtype'*"),
        (
            "--kb-model-args=attn_implementation=flash_attention_2",
            "model-args: attn_implementation=flash_attention_2 needs the package flash_attn: *flash-attn",
        ),
    ],
)
def test_a_wrong_setting_is_a_usage_error(pytester, mini_suite, flag, said):
    mini_suite(ONE_SLICE)
    result = gate(pytester, "reference", flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])
    no_traceback(result)


def test_a_missing_extra_is_a_usage_error_that_names_it(pytester, mini_suite, monkeypatch):

    monkeypatch.setattr("pytest_kbrel.models.hf.backend.find_spec", lambda name: None)
    mini_suite(ONE_SLICE)
    result = gate(pytester, "reference")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['ERROR: *torch*pip install "pytest-kbrel?hf?"'])
