"""The shares that are printed of verdicts beside a human's."""

from __future__ import annotations

from pytest_kbrel.judges.agreement import Agreement


def test_the_shares_are_of_all_answers_and_of_the_wrong_ones():
    found = Agreement()
    for human, label in [(True, "correct"), (True, "uninformative"), (False, "correct"), (False, "wrong")]:
        found.add(human, label)
    for _ in range(2):
        found.add(False, "uninformative")
    assert found.table().splitlines()[-1] == (
        "agreement 0.667 (4 of 6), wrong answers called right 0.250 (1 of 4)"
    )
