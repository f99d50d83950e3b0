"""Checks of the responses before anything is measured, and the verdicts on models that know nothing."""

import dataclasses
import datetime
from pathlib import Path

import pytest

from pytest_kbrel.gates import (
    Comparison,
    Outcomes,
    decide_aggregate,
    decide_case,
    unsound_suites,
)
from pytest_kbrel.probes import run_case
from pytest_kbrel.probes.base import question_of
from pytest_kbrel.suites import load_suite
from tests.function_model import FunctionModel, answers_of
from tests.plugin.conftest import MODEL

HEADER = "suite: mini\nfacts: facts.jsonl\n"
SCRIPTED = """
import pytest
from tests.function_model import FunctionModel, answers_of

CAPITALS = {{"China": "Beijing", "Japan": "Tokyo", "France": "Paris", "Norway": "Oslo"}}

def known(prompt):
    return next((city for country, city in CAPITALS.items() if country in prompt), "unsure")

@pytest.fixture(autouse=True)
def scripted(monkeypatch):
    monkeypatch.setattr("pytest_kbrel.models.scripted.load", lambda spec: FunctionModel({arguments}))
"""


@pytest.fixture
def verdicts(report):
    return lambda: {
        case["id"].partition("::")[2]: case["verdict"] for case in report()["cases"]
    }


@pytest.fixture
def errors(report):
    return lambda: {
        case["id"].partition("::")[2]: case["errors"] for case in report()["cases"]
    }


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
    result.stdout.fnmatch_lines(
        ["*answers are cut short; allowed: none: raise max_new_tokens*"]
    )
    actual = verdicts()
    assert actual["reliability[known]"] == "invalid"
    assert {actual[name] for name in actual if name.startswith("head_to_tail")} == {
        "pass"
    }


@pytest.mark.parametrize(
    ("country", "code", "verdict"), [("nowhere", 1, "invalid"), ("Norway", 0, "pass")]
)
def test_a_model_that_says_nothing_anywhere_passes_no_suite_for_want_of_a_floor(
    pytester, mini_suite, report, country, code, verdict
):
    mini_suite(
        HEADER
        + "head_to_tail:\n  prompt: zero-shot\n  gates: {hallucination: {max: 0.1}}\n"
    )
    answers = f'lambda prompt: "Oslo" if {country!r} in prompt else "unsure"'
    pytester.makeconftest(SCRIPTED.format(arguments=answers))
    result = pytester.runpytest(MODEL, "suites", "--kb-baseline-update=silent")
    assert result.ret == code
    actual = report()
    assert (actual["summary"]["verdict"], actual["complete"]) == (verdict, code == 0)
    # No slice alone is wrong.
    assert {case["verdict"] for case in actual["cases"]} == {"pass"}
    assert (pytester.path / "baselines").exists() == (code == 0)
    if code:
        message = (
            "problem: suites/mini.kb.yaml: the model says nothing: none of 12 answers *"
        )
        result.stdout.fnmatch_lines([message])


WORLD = Path(__file__).parents[2] / "suites" / "world.kb.yaml"
# So many facts a slice: from 10 on, all that is looked at in responses is.
LIMIT = 12


@pytest.fixture(scope="module")
def world():
    actual = load_suite(
        WORLD,
        nodeid_path="world.kb.yaml",
        limit=LIMIT,
        today=datetime.date(2026, 12, 1),
    )
    unseen = actual.cases[-1]
    # The limit is for seen facts.
    shorter = dataclasses.replace(unseen, facts=unseen.facts[:LIMIT])
    return dataclasses.replace(actual, cases=(*actual.cases[:-1], shorter))


def sure(prompt, continuation):
    """As of a model that gives right answers much, which differs from question to question."""
    return 0.6 + len(prompt) % 40 / 200


def question(prompt):
    """Return the last question of a prompt, as an echo would have it."""
    questions = [
        line
        for line in prompt.splitlines()
        if line.strip() and not line.startswith("Answer")
    ]
    return questions[-1].removeprefix("Question: ")


def decided_case(case, model):
    actual = run_case(case, answers_of(model), lambda exchanges: None)
    outcomes = Outcomes(table=actual.table, errors=actual.errors)
    return decide_case(case, outcomes, Comparison())


def gated(suite, answers, probability=sure):
    """Decide every case of the suite, those over several too, without a baseline."""
    model = FunctionModel(answers, probability)
    results = [decided_case(case, model) for case in suite.cases]
    over = [
        decide_aggregate(aggregate, results, Comparison())
        for aggregate in suite.aggregates
    ]
    return {result.id: result for result in (*results, *over)}


def test_a_model_that_knows_its_facts_gets_no_errors(world):
    answers = {
        question_of(case, fact, frame): str(fact.object)
        for case in world.cases
        for fact in case.facts
        for frame in range(
            len(case.relations[0].frames) if case.probe == "monitor" else 1
        )
        if fact.object
    }

    def knows(prompt):
        parts = question(prompt).split(". ")
        # Behind a context, which may have a full stop in it.
        candidates = (". ".join(parts[start:]) for start in range(len(parts)))
        return next((answers[one] for one in candidates if one in answers), "unsure")

    actual = gated(world, knows)
    assert {
        name: result.errors for name, result in actual.items() if result.errors
    } == {}
    assert {result.verdict for result in actual.values()} <= {"pass", "no baseline"}
    assert list(unsound_suites(actual.values())) == []
