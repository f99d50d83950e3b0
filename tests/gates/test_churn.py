"""The churn: what changed against the baseline, whichever way, and the gates that may be about it."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.changes import QUANTILES, churn_of
from pytest_kbrel.gates.measurement import pair
from pytest_kbrel.records import Churn, Table
from tests.gates.tables import MONITOR, answers, case, decided, gate, outcome

BEFORE = answers("+" * 20 + "-" * 20)


def with_answers(table: Table, **texts: str) -> Table:
    rows = (
        dataclasses.replace(row, answer=texts.get(row.fact_id, row.answer))
        for row in table.rows
    )
    return Table(columns=table.columns, rows=tuple(rows))


def test_a_wrong_answer_that_became_another_wrong_one_is_churn() -> None:
    after = with_answers(BEFORE, Q030="another", Q031="yet another")
    result = decided(case(), after, BEFORE)
    assert (result.lost, result.gained) == ((), ())
    assert result.churn == Churn(facts=40, texts=2, labels=0)


@pytest.mark.parametrize(("bound", "verdict"), [(0.05, "pass"), (0.049, "fail")])
@pytest.mark.parametrize("metric", ["churn", "flips"])
def test_a_gate_may_limit_it(metric: str, bound: float, verdict: str) -> None:
    after = with_answers(answers("-" + "+" * 19 + "+" + "-" * 19), Q000="x", Q020="y")
    (actual,) = decided(case(gate(metric, "max", bound)), after, BEFORE).gates
    low, high = stats.wilson(2, 40)
    assert actual.verdict == verdict
    assert actual.reason.startswith(
        f"{metric} is 0.050 [{low:.3f}, {high:.3f}] over 40 facts; allowed: at most"
    )


def test_the_change_of_confidence_is_told_in_quantiles() -> None:
    def anchors(*values: float) -> Table:
        rows = (
            outcome(f"Q{at:02}", (at != 0, 0.1, 0.1, 0.1, value, 1, 1), "correct")
            for at, value in enumerate(values)
        )
        return Table(columns=MONITOR, rows=tuple(rows))

    churn = churn_of([pair(anchors(*[0.5] * 12), anchors(*[0.4] * 6, *[0.7] * 6))])
    assert churn is not None
    # A fact that a variant of MONITOR left out has no anchor.
    assert dict(churn.anchor_moves) == pytest.approx(
        dict(zip(QUANTILES, (-0.2, -0.2, -0.2, 0.1, 0.1), strict=True))
    )
