"""Figures of facts that were asked in several wordings: means of means, compared fact by fact."""

from __future__ import annotations

import pytest
from scipy.stats import ttest_rel

from pytest_kbrel import stats
from pytest_kbrel.baselines import BaselineCase
from pytest_kbrel.baselines.format import dump_tables, load_tables
from pytest_kbrel.gates import check_integrity
from pytest_kbrel.gates.figures import as_expected
from pytest_kbrel.gates.measurement import IDENTICAL, pair
from pytest_kbrel.records import (
    CaseResult,
    Gate,
    Label,
    MetricValue,
    Outcome,
    Reply,
    Table,
)
from tests.gates.tables import HEAD_TO_TAIL, case, decided, gate, outcome

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
        BaselineCase(key="k", table=read, metrics=()),
    )


def value(result: CaseResult, name: str) -> MetricValue:
    return next(metric for metric in result.metrics if metric.name == name)


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


def test_facts_are_tested_by_their_means_and_not_by_counts() -> None:
    accuracy = value(against(BEFORE, AFTER), "accuracy")
    means = [[row.values[0] for row in table.rows] for table in (AFTER, BEFORE)]
    t = ttest_rel(*means, alternative="less").pvalue
    assert accuracy.p is not None
    # The larger one of several tests: that of t is one of them.
    assert t <= accuracy.p < 0.05
    unaltered = value(against(BEFORE, BEFORE), "accuracy")
    assert (unaltered.delta, unaltered.note, unaltered.p) == (0, IDENTICAL, 0.5)


def test_averaging_over_wordings_narrows_the_interval() -> None:
    # The same share of answers lost, of facts as a whole and wording by wording.
    tight = gate("accuracy", "max_drop", 0.15)
    whole = against(worded(*["+"] * 40), worded(*["-"] * 4, *["+"] * 36), tight)
    spread = against(
        worded(*["++++"] * 40), worded(*["-+++"] * 16, *["++++"] * 24), tight
    )
    ends = [value(one, "accuracy") for one in (whole, spread)]
    assert [one.delta for one in ends] == pytest.approx([-0.1, -0.1])
    assert ends[1].delta_low is not None
    assert ends[0].delta_low is not None
    assert ends[0].delta_low < ends[1].delta_low - 0.05
    assert (whole.verdict, spread.verdict) == ("inconclusive", "pass")


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


def test_the_pooled_share_counts_a_fact_by_its_wordings() -> None:
    table = as_expected(worded("++-", "?--"), worded("++-", "?--"))
    assert [row.values for row in table.rows] == [(2 / 3,), (0,)]
    unseen = Table(columns=HEAD_TO_TAIL, rows=tuple(worded("??-").rows))
    (row,) = as_expected(
        unseen, Table(columns=(), rows=(outcome("Q000", (), "wrong", expected=""),))
    ).rows
    assert row.values == (2 / 3,)


def test_what_is_unsound_in_one_wording_is_seen() -> None:
    silent = worded(*["+-"] * 12)
    rows = tuple(
        outcome(
            row.fact_id,
            row.values,
            row.label,
            others=(Reply(answer="", label="uninformative", truncated=True),) * 3,
        )
        for row in silent.rows
    )
    broken = check_integrity(case(), Table(columns=HEAD_TO_TAIL, rows=rows), ()).broken
    assert broken[0].startswith("36 of 48 answers are empty, 36 of them cut short")
    assert decided(case(), Table(columns=HEAD_TO_TAIL, rows=rows)).truncated == 36


def test_facts_asked_in_other_numbers_of_wordings_are_not_paired() -> None:
    two = worded("+-")
    other = Table(
        columns=two.columns,
        rows=(outcome("Q000", two.rows[0].values, "correct", prompt_digest="x"),),
    )
    assert pair(two, other).differing == ("Q000",)
