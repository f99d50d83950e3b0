"""How near to its bound a figure may come, on figures of which every digit is known."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kbrel.gates import decide
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.measurement import measure_figures, pair
from pytest_kbrel.metrics.base import mean
from pytest_kbrel.records import Gate, GateResult, Table
from tests.gates.tables import (
    answers,
    case,
    consistency,
    decided,
    gate,
    outcome,
    scores,
)

N = 20
# Sums of floats do not end on the printed digit; what is farther off than this is another number.
WITHIN, BEYOND = 0.9e-9, 1.1e-9


def table(values: list[float]) -> Table:
    return Table(
        columns=("c",),
        rows=tuple(outcome(f"Q{i:03}", (v,), "correct") for i, v in enumerate(values)),
    )


def judged(
    rule: str,
    bound: float,
    after: float,
    before: float | None = None,
    *,
    better: Any = "higher",
    n: int = N,
    **more: float,
) -> GateResult:
    """Judge one gate on a figure that is the same in all facts, and was the same in all before."""
    new, old = table([after] * n), None if before is None else table([before] * n)
    metric = mean("c", "c", better=better, bounds=(-1.0, 1.0))
    measured = measure_figures(
        figures_of([metric]),
        (new,),
        () if old is None else (pair(new, old),),
    )
    (result,) = decide([gate("c", rule, bound, **more)], measured)
    return result


@pytest.mark.parametrize(
    ("rule", "bound", "verdict"),
    [
        ("min", 0.5, "pass"),
        ("min", 0.5 + WITHIN, "pass"),
        ("min", 0.5 + BEYOND, "fail"),
        ("max", 0.5, "pass"),
        ("max", 0.5 - WITHIN, "pass"),
        ("max", 0.5 - BEYOND, "fail"),
    ],
)
def test_a_value_on_its_bound_meets_it(rule: str, bound: float, verdict: str) -> None:
    assert judged(rule, bound, 0.5).verdict == verdict


@pytest.mark.parametrize(
    ("rule", "bound", "after", "before", "verdict"),
    [
        ("max_drop", 0.02, 0.5, 0.625, "fail"),
        ("max_drop", 0.12, 0.5, 0.625, "inconclusive"),
        ("max_drop", 0.125, 0.5, 0.625, "inconclusive"),
        ("recovery", 0.99, 0.25, 0.5, "fail"),
        ("recovery", 0.55, 0.25, 0.5, "inconclusive"),
        ("recovery", 0.5, 0.25, 0.5, "inconclusive"),
    ],
)
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_an_alarm_is_raised_where_a_drop_is_surely_beyond_what_may_be(
    rule: str, bound: float, after: float, before: float, verdict: str, better: str
) -> None:
    if better == "lower":
        after, before = before, after
    within = 0.15 if rule == "max_drop" else 0.49
    result = judged(rule, within, after, before, better=better, beyond=bound)
    assert result.verdict == verdict
    assert (result.bound, result.beyond) == (within, bound)
    assert result.p is not None
    assert (result.p < 0.05) == (verdict == "fail")


@pytest.mark.parametrize(
    ("after", "before", "better", "verdict", "said"),
    [
        (0.25, 0.5, "higher", "fail", "c recovered 0.500 ["),
        (0.5, 0.25, "lower", "fail", "c recovered 0.500 ["),
        (0.0, 0.5, "higher", "fail", "c recovered 0.000 of the baseline: "),
        (0.0, 0.5, "lower", "pass", "c recovered all of the baseline: "),
        (0.5, 0.0, "lower", "fail", "c recovered 0.000 of the baseline: "),
        (0.0, 0.0, "lower", "pass", "c recovered 1.000 of the baseline: "),
        (0.5, 0.5, "higher", "pass", "c recovered 1.000 ["),
        (
            0.5,
            0.0,
            "higher",
            "inconclusive",
            "c has no ratio to a baseline of 0.000; allowed: within 0.900",
        ),
        (
            0.0,
            0.0,
            "higher",
            "inconclusive",
            "c has no ratio to a baseline of 0.000; allowed: within 0.900",
        ),
        (
            0.5,
            -0.5,
            "lower",
            "inconclusive",
            "c has no ratio to a baseline of -0.500; allowed: within 0.9",
        ),
    ],
)
def test_which_figures_have_a_ratio(
    after: float, before: float, better: str, verdict: str, said: str
) -> None:
    result = judged("recovery", 0.9, after, before, better=better)
    assert result.verdict == verdict
    assert result.reason.startswith(said)
    if "no ratio" in said or "all of" in said:
        assert (result.observed, result.low, result.high) == (None, None, None)
    else:
        assert result.observed == pytest.approx(float(said.split()[2]))
    assert (result.p is None) == ("no ratio" in said)
    if result.p is not None:
        assert (result.p < 0.05) is (
            after != before and (after < before) == (better == "higher")
        )


@pytest.mark.parametrize(
    ("n", "verdict"),
    [(9, "inconclusive"), (10, "pass")],
    ids=["nine facts", "ten facts"],
)
def test_ten_facts_in_which_nothing_changed_are_enough(n: int, verdict: str) -> None:
    demand = case(
        *(
            gate("accuracy", rule, bound)
            for rule, bound in (("max_drop", 0.0), ("recovery", 1.0))
        )
    )
    for result in decided(demand, answers("+" * n), answers("+" * n)).gates:
        assert result.verdict == verdict
        assert ("no outcome changed" in result.reason) == (verdict == "pass")


def test_a_bound_on_the_lower_end_of_what_was_recovered_passes() -> None:
    before, after = (
        answers("+" * 80 + "-" * 40),
        answers("-" * 12 + "+" * 68 + "-" * 40),
    )

    def recovery(bound: float) -> GateResult:
        return decided(case(gate("accuracy", "recovery", bound)), after, before).gates[
            0
        ]

    low = recovery(0.5).low
    assert low is not None
    assert [recovery(low + by).verdict for by in (-1e-7, 0.0, 1e-7)] == [
        "pass",
        "pass",
        "inconclusive",
    ]


@pytest.mark.parametrize(("anchor", "least"), [(0.1, 1e-6), (1.0, 1e-5), (3.0, 1e-5)])
def test_beside_small_anchors_less_is_rounding(anchor: float, least: float) -> None:
    def of(value: float, place: int) -> Table:
        values, columns = (value, anchor), ("c", "anchor")
        rows = (
            outcome(f"Q{i}", values[:: -1 if place else 1], "correct") for i in range(4)
        )
        return Table(columns=columns[:: -1 if place else 1], rows=tuple(rows))

    for place in (0, 1):
        for share, changed in ((0.9, 0.0), (1.1, 1.1)):
            (row, *_) = pair(
                of(0.5 + share * least, place), of(0.5, place)
            ).candidate.rows
            assert row.values[place] - 0.5 == pytest.approx(changed * least, abs=1e-12)


BEFORE = "+" * 90 + "-" * 20 + "?" * 10
RIGHT, NONE_RIGHT = consistency([("+", 0.5), ("+", 0.6)]), consistency([("?", 0.0)] * 2)


@pytest.mark.parametrize(
    ("demand", "after", "before", "said"),
    [
        # Better than its bound, and not for sure.
        (
            gate("accuracy", "recovery", 0.95),
            answers("-" * 3 + BEFORE[3:]),
            answers(BEFORE),
            "accuracy recovered 0.967 [0.907, 1.009] of the baseline: accuracy fell by 0.025 [-0.071, 0.007] "
            "from 0.750 to 0.725 (paired over 120 facts, "
            "p of no drop 0.0625); allowed: within 0.950, beyond 0.975; "
            "a drop of 0.085 would be found with 80 % power; about 876 facts would decide, "
            "were the difference the same",
        ),
        # Worse than its bound, and not for sure.
        (
            gate("accuracy", "recovery", 0.99),
            answers("-" * 3 + BEFORE[3:]),
            answers(BEFORE),
            "accuracy recovered 0.967 [0.907, 1.009] of the baseline: accuracy fell by 0.025 [-0.071, 0.007] "
            "from 0.750 to 0.725 (paired over 120 facts, "
            "p of no drop 0.0625); allowed: within 0.990, beyond 0.995; "
            "a drop of 0.059 would be found with 80 % power; about 150 facts would decide, "
            "were the difference the same",
        ),
        (
            gate("accuracy", "max_drop", 0.02),
            answers("--" + BEFORE[2:-12] + "+" + BEFORE[-11:]),
            answers(BEFORE),
            "accuracy fell by 0.008 [-0.052, 0.031] from 0.750 to 0.742 (paired over 120 facts, p of no drop "
            "0.3125); allowed: within 0.020, beyond 0.010; a drop of 0.070 would be found with 80 % power; "
            "about 896 facts would decide, were the difference the same",
        ),
        (
            gate("c_correct", "max_drop", 0.5),
            RIGHT,
            NONE_RIGHT,
            "c_correct cannot be compared: baseline: no correct answer; allowed: within 0.500, beyond 0.250",
        ),
    ],
)
def test_what_is_missing_for_a_judgement_is_told(
    demand: Gate, after: Table, before: Table, said: str
) -> None:
    more: dict[str, Any] = (
        {"probe": "reliability", "slice": "known-x"} if "c_" in demand.metric else {}
    )
    result = decided(case(demand, **more), after, before).gates[0]
    assert (result.verdict, result.reason) == ("inconclusive", said)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.5], "accuracy_f1 is 0.500 over 1 fact (n < 2); allowed: at least 0.500"),
        # Where there is an interval, why it is as it is is no matter.
        (
            [0.5] * 5,
            "accuracy_f1 is 0.500 [0.111, 0.889] over 5 facts; allowed: at least 0.500",
        ),
    ],
)
def test_why_a_value_has_no_interval_is_told(values: list[float], said: str) -> None:
    result = decided(case(gate("accuracy_f1", "min", 0.5)), scores(values)).gates[0]
    assert (result.verdict, result.reason) == ("pass", said)
