"""The test and interval by clusters (CR2 with Bell and McCaffrey's degrees of freedom)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import stats
from pytest_kbrel.stats.clusters import clustered_mean
from pytest_kbrel.stats.estimates import ONE_CLUSTER
from pytest_kbrel.stats.paired_rates import tango
from tests.stats.samples import macro, mean, paired_difference, sample

X = np.array([1, 1, 1, 0, 0, 0, -1, 0, 1, 0, 0, 0], dtype=float)
OBJECTS = np.array([0] * 5 + [1] * 3 + [2] * 2 + [3] * 2)


def test_the_worked_example() -> None:
    by_object = clustered_mean(X, OBJECTS)
    assert by_object.value == pytest.approx(0.25)
    assert by_object.se == pytest.approx(0.262643, abs=6e-7)
    assert by_object.df == pytest.approx(2.53623, abs=6e-6)
    assert by_object.p(0.0) == pytest.approx(0.211407, abs=6e-7)
    assert by_object.design_effect == pytest.approx(2.14248, abs=6e-6)
    assert by_object.effective == pytest.approx(144 / 42)


def matrix_form(
    x: np.ndarray, objects: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Variance and degrees of freedom by their definitions, with the matrices written out."""
    n = len(x)
    ones = np.ones((n, 1))
    hat = ones @ weights[None, :]
    residual = np.eye(n) - hat
    form = np.zeros((n, n))
    for name in np.unique(objects):
        rows = objects == name
        row = weights[rows] @ residual[rows]
        form += np.outer(row, row) / (1 - weights[rows].sum())
    return float(x @ form @ x), float(np.trace(form) ** 2 / np.trace(form @ form))


@given(
    sizes=st.lists(st.integers(1, 6), min_size=3, max_size=7),
    seed=st.integers(0, 1000),
    equal=st.booleans(),
)
def test_variance_and_degrees_of_freedom_are_those_of_the_matrix_form(
    sizes: list[int], seed: int, equal: bool
) -> None:
    rng = np.random.default_rng(seed)
    objects = np.repeat(np.arange(len(sizes)), sizes)
    x = rng.normal(size=len(objects))
    weights = (
        np.full(len(x), 1 / len(x)) if equal else rng.dirichlet(np.full(len(x), 5.0))
    )
    actual = clustered_mean(x, objects, None if equal else weights)
    variance, df = matrix_form(x, objects, weights)
    assert actual.se**2 == pytest.approx(variance)
    assert actual.df == pytest.approx(df)
    assert actual.value == pytest.approx(float(weights @ x))


def test_one_object_has_no_test() -> None:
    actual = clustered_mean(np.array([1.0, 0.0, 0.0]), np.zeros(3, dtype=int))
    assert actual.se is None
    assert actual.p(0.0) is None
    assert actual.effective == 1


def test_objects_that_changed_alike_leave_it_to_the_test_by_facts() -> None:
    alike = clustered_mean(np.full(6, 0.5), np.repeat([0, 1, 2], 2))
    assert alike.p(0.1) == 0
    assert alike.p(0.5) == 0.5
    assert alike.p(0.6) == 1
    assert alike.interval() == pytest.approx((0.5, 0.5))


def compared(
    drops: np.ndarray, objects: np.ndarray, *, rate: bool = True, better: str = "higher"
) -> stats.Difference:
    """Compare facts that got worse by ``drops``, -1, 0 or 1 each, or any number where it is no rate."""
    before = np.maximum(drops, 0.0)
    after = before - drops
    if better == "lower":
        before, after = after, before
    facts = {f"0/{number}": f"object {of}" for number, of in enumerate(objects)}
    return paired_difference(
        sample(after),
        sample(before),
        mean,
        better=better,  # type: ignore[arg-type]
        bounds=(0, 1),
        rate=rate,
        clusters=facts,
    )


@pytest.mark.parametrize("better", ["higher", "lower"])
@pytest.mark.parametrize("rate", [True, False])
def test_the_larger_p_and_the_wider_side_decide(better: str, rate: bool) -> None:
    result = compared(X, OBJECTS, rate=rate, better=better)
    by_object = clustered_mean(X, OBJECTS)
    assert result.clustered is not None
    assert (result.clustered.value, result.clustered.se) == pytest.approx(
        (0.25, by_object.se)
    )
    assert result.p == pytest.approx(0.211407, abs=6e-7)
    low, high = by_object.interval()
    rates = tango(12, 1, 4)
    # No rate can change by more than 1.
    ends = (max(min(low, rates[0]), -1.0), min(max(high, rates[1]), 1.0))
    if better == "higher":
        ends = (-ends[1], -ends[0])
    if rate:
        assert (result.estimate.low, result.estimate.high) == pytest.approx(ends)
    assert result.p_of(0.2) == pytest.approx(
        max(test(0.2) or 0 for test in result.tests)
    )
    assert result.p_of(0.2) >= by_object.p(0.2) - 1e-12  # type: ignore[operator]


def test_one_object_in_all_leaves_no_test() -> None:
    result = compared(X, np.zeros(12, dtype=int))
    assert (result.p, result.estimate.low, result.estimate.high) == (None, None, None)
    assert result.estimate.note == ONE_CLUSTER
    assert result.worse == 4


def test_cases_count_by_their_weights() -> None:
    """Two cases of 12 and 8 facts whose means count alike: objects that both have are one cluster."""
    rng = np.random.default_rng(5)
    first, second = rng.normal(0.1, 0.3, 12), rng.normal(0.0, 0.3, 8)
    objects = np.array([*OBJECTS, 0, 0, 1, 1, 4, 4, 5, 5])
    of_fact = {f"0/{i}": str(objects[i]) for i in range(12)} | {
        f"1/{i}": str(objects[12 + i]) for i in range(8)
    }
    result = paired_difference(
        sample(1 - first, 1 - second),
        sample(np.ones(12), np.ones(8)),
        macro,
        better="higher",
        clusters=of_fact,
        case_weights=(0.5, 0.5),
    )
    weights = np.concatenate([np.full(12, 1 / 24), np.full(8, 1 / 16)])
    expected = clustered_mean(np.concatenate([first, second]), objects, weights)
    assert result.clustered is not None
    assert result.clustered.se == pytest.approx(expected.se)
    assert result.clustered.df == pytest.approx(expected.df)
    assert result.clustered.value == pytest.approx(expected.value)


def test_a_recovered_share_has_its_clusters_too() -> None:
    before = np.array([1.0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 1])
    after = before - np.array([1.0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    clusters = {f"0/{i}": str(of) for i, of in enumerate(OBJECTS)}
    result = paired_difference(
        sample(after),
        sample(before),
        mean,
        0.9,
        better="higher",
        bounds=(0, 1),
        rate=True,
        clusters=clusters,
    )
    expected = clustered_mean(0.9 * before - after, OBJECTS)
    assert result.clustered is not None
    assert result.clustered.se == pytest.approx(expected.se)
    assert result.p == pytest.approx(max(expected.p(0.0), result.tests[0](0.0)))  # type: ignore[type-var]
    assert result.estimate.low <= -expected.interval()[1]  # type: ignore[operator]


@pytest.mark.parametrize("seed", range(3))
def test_many_facts_a_little_worse_and_few_much_better_are_no_loss(seed: int) -> None:
    """The real shape of changes of confidence: the plain t test takes it for a loss too often."""
    rng = np.random.default_rng(seed)
    alarms = {"t": 0, "all": 0}
    for _ in range(600):
        # The mean change is 0: nine of ten facts lose .02, one gains .18.
        drops = np.where(rng.random(60) < 0.9, 0.02, -0.18) + rng.normal(0, 0.002, 60)
        result = paired_difference(
            sample(1 - drops), sample(np.ones(60)), mean, better="higher"
        )
        alarms["t"] += result.tests[0](0.0) < 0.0026  # type: ignore[operator]
        alarms["all"] += result.p < 0.0026  # type: ignore[operator]
    assert alarms["t"] / 600 > 0.01
    assert alarms["all"] / 600 < 0.006
