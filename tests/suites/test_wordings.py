"""The key ``wordings`` of a probe and of its slices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.suites import load_suite
from tests.suites.conftest import world_facts
from tests.suites.examples import HEAD

Write = Callable[..., Path]
UNSEEN = "unseen: {count: 5, as_of: 2026-11-01, expires: 2028-01-01}"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "head_to_tail:\n  slices:\n    geography-head:\n    geography-tail: {wordings: 3}\n",
            6,
            r"slice 'geography-tail': found wordings: 3, and 2 of the question of fact 'c\d'; "
            r"allowed: 1 to 2, or more 'frames' of relation 'P36'",
        ),
        ("head_to_tail:\n  slices: [culture-head]\n  wordings: 2\n", 4, r"wordings: 2, and 1 of .*'b\d'"),
        ("head_to_tail: {wordings: 0}\n", 3, "must be a whole number from 1 to .*found 0"),
        ("monitor: {wordings: 2}\n", 3, "unknown key 'wordings' in monitor"),
        (f"reliability:\n  {UNSEEN}\n  slices: {{unseen-zero-shot: {{wordings: 2}}}}\n", 5, "unknown key"),
        (
            "head_to_tail:\n  slices: {geography-tail: {wordings: 2, gates: {ece: {max: 0.1}}}}\n",
            4,
            "ece is measured with 'wordings: 1' of head_to_tail, found: 2",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_an_error_at_its_line(
    suite_file: Write, text: str, line: int, message: str
) -> None:
    with pytest.raises(SuiteError, match=message) as caught:
        load_suite(suite_file(HEAD + text))
    assert caught.value.line == line


def test_a_question_of_its_own_takes_the_place_of_the_first_frame(
    suite_file: Write,
) -> None:
    facts = [
        fact | {"question": f"Seat of {fact['subject']}?"} for fact in world_facts()
    ]
    (case, *_) = load_suite(
        suite_file(
            HEAD + "head_to_tail: {slices: [geography-head], wordings: 2}\n", facts
        )
    ).cases
    fact = case.facts[0]
    assert fact.questions(case.relations[0]) == (
        f"Seat of {fact.subject}?",
        f"Name the capital city of {fact.subject}.",
    )
