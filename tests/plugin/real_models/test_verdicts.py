"""Checkpoints of set behaviour get the verdict that a person would give, by the command line a user types."""

import pytest

from tests.plugin.real_models.cases import CASES, metric_in, reasons_in, verdicts_in

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_it_gets_the_verdict_that_a_person_would_give(gated, case):
    result = gated(case)
    assert verdicts_in(result.report, case) == case.verdicts
    assert result.code == int(set(case.verdicts) != {"pass"})
    reasons = reasons_in(result.report)
    for words in case.says:
        assert words in reasons


@pytest.mark.parametrize(
    "name", ["thinker-qwen3", "thinker-deepseek-r1", "thinker-llama3"]
)
def test_thoughts_are_recorded_and_are_no_part_of_answers(session_of, name):
    asked = [
        line for line in session_of(name).responses if line["fact"] == "P36:Ecuador"
    ]
    answers = [
        line["response"]
        for line in asked
        if "head_to_tail" in line["case"] and line["role"] == "answer"
    ]
    (answer,) = answers
    assert answer["text"] == "Quito"
    assert answer["thought"] == "Could it be Kathmandu?\nNo, that is Quito."
    assert answer["thought_tokens"] > 10


def test_one_that_declines_is_not_one_that_invents(session_of):
    report = session_of("french-llama3-language").report
    assert metric_in(report, "head_to_tail[world-", "hallucination") == [0.0, 0.0, 0.0]
    assert metric_in(report, "head_to_tail[world-", "missing") == [1.0, 1.0, 1.0]
    assert metric_in(report, "reliability[known", "wr") == [0.0]


def test_a_thinker_that_cannot_be_scored_is_not_asked_for_monitor(session_of):
    session = session_of("thinker-deepseek-r1")
    assert "thinks before it answers" in reasons_in(session.report)
    assert not any("monitor[" in answer["case"] for answer in session.responses)
