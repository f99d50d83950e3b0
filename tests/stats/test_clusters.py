"""The test and interval by clusters (CR2 with Bell and McCaffrey's degrees of freedom)."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import stats

X = np.array([1, 1, 1, 0, 0, 0, -1, 0, 1, 0, 0, 0], dtype=float)
OBJECTS = np.array([0] * 5 + [1] * 3 + [2] * 2 + [3] * 2)


def test_the_worked_example() -> None:
    by_object = stats.clustered_mean(X, OBJECTS)
    assert by_object.value == pytest.approx(0.25)
    assert by_object.se == pytest.approx(0.262643, abs=6e-7)
    assert by_object.df == pytest.approx(2.53623, abs=6e-6)
    assert by_object.p(0.0) == pytest.approx(0.211407, abs=6e-7)
    assert by_object.design_effect == pytest.approx(2.14248, abs=6e-6)
    assert by_object.effective == pytest.approx(144 / 42)


def matrix_form(x: np.ndarray, objects: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
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
    weights = np.full(len(x), 1 / len(x)) if equal else rng.dirichlet(np.full(len(x), 5.0))
    actual = stats.clustered_mean(x, objects, None if equal else weights)
    variance, df = matrix_form(x, objects, weights)
    assert actual.se**2 == pytest.approx(variance)
    assert actual.df == pytest.approx(df)
    assert actual.value == pytest.approx(float(weights @ x))


def test_clusters_of_equal_size_have_the_variance_of_their_means() -> None:
    rng = np.random.default_rng(0)
    means = rng.normal(size=9)
    x = np.repeat(means, 4)
    actual = stats.clustered_mean(x, np.repeat(np.arange(9), 4))
    assert actual.se == pytest.approx(means.std(ddof=1) / 3)
    assert actual.df == pytest.approx(8)


def test_it_is_the_cr2_of_a_regression_on_a_constant() -> None:
    """Statsmodels has CR1; with equal clusters CR2 and CR1 without its factor for columns are the same."""
    rng = np.random.default_rng(1)
    objects = np.repeat(np.arange(12), 5)
    x = rng.normal(size=60) + rng.normal(size=12)[objects]
    fit = sm.OLS(x, np.ones(60)).fit(
        cov_type="cluster", cov_kwds={"groups": objects, "use_correction": False}
    )
    assert stats.clustered_mean(x, objects).se == pytest.approx(float(fit.bse[0]) * np.sqrt(12 / 11))


def test_facts_that_all_have_their_own_object_are_independent() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=30)
    actual = stats.clustered_mean(x, np.arange(30))
    assert actual.se == pytest.approx(x.std(ddof=1) / np.sqrt(30))
    assert actual.df == pytest.approx(29)
    assert actual.design_effect == pytest.approx(1)


def test_one_object_has_no_test() -> None:
    actual = stats.clustered_mean(np.array([1.0, 0.0, 0.0]), np.zeros(3, dtype=int))
    assert actual.se is None
    assert actual.p(0.0) is None
    assert actual.effective == 1


def test_objects_that_changed_alike_leave_it_to_the_test_by_facts() -> None:
    alike = stats.clustered_mean(np.full(6, 0.5), np.repeat([0, 1, 2], 2))
    assert alike.p(0.1) == 0
    assert alike.p(0.5) == 0.5
    assert alike.p(0.6) == 1
    assert alike.interval == pytest.approx((0.5, 0.5))


def test_the_interval_holds_what_the_test_does_not_reject() -> None:
    by_object = stats.clustered_mean(X, OBJECTS)
    low, high = by_object.interval
    assert by_object.p(low) == pytest.approx(0.025)
    assert by_object.p(high) == pytest.approx(0.975)


@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.5])
def test_coverage_holds_where_facts_of_an_object_change_together(correlation: float) -> None:
    """The rate of false alarms at 2.5 % for thirty objects of unequal sizes, in simulated null runs."""
    rng = np.random.default_rng(3)
    sizes = np.maximum(1, np.round(60 / np.arange(1, 31))).astype(int)
    objects = np.repeat(np.arange(30), sizes)
    alarms = 0
    runs = 4000
    for _ in range(runs):
        flips = rng.random(len(objects)) < 0.2
        together = rng.random(30) < correlation
        sign = np.where(
            together[objects], rng.choice([-1, 1], size=30)[objects], rng.choice([-1, 1], size=len(objects))
        )
        x = flips * sign
        p = stats.clustered_mean(x.astype(float), objects).p(0.0)
        alarms += p is not None and p < 0.025
    assert alarms / runs < {0.0: 0.040, 0.1: 0.040, 0.5: 0.055}[correlation]
