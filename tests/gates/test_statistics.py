"""A figure over the tables of several members: whom it counts and what it lacks; facts that changed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pytest_kbrel.gates.cases import under_waivers
from pytest_kbrel.gates.figures import (
    Figure,
    figures_over,
)
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.base import ratio
from pytest_kbrel.records import CaseResult, ProbeName, Table, Waiver
from tests.gates.tables import (
    RELIABILITY,
    answers,
    case,
    consistency,
    decided,
    measure,
    outcome,
)


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
    macro = over(*cases)["accuracy_macro"]
    tables = [case.table for case in cases]
    assert macro.weight(tables) == 4
    assert macro.case_weights(tables) == pytest.approx((1 / 6, 1 / 6, 1 / 6, 1 / 2))


def result(probe: ProbeName, name: str, of: Table) -> CaseResult:
    return decided(case(probe=probe, slice=name), of)


def over(*cases: CaseResult) -> dict[str, Figure]:
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


@pytest.mark.parametrize(
    ("after", "before", "note"),
    [
        ([("+", 0.5)], [("+", 0.5)], "n < 2"),
        ([("?", 0.5)] * 3, [("+", 0.5)] * 3, "no correct answer"),
        ([("+", 0.5), ("+", 0.6)], [("?", 0.5)] * 2, "baseline: no correct answer"),
        (
            [("+", 0.5), ("+", 0.6), ("?", 0)],
            [("?", 0)] * 3,
            "baseline: no correct answer",
        ),
        ([("+", 0.5), ("+", 0.6)], [], "no fact in common with the baseline"),
        ([("+", 0.5), ("+", 0.6)], [("+", 0.5), ("+", 0.6)], "unchanged in every fact"),
        # Where the candidate's own figure says something, that comes first.
        (
            [("+", 0.5)] * 3,
            [],
            "no spread between the facts; no fact in common with the baseline",
        ),
    ],
)
def test_why_a_difference_is_not_known(after: Any, before: Any, note: str) -> None:
    metrics = [
        of
        for of in metrics_for("reliability", "known-x", RELIABILITY)
        if of.name == "c_correct"
    ]
    (result,) = measure(consistency(after), metrics, consistency(before))
    assert result.note == note
