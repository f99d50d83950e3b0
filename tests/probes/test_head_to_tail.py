from __future__ import annotations

import pytest

from pytest_kbrel.probes import run_case
from pytest_kbrel.records import HeadToTailSettings
from tests.probes.conftest import FRANCE, Oracle, make_case


@pytest.mark.parametrize(
    ("answer", "label", "values"),
    [
        ("Paris", "correct", (1, 0, 1, 1)),
        ("the City of Paris", "correct", (1, 0, 1, 1)),
        ("Paris Lyon", "wrong", (0, 0, 2 / 3, 2 / 3)),
        ("Lyon", "wrong", (0, 0, 0, 0)),
        ("Unsure.", "uninformative", (0, 1, 0, 0)),
        ("", "uninformative", (0, 1, 0, 0)),
        # A soft score for a missing answer would break A + H + M = 1.
        ("I am not sure, Paris", "uninformative", (0, 1, 0, 0)),
    ],
)
def test_an_answer_is_right_wrong_or_missing(answer, label, values):
    oracle = Oracle(say=lambda request: answer)
    table = run_case(make_case(HeadToTailSettings(), FRANCE), oracle, oracle.keep).table
    assert table.columns == ("correct", "missing", "f1", "rouge_l")
    assert table.rows[0].label == label
    assert table.rows[0].values == pytest.approx(values)


def test_few_shot_shows_one_answer_and_one_unsure_and_zero_shot_none():
    few, zero = Oracle(), Oracle()
    run_case(make_case(HeadToTailSettings(), FRANCE), few, few.keep)
    run_case(make_case(HeadToTailSettings(prompt="zero-shot"), FRANCE), zero, zero.keep)
    assert few.rounds[0][0].prompt.count("Answer:") == 3
    assert "\nAnswer: unsure\n" in few.rounds[0][0].prompt
    assert zero.rounds[0][0].prompt.count("Answer:") == 1
    assert few.rounds[0][0].prompt.endswith("Question: What is the capital of France?\nAnswer:")
