"""What the arguments and rows of the ``kbrel`` commands may be at their edges, and what lies just beside."""

from __future__ import annotations

import argparse

import pytest

from pytest_kbrel.bounds import CAP
from pytest_kbrel.cli import build, judge
from pytest_kbrel.cli.arguments import integer_within


@pytest.mark.parametrize(
    "text", ["0", "-1", "1000000", "1.0", "", "²", "x", "9" * 5000]
)
def test_what_lies_beside_them(text: str) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError,
        match=r"^found .{2,62}; allowed: a whole number from 1",
    ):
        integer_within(CAP)(text)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0.0), ("0.6", 0.6), ("0.9999", 0.9999)]
)
def test_a_share(text: str, value: float) -> None:
    assert build._share(text) == value


@pytest.mark.parametrize("text", ["1", "-0.1", "nan", "inf", "", "x"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match="allowed: a number from 0 to below 1"
    ):
        build._share(text)


@pytest.mark.parametrize(
    ("text", "fine"),
    [("4GB", True), ("800MB", True), ("-1GB", False), (" -1GB", False)],
)
def test_a_size_is_not_negative(text: str, fine: bool) -> None:
    if fine:
        assert build._size(text) == text
        return
    with pytest.raises(
        argparse.ArgumentTypeError, match="allowed: a size such as 4GB or 800MB"
    ):
        build._size(text)


@pytest.mark.parametrize(
    ("value", "right"),
    [
        *(
            (value, True)
            for value in (1, 1.0, True, "1", "true", "True", "correct", "CORRECT")
        ),
        *(
            (value, False)
            for value in (0, 0.0, False, "0", "false", "wrong", "Wrong", "incorrect")
        ),
    ],
)
def test_a_humans_verdict(value: object, right: bool) -> None:
    assert judge._human({"hum": value}, "hum") is right


@pytest.mark.parametrize("value", [2, -1, 0.5, "", "yes", "right", None, [1], {}])
def test_what_is_no_verdict_of_a_human(value: object) -> None:
    with pytest.raises(
        ValueError, match="'hum' must be 0 or 1, correct or wrong, found"
    ):
        judge._human({"hum": value}, "hum")


ROW = {
    "question": "What is the capital of Peru?",
    "answers": ["Lima"],
    "prediction": "Lima",
}


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({}, "correct"),
        ({"answers": ["Cusco", "Lima"]}, "correct"),
        ({"answers": []}, "wrong"),
        ({"answers": [5], "prediction": 5}, "correct"),
        ({"answers": [0], "prediction": 0}, "correct"),
        ({"answers": [2.5], "prediction": "2.5"}, "correct"),
        ({"prediction": None}, "uninformative"),
        ({"prediction": ""}, "uninformative"),
        ({"question": ""}, "correct"),
        ({"question": 7}, "correct"),
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


@pytest.mark.parametrize("name", ["question", "answers", "prediction"])
def test_what_a_prediction_must_have(name: str) -> None:
    row = {key: value for key, value in ROW.items() if key != name}
    with pytest.raises(
        ValueError, match=f"the key '{name}' is missing; found: {', '.join(row)}"
    ):
        judge._judged(row, ())
