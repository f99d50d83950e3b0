"""The test of "the drop is at most S" for rates; expected values were worked out apart from the code."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import stats
from pytest_kbrel.stats.paired_rates import drop_p, tango, trinomial_mid_p

# n, lost, gained, Tango's interval of the drop, mid-p at S = 0, .025 and .05.
WORKED = [
    (120, 0, 0, (-0.03102, 0.03102), (0.5, 0.976038, 0.998939)),
    (120, 0, 1, (-0.04570, 0.02294), (0.75, 0.985940, 0.998938)),
    (120, 6, 1, (-0.00207, 0.09782), (0.035156, 0.205127, 0.628631)),
    (120, 12, 2, (0.02589, 0.15293), (0.003693, 0.025661, 0.125148)),
    (200, 20, 4, (0.03500, 0.13244), (0.000455, 0.009996, 0.096915)),
    (300, 15, 15, (-0.03753, 0.03753), (0.5, 0.909861, 0.994917)),
    (400, 44, 4, (0.06976, 0.13568), (None, 0.000003, 0.000777)),
    (1000, 70, 20, (0.03219, 0.06936), (None, 0.003260, 0.497011)),
]


@pytest.mark.parametrize(("n", "lost", "gained", "ends", "ps"), WORKED)
def test_worked_examples(
    n: int,
    lost: int,
    gained: int,
    ends: tuple[float, float],
    ps: tuple[float | None, float, float],
) -> None:
    low, high = tango(n, gained, lost)
    assert (low, high) == pytest.approx(ends, abs=6e-6)
    for allowed, p in zip((0.0, 0.025, 0.05), ps, strict=True):
        actual = trinomial_mid_p(n, lost, gained, allowed)
        assert actual < 1e-6 if p is None else actual == pytest.approx(p, abs=6e-7)


@given(
    n=st.integers(10, 400),
    lost=st.integers(0, 60),
    gained=st.integers(0, 60),
    allowed=st.floats(0.001, 0.2),
)
def test_one_more_lost_fact_never_helps_and_one_more_gained_never_hurts(
    n: int, lost: int, gained: int, allowed: float
) -> None:
    n = max(n, lost + gained + 1)
    p = drop_p(n, lost, gained, allowed)
    assert drop_p(n, lost + 1, gained, allowed) <= p + 1e-9
    assert drop_p(n, lost, gained + 1, allowed) >= min(p, 0.999) - 4e-7


def test_p_is_at_least_the_full_tail_where_hardly_a_fact_was_gained() -> None:
    """Among 1,000 facts of which each is lost with a chance of .01, 20 or more are lost in 0.33 %."""
    level = stats.sidak(20)
    assert (
        trinomial_mid_p(1000, 20, 0, 0.01)
        < level
        < scipy.stats.binom.sf(19, 1000, 0.01)
    )
    assert drop_p(1000, 20, 0, 0.01) > level
    assert drop_p(1000, 21, 0, 0.01) < level


@given(
    n=st.integers(30, 300),
    lost=st.integers(0, 60),
    gained=st.integers(0, 20),
    allowed=st.floats(0, 0.1),
)
def test_a_rejected_drop_is_outside_the_interval(
    n: int, lost: int, gained: int, allowed: float
) -> None:
    n = max(n, lost + gained)
    if drop_p(n, lost, gained, allowed) <= 0.0102:
        assert tango(n, gained, lost)[0] > allowed - 1e-9


@pytest.mark.parametrize("allowed", [0.0, 0.01, 0.025, 0.05])
@pytest.mark.parametrize(
    ("n", "gain"),
    [
        *product((50, 120, 400), (0.0, 0.001, 0.05, 0.2)),
        *product((1000,), (0.0, 0.001)),
    ],
)
def test_slices_that_lose_what_is_allowed_are_red_in_at_most_five_percent(
    n: int, gain: float, allowed: float
) -> None:
    """Twenty slices at their limit: the chance of an alarm, exactly, by summing over all outcomes."""
    level = stats.sidak(20)
    losses = np.arange(n + 1)
    chance = 0.0
    for gained in range(int(scipy.stats.binom.ppf(1 - 1e-7, n, gain)) + 1):
        weight = scipy.stats.binom.pmf(gained, n, gain)
        rest = (
            scipy.stats.binom.pmf(
                losses[: n - gained + 1], n - gained, (gain + allowed) / (1 - gain)
            )
            if allowed or gain
            else np.eye(1, n - gained + 1)[0]
        )
        # p falls with each fact lost: the alarm begins at one number of them.
        low, high = 0, n - gained + 1
        while low < high:
            middle = (low + high) // 2
            if drop_p(n, middle, gained, allowed) < level:
                high = middle
            else:
                low = middle + 1
        chance += weight * rest[low:].sum()
    assert 1 - (1 - chance) ** 20 <= 0.05
