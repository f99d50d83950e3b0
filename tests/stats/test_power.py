from __future__ import annotations

import numpy as np
import pytest

from pytest_kbrel import stats
from pytest_kbrel.stats.estimates import TTest, sign_flip


def difference(value: float | None, se: float | None, n: int) -> stats.Difference:
    return stats.Difference(estimate=stats.Estimate(value=value, se=se, n=n))


def test_the_facts_that_decide_by_hand() -> None:
    # (1.959964 * 0.03 / 0.02)^2 times 100 facts.
    assert stats.facts_needed(0.02, 0.03, 100, 0.025) == 865
    assert stats.facts_to_alarm(difference(-0.02, 0.03, 100), 0.0, 0.025) == 865
    assert stats.facts_to_alarm(difference(0.02, 0.03, 100), 0.0, 0.025) == 865
    # The 95 % interval of a difference has two ends.
    assert stats.facts_to_clear(difference(-0.01, 0.03, 100), 0.02) == 865


def test_where_no_number_of_facts_decides_there_is_none() -> None:
    # (1.96 * 3000)^2 times 100 facts.
    for distance in (0.0, 1e-5, 1e-200):
        assert stats.facts_needed(distance, 0.03, 100, 0.025) is None
    assert stats.facts_needed(1.0, 0.03, 100, 0.025) == 101
    assert stats.facts_to_alarm(difference(-0.1, None, 1), 0.0, 0.05) is None
    assert stats.facts_to_alarm(difference(None, None, 0), 0.0, 0.05) is None
    for distance in (0.0, -0.01):
        assert stats.facts_to_clear(difference(-0.1, 0.03, 100), distance) is None
    assert stats.facts_to_clear(difference(-0.1, None, 1), 0.02) is None


@pytest.mark.parametrize(
    ("alpha", "fewest"),
    [(0.9, 1), (0.5, 1), (0.3, 1), (0.25, 2), (0.05, 4), (0.0025614, 8), (1e-4, 13)],
)
def test_so_many_facts_must_at_least_have_fallen_to_be_significant(
    alpha: float, fewest: int
) -> None:
    assert sign_flip(np.full(fewest, -1.0)) < alpha
    if fewest > 1:
        assert sign_flip(np.full(fewest - 1, -1.0)) >= alpha


def test_what_an_unchanged_model_shows_in_the_worst_of_its_slices() -> None:
    spread = stats.Difference(estimate=stats.Estimate(), spread=(0.1, 1e9))
    assert stats.null_end(spread, 1) == pytest.approx(0.1959964)
    # The median of the largest of 20 normal numbers is 1.8242.
    assert stats.null_end(spread, 20) == pytest.approx(
        0.1959964 + 1.8242 / 10, abs=1e-5
    )
    assert stats.null_end(stats.Difference(estimate=stats.Estimate()), 20) is None


def test_halls_transformation_by_hand() -> None:
    # 1 + .5 / 3 + .25 / 27 + .5 / 6 is 1.25926, beyond which is .10397 of a normal distribution.
    test = TTest(drop=1.2, se=1.0, df=1e9, skewness=0.5)
    assert test(0.2) == pytest.approx(0.10397, abs=1e-5)
