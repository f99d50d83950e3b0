"""Verdicts on rates by enumeration; the expected figures were worked out apart from the code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from pytest_kbrel import stats

LEVEL = stats.sidak(23)

# Facts with which an unchanged model passes in 80, 90 and 98 %, by tolerance and share of flips. The table
# was searched on a coarser grid that begins at 50: EXACT are the numbers where fewer facts are enough.
NEEDED = {
    (0.03, 0.01): (210, 239, 347),
    (0.03, 0.02): (285, 347, 493),
    (0.03, 0.05): (505, 649, 993),
    (0.03, 0.10): (922, 1212, 1854),
    (0.05, 0.01): (110, 110, 176),
    (0.05, 0.02): (124, 156, 227),
    (0.05, 0.05): (205, 258, 384),
    (0.05, 0.10): (347, 457, 683),
    (0.08, 0.01): (67, 67, 87),
    (0.08, 0.02): (67, 87, 107),
    (0.08, 0.05): (96, 121, 172),
    (0.08, 0.10): (144, 190, 285),
    (0.10, 0.02): (53, 53, 85),
    (0.10, 0.05): (69, 85, 124),
    (0.10, 0.10): (101, 127, 190),
}
EXACT = {
    (0.03, 0.01, 0.8): 185,
    (0.08, 0.01, 0.8): 45,
    (0.10, 0.05, 0.98): 118,
    (0.10, 0.10, 0.8): 97,
}


@pytest.mark.parametrize(("within", "flips"), NEEDED)
def test_so_many_facts_let_an_unchanged_model_pass(within: float, flips: float) -> None:
    for chance, expected in zip((0.8, 0.9, 0.98), NEEDED[within, flips], strict=True):
        n = stats.rate_facts_to_pass(flips, within, chance)
        assert n is not None
        assert n == pytest.approx(
            EXACT.get((within, flips, chance), expected), rel=0.03
        )
        assert n <= expected * 1.03
        assert stats.rate_within(n, flips, within) >= chance


@pytest.mark.parametrize(
    ("n", "flips", "red_and_passed", "of_twenty"),
    [
        (51, 0.02, ((1.0, 63), (8.2, 36), (79, 1), (90, 0), (99, 0)), (17.5, 82)),
        (100, 0.02, ((0.0, 96), (0.0, 68), (41, 1), (68, 0), (97, 0)), (0.0, 0.4)),
        (100, 0.05, ((0.0, 82), (0.6, 53), (41, 1), (68, 0), (97, 0)), (0.7, 11.0)),
        (100, 0.10, ((1.1, 63), (4.6, 39), (50, 2), (68, 0), (97, 0)), (19.4, 60.9)),
        (120, 0.05, ((0.0, 91), (0.1, 66), (37, 1), (66, 0), (98, 0)), (0.1, 2.6)),
        (200, 0.05, ((0.0, 99), (0.1, 89), (74, 2), (94, 0), (100, 0)), (0.0, 1.5)),
        (400, 0.05, ((0.0, 100), (0.1, 100), (98, 2), (100, 0), (100, 0)), (0.0, 2.1)),
        (1000, 0.10, ((0.0, 100), (0.0, 100), (98, 2), (100, 0), (100, 0)), (0.0, 0.1)),
    ],
)
def test_verdicts_by_true_drop(
    n: int,
    flips: float,
    red_and_passed: tuple[tuple[float, float], ...],
    of_twenty: tuple[float, float],
) -> None:
    drops = (0.0, 0.02, 0.08, 0.10, 0.15)
    chances = [
        stats.rate_verdicts(
            n, flips, drop, within=0.08, beyond=0.02, never=0.15, alpha=LEVEL
        )
        for drop in drops
    ]
    for actual, (red, passed) in zip(chances, red_and_passed, strict=True):
        assert 100 * actual.red == pytest.approx(red, abs=0.06 if red < 10 else 0.6)
        assert 100 * actual.passed == pytest.approx(passed, abs=0.51)
    for actual, expected in zip(chances, of_twenty, strict=False):
        assert 100 * (1 - (1 - actual.red) ** 20) == pytest.approx(
            expected, abs=0.06 if expected < 82 else 0.5
        )


@pytest.mark.parametrize(
    ("n", "never", "expected"),
    [
        (100, 0.10, (0.2, 4.9, 18)),
        (100, 0.15, (0, 0, 0.9)),
        (200, 0.08, (0, 0.8, 8.6)),
        (200, 0.10, (0, 0, 1.6)),
        (400, 0.05, (0, 1.8, 14)),
        (400, 0.08, (0, 0, 0.3)),
        (1000, 0.05, (0, 0, 0.2)),
    ],
)
def test_an_unchanged_model_is_seldom_red_by_never(
    n: int, never: float, expected: tuple[float, ...]
) -> None:
    """The expected shares were simulated, and are rounded."""
    for flips, share in zip((0.02, 0.05, 0.10), expected, strict=True):
        actual = 100 * (1 - stats.rate_within(n, flips, never))
        assert actual == pytest.approx(share, rel=0.08, abs=0.2)


@pytest.mark.parametrize(("n", "bound"), [(12, 0.3), (50, 0.08), (120, 0.05)])
def test_a_pass_and_never_are_those_of_the_interval_and_of_the_test(
    n: int, bound: float
) -> None:
    """All outcomes one by one, judged as a gate judges them."""
    law = scipy.stats.multinomial(n, [0.12, 0.04, 0.84])
    expected = np.zeros(3)
    for lost in range(n + 1):
        for gained in range(n + 1 - lost):
            chance = law.pmf([lost, gained, n - lost - gained])
            if chance < 1e-12:
                continue
            worse_end = -stats.tango(n, lost, gained)[0]
            if worse_end <= bound or not lost:
                expected[0] += chance
            elif stats.drop_p(n, lost, gained, bound / 2) < LEVEL:
                expected[1] += chance
            elif worse_end > 2 * bound:
                expected[2] += chance
    actual = stats.rate_verdicts(
        n, 0.16, 0.08, within=bound, beyond=bound / 2, never=2 * bound, alpha=LEVEL
    )
    assert (actual.passed, actual.failed, actual.never) == pytest.approx(
        tuple(expected), abs=1e-8
    )
    assert actual.red == actual.failed + actual.never


def test_no_fact_lost_passes_with_ten_facts_and_not_with_nine() -> None:
    """None is lost of ten with a chance of 0.99 ** 10; the interval is wider than the tolerance."""
    ten, nine = (
        stats.rate_verdicts(
            n, 0.02, 0.0, within=0.05, beyond=0.025, never=0.2, alpha=LEVEL
        )
        for n in (10, 9)
    )
    assert ten.passed == pytest.approx(0.99**10)
    assert nine.passed < 1e-5
    assert nine.never > 0.99


@pytest.mark.parametrize("df", [3.0, 12.0, 200.0])
def test_the_end_of_a_t_interval_lies_beyond_a_bound_as_often_as_when_drawn(
    df: float,
) -> None:
    rng = np.random.default_rng(1)
    errors = 0.02 * np.sqrt(rng.chisquare(df, 200_000) / df)
    ends = 0.02 * rng.normal(size=200_000) + scipy.stats.t.ppf(0.975, df) * errors
    for bound in (0.03, 0.06, 0.1):
        assert stats.end_beyond(bound, 0.02, df) == pytest.approx(
            (ends > bound).mean(), abs=0.003
        )


def test_facts_that_a_figure_with_a_spread_needs() -> None:
    """With many degrees of freedom: (1.96 + 0.8416) standard errors, and (1.96 + 2.0537)."""
    for chance, apart in ((0.8, 2.8016), (0.98, 4.0137)):
        needed = stats.facts_to_pass(300, 0.03, 1e5, 0.05, chance)
        assert needed == pytest.approx(300 * (apart * 0.03 / 0.05) ** 2, rel=2e-3)
        assert stats.facts_to_pass(300, 0.03, 4.0, 0.05, chance) > needed
    se = 0.03 * math.sqrt(300 / stats.facts_to_pass(300, 0.03, 4.0, 0.05, 0.8))
    assert 1 - stats.end_beyond(0.05, se, 4.0) == pytest.approx(0.8, abs=2e-3)


def test_no_number_of_facts_is_enough_for_next_to_no_tolerance() -> None:
    assert stats.rate_facts_to_pass(0.1, 1e-4, 0.8) is None
