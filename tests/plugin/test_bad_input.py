"""Sessions with a model, a baseline or a setting that cannot be used."""

import shutil

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.reference import resolve
from tests.plugin.conftest import GATED, MODEL

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


def test_a_checkpoint_without_tokenizer_says_what_is_missing(
    pytester, mini_suite, checkpoint
):
    for file in checkpoint.glob("tokenizer*"):
        file.unlink()
    mini_suite(ONE_SLICE)
    result = gate(pytester, "./checkpoint")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(
        ["./checkpoint: the tokenizer is missing or empty; tokenizer.json or *"]
    )
    no_traceback(result)


def test_a_missing_extra_is_a_usage_error_that_names_it(
    pytester, mini_suite, monkeypatch
):

    monkeypatch.setattr("pytest_kbrel.models.hf.backend.find_spec", lambda name: None)
    mini_suite(ONE_SLICE)
    result = gate(pytester, "reference")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['ERROR: *torch*pip install "pytest-kbrel?hf?"'])


WHY = "./checkpoint: the weights hold NaN"


def test_the_error_of_a_model_that_cannot_be_loaded_is_printed_once(
    pytester, mini_suite, report, monkeypatch
):
    from pytest_kbrel.models import scripted

    def broken(spec):
        raise ModelError(WHY)

    monkeypatch.setattr(scripted, "load", broken)
    mini_suite(GATED)
    result = pytester.runpytest(MODEL, "suites", "--junitxml=junit.xml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(failed=1)
    assert result.stdout.str().count(f"\n{WHY}\n") == 1
    result.stdout.fnmatch_lines(
        ["*Exit: kbrel: no further case is begun, since all would fail of the same*"]
    )
    actual = report()
    cases = [case for case in actual["cases"] if not case["aggregate"]]
    assert sorted(case["verdict"] for case in cases) == [
        "invalid",
        "not run",
        "not run",
    ]
    assert f"no case can be decided: {WHY}" in actual["problems"]
    assert actual["exit_status"] == 4
    assert (pytester.path / "junit.xml").read_text().count("<failure") == 1


def test_a_model_to_compare_with_and_a_judge_are_named_by_their_flags(
    pytester, mini_suite, monkeypatch
):
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


SECRET = "sk-very-secret"


def repeats(result):
    return SECRET in result.stdout.str() + result.stderr.str()


def test_a_key_in_the_ini_file_is_refused_though_no_suite_is_in_sight(pytester):
    pytester.makeini(f"[pytest]\nkb_model = openai/x,api_key={SECRET}\n")
    pytester.makepyfile("def test_it(): pass")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not repeats(result)
