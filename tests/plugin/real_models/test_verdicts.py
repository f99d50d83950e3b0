"""Checkpoints of set behaviour get the verdict that a person would give, by the command line a user types."""

import pytest

from tests.plugin.real_models.cases import (
    CASES,
    UNSCORED,
    metric_in,
    reasons_in,
    verdicts_in,
)
from tests.plugin.real_models.checkpoints import make_checkpoint
from tests.plugin.real_models.world import write_suite

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_it_gets_the_verdict_that_a_person_would_give(
    pytester, monkeypatch, report, responses, case
):
    monkeypatch.setenv("COLUMNS", "80")
    make_checkpoint(pytester.path / case.name, case.manner, case.shape)
    write_suite(pytester.path / "suites", head=case.suite)
    code = pytester.runpytest("suites", *case.flags).ret
    assert verdicts_in(report(), case) == case.verdicts
    assert code == int(set(case.verdicts) != {"pass"})
    reasons = reasons_in(report())
    for words in case.says:
        assert words in reasons
    if UNSCORED in case.says:
        # It is not asked for what cannot be measured.
        assert not any("monitor[" in answer["case"] for answer in responses())
    if case.manner == "thinker" and not case.args:
        thought_is_no_part_of_the_answer(responses())
    if case.manner == "french":
        # One that declines is not one that invents.
        slices = "head_to_tail[world-"
        assert metric_in(report(), slices, "hallucination") == [0.0, 0.0, 0.0]
        assert metric_in(report(), slices, "missing") == [1.0, 1.0, 1.0]
        assert metric_in(report(), "reliability[known", "wr") == [0.0]


def thought_is_no_part_of_the_answer(responses):
    (answer,) = (
        line["response"]
        for line in responses
        if line["fact"] == "P36:Ecuador"
        and "head_to_tail" in line["case"]
        and line["role"] == "answer"
    )
    assert answer["text"] == "Quito"
    assert answer["thought"] == "Could it be Kathmandu?\nNo, that is Quito."
    assert answer["thought_tokens"] > 10
