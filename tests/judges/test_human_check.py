"""The script that holds the rules against humans reads three forms of files and halves them by question."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "human_check.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("human_check", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_question_is_in_one_half_however_it_is_written(script):
    questions = [f"Who wrote book {number}?" for number in range(200)]
    halves = [script.half_of(question, 0) for question in questions]
    assert 70 < halves.count("first") < 130
    assert set(halves) == {"first", "second"}
    assert halves == [
        script.half_of(question.lower().rstrip("?"), 0) for question in questions
    ]
    assert halves != [script.half_of(question, 1) for question in questions]


def test_the_shares_have_intervals(script):
    result = script.Agreement(
        {(True, "correct"): 8, (True, "wrong"): 2, (False, "correct"): 1}
    )
    # Wilson's intervals of 8 of 11, 1 of 1 and 2 of 10.
    assert script.intervals(result) == (
        "95 % intervals: agreement 0.727 [0.434, 0.903], wrong accepted 1.000 [0.207, 1.000], "
        "right refused 0.200 [0.057, 0.510]"
    )
