"""Sessions with a scripted model, as docs/scripted-models.md describes them."""

import json

import pytest

from tests.plugin.conftest import KNOWN, KNOWS, MODEL, ONE, SCRIPTS, script
from tests.reported import comparable

SUITE = ONE + "  gates: {accuracy: {min: 0.5}}\n"


@pytest.fixture
def answers(pytester):
    def write(text, name="answers.jsonl"):
        (pytester.path / name).write_text(text, "utf-8")
        return f"--kb-model=scripted/{name}"

    return write


@pytest.mark.slow
def test_a_script_loads_no_torch_and_is_named_in_the_report(
    pytester, mini_suite, report
):
    mini_suite()
    pytester.makeconftest(
        """
        import sys

        def pytest_unconfigure():
            heavy = {"torch", "transformers", "safetensors", "openai"} & set(sys.modules)
            open("heavy", "w").write(repr(sorted(heavy)))
        """
    )
    result = pytester.runpytest_subprocess(MODEL, "suites")
    assert result.ret == pytest.ExitCode.OK
    assert (pytester.path / "heavy").read_text() == "[]"
    result.stdout.fnmatch_lines(
        ["PASSED: 9 passed", "model    scripted/knows.jsonl (float32, cpu)"]
    )
    assert "model loaded" not in result.stdout.str()
    model = report()["model"]
    assert (model["spec"], model["backend"], model["parameters"]) == (
        KNOWS,
        "scripted",
        0,
    )


def test_a_script_judges(pytester, mini_suite, report, answers):
    mini_suite(SUITE)
    # The model is right about all capitals, in words that the rules do not find equal.
    model = answers(script(KNOWN, text="A city that everybody knows"))
    judge = json.dumps(
        {
            "pattern": r'"What is the capital of France\?".*\nVerdict:$',
            "text": "incorrect",
        }
    )
    judge += '\n{"default": {"text": "correct"}}\n'
    answers(judge, "judge.jsonl")
    result = pytester.runpytest(
        model, "suites", "--kb-judge=scripted/judge.jsonl", "-k", "tail]"
    )
    assert result.ret == pytest.ExitCode.OK
    (case,) = report()["cases"]
    assert (case["metrics"]["accuracy_rules"]["value"], case["n"]) == (0.0, 7)
    assert case["metrics"]["accuracy"]["value"] == 1.0
    assert [helper["spec"] for helper in report()["helpers"]] == [
        "scripted/judge.jsonl"
    ]


@pytest.mark.slow
def test_a_run_that_a_scripted_crash_ended_goes_on_without_it(
    pytester, mini_suite, report, answers
):
    mini_suite(SUITE)
    assert pytester.runpytest(MODEL, "suites", "--kb-use-cache=off").ret == 0
    whole = comparable(report())
    crash = json.dumps({"contains": "capital of Japan", "crash": True}) + "\n"
    model = answers(crash + SCRIPTS["knows"], "knows.jsonl")
    assert pytester.runpytest_subprocess(model, "suites", "-p", "no:randomly").ret == -9
    answers(SCRIPTS["knows"], "knows.jsonl")
    result = pytester.runpytest(model, "suites")
    assert result.ret == 0
    assert comparable(report()) == whole
    result.stdout.fnmatch_lines(["* of 12 answers reused from .kbrel-cache"])
    assert 0 < int(report()["environment"]["answers_reused"]) < 12


def test_a_warning_of_every_product_is_left_out(pytester):
    text = "MatMul8bitLt: inputs will be cast from torch.bfloat16 to float16"
    pytester.makepyfile(
        f"""
        import warnings

        def test_it():
            warnings.warn({text!r})
        """
    )
    assert pytester.runpytest().parseoutcomes() == {"passed": 1}
