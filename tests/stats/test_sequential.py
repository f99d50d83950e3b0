"""Group-sequential boundaries: the published z, and what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from pytest_kbrel import stats
from pytest_kbrel.stats.sequential import boundaries

PRINTED = {
    (0.025, 5): "4.877 3.357 2.680 2.290 2.031",
    (0.025, 10): "6.991 4.877 3.930 3.367 2.989 2.715 2.504 2.336 2.198 2.081",
    (0.0025614, 5): "6.643 4.627 3.724 3.189 2.831",
    (0.0025614, 10): "9.465 6.643 5.383 4.629 4.115 3.740 3.450 3.219 3.028 2.868",
}


@pytest.mark.parametrize(("alpha", "looks"), PRINTED)
def test_boundaries_are_those_of_the_tables(alpha: float, looks: int) -> None:
    expected = [float(z) for z in PRINTED[alpha, looks].split()]
    assert boundaries(alpha, looks) == pytest.approx(expected, abs=6e-4)


def test_all_looks_together_spend_the_level() -> None:
    z = boundaries(0.05, 3)
    steps = np.random.default_rng(0).normal(size=(400_000, 3))
    path = steps.cumsum(axis=1) / np.sqrt([1, 2, 3])
    crossed = (path > np.array(z)).any(axis=1).mean()
    assert crossed == pytest.approx(0.05, abs=4 * math.sqrt(0.05 * 0.95 / 400_000))


@pytest.mark.parametrize(("alpha", "looks"), PRINTED)
def test_a_p_at_the_boundary_is_the_level_at_every_look(
    alpha: float, looks: int
) -> None:
    for number, z in enumerate(map(float, PRINTED[alpha, looks].split()), start=1):
        crossed, missed = (
            float(scipy.stats.norm.sf(z + 0.002)),
            float(scipy.stats.norm.sf(z - 0.002)),
        )
        assert (
            stats.sequential_p(crossed, looks, number)
            < alpha
            < stats.sequential_p(missed, looks, number)
        )


def test_one_look_keeps_p_and_the_interval_of_95_percent() -> None:
    assert stats.sequential_p(0.0123, 1, 1) == 0.0123
    assert stats.look_level(1, 1) == pytest.approx(0.95, abs=1e-6)
