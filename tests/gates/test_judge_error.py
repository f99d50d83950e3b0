"""Gates whose figures a model as judge counts, of which the error is known."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pytest_kbrel import stats
from pytest_kbrel.catalogue.metrics import JUDGED, METRICS
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.judge_error import with_judge_error
from pytest_kbrel.gates.measurement import measure_figures, pair
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import CaseResult, Gate, GateResult, JudgeError
from tests.gates.tables import HEAD_TO_TAIL, answers, case, consistency, decided, gate
from tests.gates.test_aggregates import over
from tests.gates.test_picked_of import sides
from tests.gates.test_positive_control import monitored

GOOD = JudgeError(right_accepted=48, right=50, wrong_accepted=2, wrong=50)
PERFECT = JudgeError(right_accepted=10**7, right=10**7, wrong_accepted=0, wrong=10**7)
EIGHT = gate("accuracy", "max_drop", 0.08, beyond=0.02, never=0.15)
TEN = gate("accuracy", "max_drop", 0.1)


def judged(
    n: int,
    lost: int,
    gained: int,
    error: JudgeError | None,
    demand: Gate = EIGHT,
    *,
    explain: bool = False,
) -> GateResult:
    """Judge a gate on accuracy alone, without what else is said of a case."""
    figures = [
        of
        for of in figures_of(metrics_for("head_to_tail", "a", HEAD_TO_TAIL))
        if of.name == "accuracy"
    ]
    before, after = sides(n, lost, gained)
    measured = measure_figures(
        figures, (after,), (pair(after, before),), alpha=stats.sidak(20)
    )
    return decide(
        [demand], with_judge_error(measured, [error]), comparisons=20, explain=explain
    )[0]


def result_of(
    n: int, lost: int, gained: int, error: JudgeError | None, demand: Gate = EIGHT
) -> CaseResult:
    """Decide a slice of n facts of which so many were lost and gained in the judge's eyes."""
    before, after = sides(n, lost, gained)
    return decided(case(demand), after, before, comparisons=20, judge_error=error)


def test_the_gate_judges_the_drop_divided_by_the_index() -> None:
    plain, of_judge = (
        judged(400, 20, 4, error, explain=True) for error in (None, GOOD)
    )
    index = stats.judge_index(48, 50, 2, 50)
    assert index.high is not None
    assert (of_judge.observed, of_judge.low, of_judge.high) == pytest.approx(
        stats.corrected(0.04, plain.low, plain.high, index)
    )
    assert of_judge.p == pytest.approx(stats.drop_p(400, 20, 4, 0.02 * index.high))
    assert (
        "; corrected for the judge's error (divided by 0.920): a drop of 0.043 [0.0"
        in of_judge.reason
    )
    assert "judge" not in plain.reason
    assert of_judge.unchanged == pytest.approx(plain.unchanged / 0.92)  # type: ignore[operator]


def test_a_rise_of_hallucinations_is_corrected_alike() -> None:
    before, after = answers("+" * 100), answers("-" * 10 + "+" * 90)
    demand = case(gate("hallucination", "max_drop", 0.3))
    plain, of_judge = (
        decided(demand, after, before, judge_error=error).gates[0]
        for error in (None, GOOD)
    )
    assert of_judge.observed == pytest.approx(0.1 / 0.92)
    assert of_judge.low is not None
    assert plain.low is not None
    assert of_judge.low > plain.low
    assert "(divided by 0.920): a rise of 0.109" in of_judge.reason


def test_the_detectable_effect_is_that_of_the_truth() -> None:
    plain, of_judge = (result_of(120, 9, 0, error, TEN) for error in (None, GOOD))
    found = [
        next(value for value in of.metrics if value.name == "accuracy").mde
        for of in (plain, of_judge)
    ]
    assert found[1] == pytest.approx(found[0] / 0.92)  # type: ignore[operator]
    told = [
        re.findall(r"a drop of (\S+) would be found", of.gates[0].reason)
        for of in (plain, of_judge)
    ]
    assert float(told[1][0]) > float(told[0][0]) / 0.92


def test_without_labels_nothing_changes() -> None:
    before, after = sides(120, 12, 3)
    with_none = decided(case(EIGHT), after, before, comparisons=20, judge_error=None)
    assert with_none == decided(case(EIGHT), after, before, comparisons=20)


@pytest.mark.parametrize("demand", [EIGHT, gate("accuracy", "recovery", 0.95)])
def test_a_judge_without_errors_on_very_many_labels_changes_no_verdict(
    demand: Gate,
) -> None:
    for n in (100, 400):
        for lost in range(0, n // 5, 12):
            plain, of_judge = (
                judged(n, lost, 3, None, demand),
                judged(n, lost, 3, PERFECT, demand),
            )
            assert of_judge.verdict == plain.verdict
            assert of_judge.p == pytest.approx(plain.p, abs=1e-5)


@pytest.mark.parametrize(
    "error", [GOOD, JudgeError(right_accepted=17, right=20, wrong_accepted=4, wrong=20)]
)
def test_one_more_lost_fact_never_helps(error: JudgeError) -> None:
    grades = {"pass": 0, "inconclusive": 1, "fail": 2}
    for demand in (
        EIGHT,
        gate("accuracy", "max_drop", 0.05),
        gate("accuracy", "recovery", 0.9),
    ):
        results = [judged(200, lost, 5, error, demand) for lost in range(1, 60, 4)]
        verdicts = [grades[result.verdict] for result in results]
        assert verdicts == sorted(verdicts)
        assert set(verdicts) == {0, 1, 2}


def test_interval_and_p_never_contradict_each_other() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        n = int(rng.integers(60, 500))
        lost, gained = int(rng.integers(0, n // 5)), int(rng.integers(0, n // 10))
        right, wrong = rng.integers(20, 200, 2).tolist()
        error = JudgeError(
            right_accepted=int(rng.integers(0.8 * right, right + 1)),
            right=right,
            wrong_accepted=int(rng.integers(0, 0.2 * wrong + 1)),
            wrong=wrong,
        )
        result = judged(n, lost, gained, error)
        assert result.p is not None
        assert result.low is not None
        assert result.high is not None
        if result.p <= 0.01:
            assert result.low > 0.02
        if result.high <= 0.02:
            assert result.p > 0.5
        if result.verdict == "pass" and lost:
            assert result.high <= 0.08
            within = judged(
                n, lost, gained, error, gate("accuracy", "max_drop", 0.2, beyond=0.08)
            )
            assert within.p is not None
            assert within.p > 0.9


def test_fewer_labels_never_let_a_gate_pass_that_more_would_not() -> None:
    few = JudgeError(right_accepted=19, right=20, wrong_accepted=1, wrong=20)
    many = JudgeError(right_accepted=190, right=200, wrong_accepted=10, wrong=200)
    for lost in range(1, 40, 3):
        narrow, wide = judged(400, lost, 4, many), judged(400, lost, 4, few)
        assert (wide.low or 0) <= (narrow.low or 0)
        assert (wide.high or 0) >= (narrow.high or 0)
        assert wide.verdict == narrow.verdict or wide.verdict != "pass"


def test_where_only_the_labels_are_too_few_the_reason_asks_for_more_of_them() -> None:
    unsure = JudgeError(right_accepted=18, right=20, wrong_accepted=3, wrong=20)
    result = judged(
        2000,
        115,
        5,
        unsure,
        gate("accuracy", "max_drop", 0.08, beyond=0.079),
        explain=True,
    )
    assert result.verdict == "inconclusive"
    assert "only more labelled answers of the judge would decide" in result.reason


def test_a_share_that_was_recovered_allows_for_what_the_judge_adds() -> None:
    demand = gate("accuracy", "recovery", 0.9)
    plain, of_judge = (
        judged(400, 14, 0, error, demand, explain=True) for error in (None, GOOD)
    )
    assert plain.observed == of_judge.observed
    assert of_judge.low < plain.low  # type: ignore[operator]
    assert of_judge.high > plain.high  # type: ignore[operator]
    assert of_judge.p > plain.p  # type: ignore[operator]
    assert "; the interval allows for the judge's error" in of_judge.reason
    # 48 of 50 found and 2 of 50 accepted: at most 13.5 % are added to either side, of which a tenth counts.
    low = stats.wilson(2, 50)[1] * 0.1
    assert low == pytest.approx(0.0135, abs=1e-4)


def test_a_pass_of_the_best_of_several_asks_for_more_of_the_judge_too() -> None:
    before, after = sides(400, 8, 0)
    results = [
        decided(case(EIGHT), after, before, judge_error=GOOD, picked_of=models).gates[0]
        for models in (1, 8)
    ]
    assert [result.high for result in results] == [results[0].high] * 2
    assert [result.verdict for result in results] == ["pass", "pass"]
    assert "picked of 8" in results[1].reason


def test_a_positive_control_loses_what_the_judge_would_see_of_the_loss() -> None:
    plain, of_judge = (result_of(400, 4, 0, error).gates[0] for error in (None, GOOD))
    assert (plain.positive_control, of_judge.positive_control) == (True, True)
    # 0.16 in truth are 0.1472 in the judge's eyes, 59 of 400 facts.
    assert of_judge.positive_control_drop == pytest.approx(59 / 400 / 0.92)


def test_figures_that_rules_judge_stay_as_they_are() -> None:
    assert set(METRICS) >= JUDGED
    assert not JUDGED & {
        "accuracy_em",
        "accuracy_rules",
        "missing",
        "iur",
        "ur",
        "c_wrong",
        "avg",
        "monitor",
    }
    demand = gate("accuracy_f1", "max_drop", 0.08)
    assert (
        result_of(120, 9, 0, GOOD, demand).gates
        == result_of(120, 9, 0, None, demand).gates
    )
    table, lower = monitored([0.9] * 40), monitored([0.8] * 40)
    monitor = case(gate("monitor", "max_drop", 0.05), probe="monitor", slice="P36")
    assert (
        decided(monitor, lower, table).gates
        == decided(monitor, lower, table, judge_error=GOOD).gates
    )


def test_reliability_is_corrected_and_its_unseen_slices_are_not() -> None:
    before = consistency([("+", 1.0)] * 60 + [("-", 0.5)] * 20)
    after = consistency([("+", 1.0)] * 50 + [("-", 0.5)] * 30)
    demand = case(gate("nccr", "max_drop", 0.3), probe="reliability", slice="seen")
    plain, of_judge = (
        decided(demand, after, before, judge_error=error).gates[0]
        for error in (None, GOOD)
    )
    assert of_judge.observed == pytest.approx(plain.observed / 0.92)  # type: ignore[operator]


def test_an_aggregate_is_corrected_where_the_judge_is_behind_all_its_members() -> None:
    before, after = sides(200, 16, 2)

    def accuracy(*errors: JudgeError | None) -> GateResult:
        members = [
            decided(case(slice=f"world-{name}"), after, before, judge_error=error)
            for name, error in zip(("head", "tail"), errors, strict=True)
        ]
        blessed = [decided(case(slice=member.slice), before) for member in members]
        return over(members, gate("accuracy", "max_drop", 0.2), before=blessed).gates[0]

    plain, of_judge, mixed = (
        accuracy(None, None),
        accuracy(GOOD, GOOD),
        accuracy(GOOD, None),
    )
    assert of_judge.observed == pytest.approx(plain.observed / 0.92)  # type: ignore[operator]
    assert mixed == plain
