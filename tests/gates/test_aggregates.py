from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.gates.cases import under_waivers
from pytest_kbrel.gates.figures import (
    Figure,
    figures_over,
)
from pytest_kbrel.metrics.base import ratio
from pytest_kbrel.records import (
    CaseResult,
    Integrity,
    ProbeName,
    Table,
    Waiver,
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


def table(columns: str, *rows: tuple[str, tuple[float, ...]]) -> Table:
    return Table(
        columns=tuple(columns),
        rows=tuple(outcome(fact, of, "correct") for fact, of in rows),
    )


def figure(*columns: tuple[int, str], **more: Any) -> Figure:
    given = {
        "name": "f",
        "better": "higher",
        "statistic": lambda parts: ratio(parts[0][0][..., 0], parts[0][1]),
    }
    return Figure(
        **{
            **given,
            "columns": tuple((at, tuple(names)) for at, names in columns),
            **more,
        }
    )


A = table("xk", ("q2", (1, 1)), ("q1", (0, 1)), ("q3", (1, 0)))
B = table("x", ("q1", (0.5,)), ("q4", (1.0,)))
# Of which nothing is measured.
C = table("xk", ("q5", (1, 0)))


MANY = table("x", *((f"m{at}", (1,)) for at in range(6)))


@pytest.mark.parametrize(
    ("of", "count", "weight"),
    [
        (figure((0, "x")), 3, 3),
        # A mean over members goes by the smallest.
        (figure((0, "x"), (2, "x"), terms=(1, 1)), 4, 2),
        # A fact of two members is one, and moves the figure in both: by 1 / 6 and 1 / 4.
        (figure((0, "x"), (1, "x"), terms=(1, 1)), 4, 2),
        # Of pooled members one fact is one of all, ...
        (figure((0, "x"), (2, "x"), terms=(2,)), 4, 4),
        # ... or as many as ask about it.
        (figure((0, "x"), (1, "x"), terms=(2,)), 4, 2),
        (figure((0, "x"), (2, "x"), (1, "x"), terms=(2, 1)), 5, 2),
        # Terms may have shares of their own.
        (figure((0, "x"), (3, "x"), terms=(1, 1), shares=(0.25, 0.75)), 9, 8),
        # Of those that are counted in a column, that many.
        (figure((0, "x"), over="k"), 2, 2),
        (figure((2, "x"), over="k"), 0, 1),
        (figure((0, "x"), (2, "x"), over="k", terms=(2,)), 2, 2),
        (figure((4, "x"), over="k"), 6, 2),
        (figure((5, "x")), 0, 1),
    ],
)
def test_how_many_facts_a_figure_is_over_and_what_one_weighs(
    of: Figure, count: int, weight: int
) -> None:
    thrice = table("xk", ("q1", (1, 3)), ("q2", (1, 3)))
    tables = (A, B, C, MANY, thrice, table("x"))
    assert (of.count(tables), of.weight(tables)) == (count, weight)


def test_the_bucket_of_a_domain_with_one_weighs_as_much_as_all_buckets_of_another() -> (
    None
):
    cases = [
        result("head_to_tail", name, answers("+" * size, prefix=name))
        for name, size in (("a-head", 4), ("a-torso", 4), ("a-tail", 4), ("b-head", 2))
    ]
    macro = figures_by_name(*cases)["accuracy_macro"]
    tables = [case.table for case in cases]
    assert macro.weight(tables) == 4
    assert macro.case_weights(tables) == pytest.approx((1 / 6, 1 / 6, 1 / 6, 1 / 2))


def result(probe: ProbeName, name: str, of: Table) -> CaseResult:
    return decided(case(probe=probe, slice=name), of)


def figures_by_name(*cases: CaseResult) -> dict[str, Figure]:
    return {actual.name: actual for actual in figures_over(cases)}


def waiver(**more: Any) -> Waiver:
    return Waiver(
        **{"owner": "Ann", "reason": "known", "expires": "2026-12-31", **more}
    )


LATE, OLD, OWN, FACT = (
    waiver(case="c", expired=True),
    waiver(fact="q", expired=True),
    waiver(case="c"),
    waiver(fact="q"),
)


@pytest.mark.parametrize(
    ("given", "stands", "expired"),
    [
        ((), None, ()),
        ((FACT,), None, ()),
        ((FACT, OWN), OWN, ()),
        ((OWN, LATE), LATE, (LATE,)),
        ((OWN, OLD, LATE), OLD, (OLD, LATE)),
    ],
)
@pytest.mark.parametrize("verdict", ["pass", "fail", "inconclusive", "invalid"])
def test_which_waiver_a_case_stands_under(
    given: tuple[Waiver, ...],
    stands: Waiver | None,
    expired: tuple[Waiver, ...],
    verdict: Any,
) -> None:
    before = dataclasses.replace(decided(case(), answers("+")), verdict=verdict)
    actual = under_waivers(before, iter(given))
    assert (actual.waiver, actual.expired) == (stands, expired)
    assert actual.verdict == ("fail" if expired and verdict != "invalid" else verdict)
