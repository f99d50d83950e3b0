"""What another processor or matrix library changes by rounding is no change, and nothing else is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.records import CaseResult, MetricValue, Table
from pytest_kbrel.reports.formatting import signed
from tests.gates.tables import (
    MONITOR,
    case,
    decided,
    gate,
    outcome,
    value,
)

N = 40
# Consistent, so that a test of signs would be sure of it.
ROUNDING = 1e-7


def monitor(
    shift: float = 0.0,
    *,
    facts: Sequence[int] = range(N),
    scale: float = 1.0,
    lost: int = 0,
) -> Table:
    """Terms rise and anchors fall by ``shift`` in ``facts``; the first ``lost`` are answered wrong."""
    rows = []
    for i in range(N):
        moved = shift * (i in facts)
        term, anchor = (
            scale * (0.2 + 0.005 * i) + moved,
            scale * (0.5 + 0.01 * i) - moved,
        )
        good = i >= lost
        values = (1, term, term, term, anchor, good, 1)
        rows.append(outcome(f"Q{i:03}", values, "correct" if good else "wrong"))
    return Table(columns=MONITOR, rows=tuple(rows))


GATES = (
    *(gate("monitor", "max_drop", bound) for bound in (0.0, 0.02)),
    *(gate("anchor_prob", "max_drop", bound) for bound in (0.0, 0.02)),
    *(gate("accuracy_base", "max_drop", bound) for bound in (0.0, 0.02)),
    gate("anchor_prob", "recovery", 0.98),
)


def judged(table: Table, before: Table, **more: Any) -> CaseResult:
    return decided(case(*GATES, probe="monitor", slice="P36", **more), table, before)


def compared(value: MetricValue) -> tuple[object, ...]:
    return (
        value.delta,
        value.delta_low,
        value.delta_high,
        value.p,
        value.mde,
        value.note,
    )


def test_rounding_in_every_fact_is_no_difference() -> None:
    before = monitor()
    actual, plain = judged(monitor(ROUNDING), before), judged(before, before)
    assert actual.verdict == plain.verdict == "pass"
    assert [compared(one) for one in actual.metrics] == [
        compared(one) for one in plain.metrics
    ]
    assert [(one.verdict, one.p) for one in actual.gates] == [
        (one.verdict, one.p) for one in plain.gates
    ]
    for name in ("monitor", "pfd", "anchor_prob"):
        assert (value(actual, name).delta, value(actual, name).p) == (0.0, 0.5)
        assert signed(value(actual, name).delta) == "="
    # The value itself is what was measured.
    assert value(actual, "pfd").value == pytest.approx(
        value(plain, "pfd").value + ROUNDING, abs=1e-12
    )
    assert value(actual, "pfd").value != value(plain, "pfd").value
