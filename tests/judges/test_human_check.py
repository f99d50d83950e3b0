"""The script that holds the rules against humans reads three forms of files and halves them by question."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "human_check.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("human_check", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_evouna_is_read_without_improper_questions_and_answers_that_nobody_judged(
    script, tmp_path
):
    def row(question, **values):
        return {
            "question": question,
            "golden_answer": "Lima/City of Kings",
            "improper": False,
            **values,
        }

    rows = [
        row("one", answer_x="Lima", judge_x=True, answer_y=None, judge_y=None),
        row("two", answer_x="Quito", judge_x=False, answer_y="Lima", judge_y=None),
        row("three", answer_x="Lima", judge_x=True, answer_y="Lima", judge_y=True)
        | {"improper": True},
        row("four", answer_x="Lima", judge_x=True, answer_y="Cusco", judge_y=False)
        | {"golden_answer": None},
        row("five", answer_x="", judge_x=False, answer_y="Cusco", judge_y=False),
    ]
    path = tmp_path / "NQ.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    golds = ("Lima", "City of Kings")
    assert [tuple(result) for result in script.read(path)] == [
        ("x", "one", golds, "Lima", True),
        ("x", "two", golds, "Quito", False),
        ("y", "five", golds, "Cusco", False),
    ]


def test_efficient_qa_is_read_without_what_is_possibly_correct(script, tmp_path):
    row = {
        "question": "one",
        "answer": ["Lima"],
        "def_correct_predictions": ["lima city"],
        "poss_correct_predictions": ["Peru"],
        "def_incorrect_predictions": ["Quito", "Cusco"],
    }
    path = tmp_path / "test.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert [tuple(result) for result in script.read(path)] == [
        ("EfficientQA", "one", ("Lima",), "lima city", True),
        ("EfficientQA", "one", ("Lima",), "Quito", False),
        ("EfficientQA", "one", ("Lima",), "Cusco", False),
    ]


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
