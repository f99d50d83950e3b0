"""What the arguments and rows of the ``kbrel`` commands may be at their edges, and what lies just beside."""

from __future__ import annotations

import argparse

import pytest

from pytest_kbrel.cli import build, judge


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("4GB", True),
        ("-1GB", False),
    ],
)
def test_a_size_is_not_negative(text: str, fine: bool) -> None:
    if fine:
        assert build._size(text) == text
        return
    with pytest.raises(
        argparse.ArgumentTypeError, match="allowed: a size such as 4GB or 800MB"
    ):
        build._size(text)


ROW = {
    "question": "What is the capital of Peru?",
    "answers": ["Lima"],
    "prediction": "Lima",
}


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({}, "correct"),
        ({"answers": []}, "wrong"),
        ({"answers": [5], "prediction": 5}, "correct"),
        ({"answers": [2.5], "prediction": "2.5"}, "correct"),
        ({"prediction": None}, "uninformative"),
    ],
)
def test_what_a_prediction_may_have(change: dict[str, object], label: str) -> None:
    assert judge._judged({**ROW, **change}, ()).label == label


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        *(({name: None}, f"'{name}' must be") for name in ("question", "answers")),
        (
            {"answers": ["Lima", None]},
            "'answers' must be texts or numbers, found nothing",
        ),
        ({"answers": ["Lima", "\t"]}, "each of 'answers' must say something"),
        ({"prediction": True}, "'prediction' must be text, found true"),
        *(
            ({name: "x"}, f"the key '{name}' is there already")
            for name in ("verdict", "rule")
        ),
    ],
)
def test_what_a_prediction_may_not_have(
    change: dict[str, object], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        judge._judged({**ROW, **change}, ())
