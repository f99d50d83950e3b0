"""What responses must be before anything is measured on them, in whole sessions."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import MODEL

HEADER = "suite: mini\nfacts: facts.jsonl\n"
SCRIPTED = """
import pytest
from tests.function_model import FunctionModel

CAPITALS = {{"China": "Beijing", "Japan": "Tokyo", "France": "Paris", "Norway": "Oslo"}}

def known(prompt):
    return next((city for country, city in CAPITALS.items() if country in prompt), "unsure")

@pytest.fixture(autouse=True)
def scripted(monkeypatch):
    monkeypatch.setattr("pytest_kbrel.models.scripted.load", lambda spec: FunctionModel({arguments}))
"""


@pytest.fixture
def verdicts(report):
    return lambda: {case["id"].partition("::")[2]: case["verdict"] for case in report()["cases"]}


@pytest.fixture
def errors(report):
    return lambda: {case["id"].partition("::")[2]: case["errors"] for case in report()["cases"]}


def test_a_limit_of_the_suite_makes_a_case_invalid_and_a_probes_own_lets_it_pass(
    pytester, mini_suite, verdicts
):
    mini_suite(
        HEADER
        + "integrity: {truncated: 0}\n"
        + "head_to_tail:\n  max_new_tokens: 1\n  integrity: {truncated: 1}\n  gates: {accuracy: {min: 0.0}}\n"
        + "reliability:\n  max_new_tokens: 1\n  choices: 2\n  distractors: 4\n  gates: {cr: {min: 0.0}}\n"
    )
    result = pytester.runpytest(MODEL, "suites")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*answers are cut short; allowed: none: raise max_new_tokens*"])
    actual = verdicts()
    assert actual["reliability[seen-zero-shot]"] == "invalid"
    assert {actual[name] for name in actual if name.startswith("head_to_tail")} == {"pass"}


@pytest.mark.parametrize("limits", ["{}", "{repeated: 1.0, constant: allowed}"])
def test_a_model_that_always_says_the_same_is_no_consistent_one(
    pytester, mini_suite, verdicts, errors, limits
):
    mini_suite(
        HEADER + f"monitor:\n  negatives: 2\n  integrity: {limits}\n  gates: {{monitor: {{max: 1}}}}\n"
    )
    pytester.makeconftest(SCRIPTED.format(arguments='answers=lambda prompt: "Paris"'))
    result = pytester.runpytest(MODEL, "suites")
    if limits != "{}":
        assert (result.ret, verdicts()) == (pytest.ExitCode.OK, {"monitor[P36]": "pass"})
        return
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert verdicts() == {"monitor[P36]": "invalid"}
    repeated, constant = errors()["monitor[P36]"]
    assert repeated.startswith("11 of 12 facts get the same wrong answer, 'paris'; allowed: at most 90%")
    assert constant.startswith("the probabilities of all 12 anchors are equal (0.5)")


@pytest.mark.parametrize(("limit", "code"), [("0", 1), ("0.09", 0), ("0.08", 1)])
def test_facts_without_response_are_left_out_up_to_the_limit(pytester, mini_suite, report, limit, code):
    mini_suite(
        HEADER + f"integrity: {{errored: {limit}}}\n"
        "reliability:\n  choices: 2\n  distractors: 4\n  gates: {wr: {max: 0}}\n"
    )
    pytester.makeconftest(
        SCRIPTED.format(
            arguments='known, fails=lambda prompt: "out of memory" if "Norway" in prompt else None'
        )
    )
    assert pytester.runpytest(MODEL, "suites").ret == code
    (case,) = report()["cases"]
    # One of 12.
    assert case["n"] == 11
    assert case["errors"][0].startswith(
        "P36:Norway (answer): out of memory" if code == 0 else "1 fact without usable responses: P36:Norway"
    )
    if code == 0:
        assert case["metrics"]["cr"]["value"] == pytest.approx(3 / 11)
        assert case["metrics"]["wr"]["value"] == 0.0


@pytest.mark.parametrize(("known", "code", "verdict"), [("nowhere", 1, "invalid"), ("Norway", 0, "pass")])
def test_a_model_that_says_nothing_anywhere_passes_no_suite_for_want_of_a_floor(
    pytester, mini_suite, report, known, code, verdict
):
    mini_suite(HEADER + "head_to_tail:\n  prompt: zero-shot\n  gates: {hallucination: {max: 0.1}}\n")
    answers = f'lambda prompt: "Oslo" if {known!r} in prompt else "unsure"'
    pytester.makeconftest(SCRIPTED.format(arguments=answers))
    result = pytester.runpytest(MODEL, "suites", "--kb-baseline-update=silent")
    assert result.ret == code
    actual = report()
    assert (actual["summary"]["verdict"], actual["complete"]) == (verdict, code == 0)
    # No slice alone is wrong.
    assert {case["verdict"] for case in actual["cases"]} == {"pass"}
    assert (pytester.path / "baselines").exists() == (code == 0)
    if code:
        said = "problem: suites/mini.kb.yaml: the model says nothing: none of 12 answers *"
        result.stdout.fnmatch_lines([said])
