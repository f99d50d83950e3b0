"""Figures of facts that were asked in several wordings: means of means, compared fact by fact."""

from __future__ import annotations

import pytest

from pytest_kbrel import stats
from pytest_kbrel.baselines import BaselineCase
from pytest_kbrel.baselines.format import dump_tables, load_tables
from pytest_kbrel.gates.measurement import IDENTICAL
from pytest_kbrel.records import (
    CaseResult,
    Gate,
    Label,
    Outcome,
    Reply,
    Table,
)
from tests.gates.tables import HEAD_TO_TAIL, case, decided, outcome, value

LABELS: dict[str, Label] = {"+": "correct", "-": "wrong", "?": "uninformative"}


def worded(*facts: str) -> Table:
    """A head-to-tail table with a mark for each wording of each fact."""

    def row(number: int, marks: str) -> Outcome:
        right, missing = (marks.count(mark) / len(marks) for mark in "+?")
        replies = [
            Reply(
                answer=f"{LABELS[mark]} {number}",
                label=LABELS[mark],
                question=f"Wording {at}?",
            )
            for at, mark in enumerate(marks)
        ]
        return outcome(
            f"Q{number:03}", (right, missing, right, right), replies[0].label, answer=replies[0].answer,
            question=replies[0].question, others=tuple(replies[1:]),
        )  # fmt: skip

    return Table(
        columns=HEAD_TO_TAIL,
        rows=tuple(row(number, marks) for number, marks in enumerate(facts)),
    )


def against(before: Table, after: Table, *gates: Gate) -> CaseResult:
    """Decide a case against a baseline as it is written and read."""
    read = load_tables(dump_tables([("k", before)]))["k"]
    return decided(
        case(*gates),
        after,
        BaselineCase(table=read),
    )


BEFORE = worded(*["+++"] * 12, *["++-"] * 6, *["---"] * 6, *["+--"] * 6)
AFTER = worded(
    *["+++"] * 8,
    "++-",
    "++-",
    "+--",
    "---",
    *["++-"] * 6,
    *["---"] * 5,
    "+--",
    *["---"] * 2,
    *["+--"] * 4,
)


def test_a_figure_is_the_mean_over_facts_of_their_means_over_wordings() -> None:
    result = against(BEFORE, AFTER)
    accuracy = value(result, "accuracy")
    means = [[row.values[0] for row in table.rows] for table in (AFTER, BEFORE)]
    assert accuracy.value == pytest.approx(sum(means[0]) / 30)
    assert accuracy.n == accuracy.paired == 30
    assert accuracy.delta == pytest.approx((sum(means[0]) - sum(means[1])) / 30)
    rest = value(result, "hallucination"), value(result, "missing")
    assert accuracy.value + sum(one.value or 0 for one in rest) == pytest.approx(1)


def test_a_fact_is_lost_where_its_mean_falls_and_shows_the_first_wording_that_was() -> (
    None
):
    result = against(
        worded("+++", "-+-", "++-", "+-"), worded("+-+", "-++", "-++", "+-")
    )
    assert [
        (one.fact_id, one.question, one.old_answer, one.new_answer)
        for one in result.lost
    ] == [("Q000", "Wording 1?", "correct 0", "wrong 0")]
    assert [
        (one.fact_id, one.question, one.old_answer, one.new_answer)
        for one in result.gained
    ] == [("Q001", "Wording 2?", "wrong 1", "correct 1")]


def test_wordings_that_cancel_each_other_out_are_no_identical_outcome() -> None:
    before, after = worded(*["++-"] * 12, "+++"), worded("+-+", *["++-"] * 11, "+++")
    same = value(against(before, before), "accuracy").note
    assert (same, value(against(before, after), "accuracy").note) == (
        IDENTICAL,
        stats.UNCHANGED,
    )
    result = against(before, after)
    assert (result.lost, result.gained) == ((), ())
    assert result.churn is not None
    assert result.churn.labels == 2
