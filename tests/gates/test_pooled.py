"""The case over all slices of all probes of a suite."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from pytest_kbrel.baselines import Baseline, case_key
from pytest_kbrel.records import (
    CaseResult,
    Change,
    Gate,
    MetricValue,
    ProbeName,
    Table,
    Waiver,
)
from tests.gates.tables import (
    answers,
    blessed,
    case,
    consistency,
    decided,
    gate,
    over,
    run_of,
)
from tests.gates.test_aggregates import P36

SUITE = "suites/world.kb.yaml"


def member(
    probe: ProbeName,
    name: str,
    table: Table,
    before: Table | None = None,
    waivers: Sequence[Waiver] = (),
) -> CaseResult:
    return decided(case(probe=probe, slice=name, waivers=tuple(waivers)), table, before)


def baseline_of(tables: dict[str, Table]) -> Baseline:
    return run_of(
        cases={case_key(SUITE, name): blessed(of) for name, of in tables.items()}
    )


def pooled(
    members: Sequence[CaseResult],
    *gates: Gate,
    before: dict[str, Table] | None = None,
    baseline: Baseline | None = None,
) -> CaseResult:
    known = baseline or (baseline_of(before) if before else None)
    return over(members, *gates, probe="pooled", id="pooled[overall]", baseline=known)


def value(result: CaseResult) -> MetricValue:
    (actual,) = result.metrics
    return actual


def test_right_where_there_is_an_answer_and_uninformative_where_there_is_none() -> None:
    actual = pooled(
        [
            member("head_to_tail", "a-head", answers("++-?", prefix="a")),
            member(
                "reliability",
                "unseen-zero-shot",
                consistency([("?", 0), ("-", 0.5)], "u", False),
            ),
        ]
    )
    assert (value(actual).name, value(actual).better) == ("as_expected", "higher")
    assert value(actual).value == pytest.approx((2 + 1) / 6)
    assert (value(actual).n, actual.n) == (6, 6)
    assert actual.aggregate


def test_a_fact_that_several_slices_ask_about_is_one_cluster() -> None:
    marks = "+-" * 20
    alone = pooled(
        [member("head_to_tail", "a-head", answers(marks)), apart := other("-+" * 20)]
    )
    thrice = pooled(
        [
            member("head_to_tail", "a-head", answers(marks)),
            member("head_to_tail", "a-torso", answers(marks)),
            member("reliability", "known-zero-shot", seen(marks)),
            apart,
        ]
    )
    assert (value(alone).n, value(thrice).n, thrice.n) == (80, 80, 80)
    # Asking the same facts thrice tells no more about them.
    assert width(thrice) > width(alone)
    assert value(thrice).low is not None


def other(marks: str) -> CaseResult:
    return member("head_to_tail", "b-head", answers(marks, prefix="b"))


def seen(marks: str) -> Table:
    return consistency([(mark, 0.5) for mark in marks])


def width(result: CaseResult) -> float:
    actual = value(result)
    assert actual.low is not None
    assert actual.high is not None
    return actual.high - actual.low


def test_many_small_losses_that_no_slice_shows_are_shown_together() -> None:
    names = [f"d{n}-head" for n in range(12)]
    before = {
        f"head_to_tail[{name}]": answers("+" * 80 + "-" * 20, prefix=name)
        for name in names
    }
    after = {
        name: answers("-" * 3 + "+" * 77 + "-" * 20, prefix=name) for name in names
    }
    demand = gate("accuracy", "max_drop", 0.01)
    for name in names:
        one = decided(
            case(demand, slice=name),
            after[name],
            before[f"head_to_tail[{name}]"],
            comparisons=13,
        )
        assert one.verdict == "inconclusive"
    members = [
        member("head_to_tail", name, after[name], before[f"head_to_tail[{name}]"])
        for name in names
    ]
    actual = pooled(members, gate("as_expected", "max_drop", 0.01), before=before)
    assert actual.verdict == "fail"
    assert actual.gates[0].p is not None
    assert actual.gates[0].p < 1e-6
    assert len(actual.lost) == 36


def test_each_lost_fact_is_listed_once_with_its_probabilities() -> None:
    def lost(fact: str, probability: float | None) -> Change:
        return Change(
            fact_id=fact,
            question="q",
            expected="e",
            old_answer="o",
            new_answer="n",
            old_probability=probability,
        )

    members = [
        dataclasses.replace(other("++"), lost=(lost("b", None), lost("a", None))),
        dataclasses.replace(
            member("monitor", "P1", P36),
            lost=(lost("b", 0.9),),
            gained=(lost("c", 0.1),),
        ),
    ]
    actual = pooled(members)
    assert [(change.fact_id, change.old_probability) for change in actual.lost] == [
        ("a", None),
        ("b", 0.9),
    ]
    assert [change.fact_id for change in actual.gained] == ["c"]
