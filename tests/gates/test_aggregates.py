from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.records import (
    CaseResult,
    Integrity,
    ProbeName,
    Table,
)
from tests.gates.tables import (
    MONITOR,
    answers,
    case,
    consistency,
    decided,
    gate,
    outcome,
    over,
    run_of,
    value,
)


def member(probe: ProbeName, name: str, table: Table, **more: Any) -> CaseResult:
    return decided(case(probe=probe, slice=name, **more), table)


def values(result: CaseResult) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in result.metrics}


def relation(prefix: str, rows: Sequence[Sequence[float]]) -> Table:
    made = (
        outcome(f"{prefix}{i}", row, "correct" if row[5] else "wrong")
        for i, row in enumerate(rows)
    )
    return Table(columns=MONITOR, rows=tuple(made))


P36 = relation("a", [(1, 0.2, 0.4, 0.3, 0.9, 1, 1), (1, 0.0, 0.2, 0.1, 0.3, 0, 1)])
P37 = relation(
    "b", [(1, 0.4, 0.4, 0.4, 0.5, 0, 0), (1, 0.1, 0.1, 0.1, 0.5, 1, 1), (0,) * 7]
)


def test_overall_monitor_is_the_plain_mean_over_relations() -> None:
    actual = over([member("monitor", "P36", P36), member("monitor", "P37", P37)])
    assert values(actual) == pytest.approx(
        {
            "monitor": (0.4 / 1.2 + 0.5 / 1.0) / 2,
            "pfd": (0.1 + 0.25) / 2,
            "ird": (0.3 + 0.25) / 2,
            "anchor_prob": (0.6 + 0.5) / 2,
            "accuracy": (0.75 + 0.5) / 2,
            "accuracy_max": (1.0 + 0.5) / 2,
            "accuracy_min": (0.5 + 0.5) / 2,
            "accuracy_std": (0.25 + 0.0) / 2,
            "accuracy_base": (0.5 + 0.5) / 2,
        }
    )
    # One fact of five was asked and not kept.
    assert (actual.n, value(actual, "monitor").n, value(actual, "accuracy").n) == (
        5,
        4,
        4,
    )
    assert actual.aggregate
    assert actual.table.rows == ()


def test_a_relation_without_a_value_leaves_none_overall() -> None:
    empty = relation("c", [(1, *(0,) * 6)] * 2)
    undefined = member("monitor", "P17", empty, integrity=Integrity(anchor_prob=0.0))
    actual = over([member("monitor", "P36", P36), undefined], gate("monitor", "max", 1))
    assert values(actual)["monitor"] is None
    assert actual.verdict == "fail"
    assert "in one of the cases" in actual.gates[0].reason


BUCKETS = {
    "a-head": "+++-",
    "b-c-head": "++-?",
    "a-torso": "+--?",
    "a-tail": "----",
    "b-c-tail": "+--?--",
}


def buckets(**changed: str) -> list[CaseResult]:
    marks = {
        **BUCKETS,
        **{name.replace("_", "-"): text for name, text in changed.items()},
    }
    return [
        member("head_to_tail", name, answers(text, prefix=name))
        for name, text in marks.items()
    ]


def test_head_to_tail_is_micro_within_buckets_and_macro_over_them() -> None:
    head, torso, tail = 5 / 8, 1 / 4, 1 / 10
    missing = (1 / 8 + 1 / 4 + 1 / 10) / 3
    a, b = (3 / 4 + 1 / 4 + 0) / 3, (2 / 4 + 1 / 6) / 2
    missing_a, missing_b = (0 + 1 / 4 + 0) / 3, (1 / 4 + 1 / 6) / 2
    actual = over(buckets())
    assert values(actual) == pytest.approx(
        {
            "accuracy_macro": (a + b) / 2,
            "hallucination_macro": 1 - (a + b + missing_a + missing_b) / 2,
            "missing_macro": (missing_a + missing_b) / 2,
            "accuracy_head": head,
            "accuracy_torso": torso,
            "accuracy_tail": tail,
            "gap": head - tail,
            "accuracy": (head + torso + tail) / 3,
            "hallucination": 1 - missing - (head + torso + tail) / 3,
            "missing": missing,
        }
    )
    assert value(actual, "gap").better == "lower"
    assert (value(actual, "accuracy_tail").n, actual.n) == (10, 22)


def test_the_top_tenth_counts_once() -> None:
    top = [
        member("head_to_tail", "a-top10", answers("+", prefix="a-head")),
        member("head_to_tail", "b-c-top10", answers("++-", prefix="b-c-head")),
    ]
    actual = over([*buckets(), *top])
    assert values(actual) == values(over(buckets())) | {"accuracy_top10": 3 / 4}
    # The facts are the head's.
    assert (actual.n, value(actual, "accuracy_top10").n) == (22, 4)
    assert values(over(top)) == {"accuracy_top10": 3 / 4}


KNOWN = consistency(
    [("+", 0.9)] * 6 + [("+", 0.4)] * 2 + [("-", 0.5), ("-", 0.1), ("?", 0)], prefix="s"
)
UNSEEN = consistency(
    [("-", 0.4), ("-", 0.2)] + [("?", 0)] * 6, prefix="u", expected=False
)


def test_reliability_figures_need_seen_and_unseen() -> None:
    actual = over(
        [member("reliability", "known", KNOWN), member("reliability", "unseen", UNSEEN)]
    )
    nccr = (6 * 0.9 + 2 * 0.4 - 0.6) / 11
    iur = 1 - 0.6 / 8
    assert values(actual) == pytest.approx(
        {
            "nccr": nccr,
            "ncr": 6 / 11,
            "iur": iur,
            "ur": 6 / 8,
            "c_wrong": (0.3 + 0.3) / 2,
            "avg": (nccr + 2 * iur - 1) / 2,
        }
    )
    assert set(values(over([member("reliability", "known", KNOWN)]))) == {"nccr", "ncr"}


def test_an_unchanged_gap_may_have_moved_by_what_a_fact_of_the_smaller_slice_could() -> (
    None
):
    run = [
        m
        for m in buckets(a_head="+-" * 20, a_tail="+-" * 15)
        if m.slice in ("a-head", "a-tail")
    ]
    actual = value(over(run, baseline=run_of(*run)), "gap")
    assert (actual.delta, actual.p) == (0.0, 0.5)
    # 1.99 is t, 1.96 / 30 the farthest that the imagined facts move the gap, 2 / (2 * 30) each.
    assert actual.delta_high == pytest.approx(1.99 * 70 / 72 * 1.96 / 30, rel=0.01)
