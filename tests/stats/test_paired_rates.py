from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar

from pytest_kbrel import stats
from pytest_kbrel.stats import Flips
from pytest_kbrel.stats.estimates import TOO_FEW
from pytest_kbrel.stats.paired_rates import (
    drop_p,
    mcnemar,
    rate_difference,
    rate_recovery,
    tango,
)
from tests.stats.samples import mean, paired_difference, pooled, quotient, sample

FLIPS = st.tuples(*[st.integers(0, 40)] * 4).filter(lambda result: sum(result) > 1)


def flips(down: int, up: int, both: int, neither: int) -> Flips:
    return Flips(n=down + up + both + neither, down=down, up=up, both=both)


def marks(of: Flips) -> tuple[list[float], list[float]]:
    """Candidate's and baseline's outcomes."""
    still = of.n - of.down - of.up - of.both
    after = [0.0] * of.down + [1.0] * (of.up + of.both) + [0.0] * still
    before = [1.0] * of.down + [0.0] * of.up + [1.0] * of.both + [0.0] * still
    return after, before


def compared(of: Flips, better: str = "higher") -> stats.Difference:
    after, before = marks(of)
    return paired_difference(
        sample(after), sample(before), mean, better=better, bounds=(0, 1), rate=True  # type: ignore[arg-type]
    )  # fmt: skip


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_mid_p_is_the_exact_p_less_half_the_probability_of_what_was_found(
    worse: int, better: int
) -> None:
    assume(worse + better)
    exact = scipy.stats.binomtest(
        worse, worse + better, 0.5, alternative="greater"
    ).pvalue
    result = scipy.stats.binom.pmf(worse, worse + better, 0.5)
    assert mcnemar(worse, better) == pytest.approx(exact - result / 2)
    table = [[5, max(worse, better)], [min(worse, better), 5]]
    two_sided = their_mcnemar(table, exact=True).pvalue
    larger = mcnemar(max(worse, better), min(worse, better)) + result / 2
    assert min(2 * larger, 1.0) == pytest.approx(two_sided)


def test_tangos_interval_without_flips_is_a_rule_of_three() -> None:
    for n in (3, 30, 3000):
        assert tango(n, 0, 0) == pytest.approx(
            (-3.841459 / (n + 3.841459), 3.841459 / (n + 3.841459))
        )


def test_all_facts_lost() -> None:
    low, high = tango(50, 50, 0)
    assert low == -1.0
    # Wilson's, of a rate of 1.
    assert high == pytest.approx(-stats.wilson(50, 50)[0], abs=0.08)
    assert compared(flips(50, 0, 0, 0)).p == pytest.approx(0.5**51)


def test_facts_outside_the_rate_do_not_count() -> None:
    """As accuracy over kept facts; where other facts are kept, the difference is one of ratios."""
    rows = [[0.0, 1.0]] * 3 + [[1.0, 1.0]] * 20 + [[0.0, 0.0]] * 40
    before = [[1.0, 1.0]] * 23 + [[0.0, 0.0]] * 40
    result = paired_difference(
        sample(rows),
        sample(before),
        quotient,
        better="higher",
        bounds=(0, 1),
        rate=True,
    )
    assert result.flips == Flips(n=23, down=3, up=0, both=20)
    assert (result.estimate.low, result.estimate.high) == tango(23, 3, 0)
    assert result.estimate.n == 63
    among_kept = stats.facts_to_clear(compared(flips(3, 0, 20, 0)), 0.1)
    assert among_kept is not None
    assert stats.facts_to_clear(result, 0.1) == math.ceil(among_kept * 63 / 23)
    other = [[0.0, 0.0], *before[1:]]
    unlike = paired_difference(
        sample(rows),
        sample(other),
        quotient,
        better="higher",
        bounds=(0, 1),
        rate=True,
        facts=22,
    )
    assert unlike.flips is None
    assert unlike.estimate.value == pytest.approx(20 / 23 - 1)
    assert unlike.estimate.low < unlike.estimate.value < unlike.estimate.high  # type: ignore[operator]


def test_pooled_cases_are_one_table_unless_they_share_facts() -> None:
    after, before = marks(flips(9, 2, 30, 10))
    split = [slice(0, 20), slice(20, 51)]
    cases = [
        sample(*(np.array(marks)[part] for part in split)) for marks in (after, before)
    ]
    together = paired_difference(
        *cases, pooled, better="higher", bounds=(0, 1), rate=True
    )
    one_table = compared(flips(9, 2, 30, 10))
    assert (together.estimate, together.p) == (one_table.estimate, one_table.p)
    assert together.flips == one_table.flips
    ids = tuple(f"f{i}" for i in range(51))
    shared = [sample(marks, marks, facts=[ids, ids]) for marks in (after, before)]
    twice = paired_difference(
        *shared, pooled, better="higher", bounds=(0, 1), rate=True
    )
    assert (twice.flips, twice.estimate.n) == (None, 51)
    # All rows twice are no more evidence than once.
    assert twice.tests[0](0.0) == pytest.approx(one_table.p)


@pytest.mark.parametrize(
    ("of", "note", "p"),
    [
        (flips(0, 0, 5, 5), stats.UNCHANGED, 0.5),
        (flips(1, 0, 0, 0), TOO_FEW, None),
        (flips(0, 0, 0, 0), stats.UNDEFINED, None),
    ],
)
def test_what_cannot_be_said_is_stated(of: Flips, note: str, p: float | None) -> None:
    result = compared(of)
    assert (result.estimate.note, result.p) == (note, p)
    assert (result.estimate.low is None) == (p is None)


@pytest.mark.parametrize(
    ("of", "alpha"), [(flips(10, 10, 100, 80), 0.01), (flips(3, 2, 300, 95), 0.0025)]
)
def test_a_drop_that_is_detectable_is_found_in_four_runs_of_five(
    of: Flips, alpha: float
) -> None:
    """It is a closed form, which asks for more where few facts flip."""
    drop = stats.detectable(compared(of), 0.0, alpha)
    assert drop is not None
    share = max((of.down + of.up) / of.n, drop)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(
        of.n, [(share + drop) / 2, (share - drop) / 2, 1 - share], size=2000
    )
    found = np.mean([mcnemar(down, up) < alpha for down, up, _ in drawn])
    assert found > 0.79


def test_the_loss_of_all_facts_is_detectable_where_the_gate_finds_it() -> None:
    of = compared(flips(0, 0, 5, 0))
    assert drop_p(5, 5, 0, 0.0) < 0.02
    assert stats.detectable(of, 0.0, 0.02) == 1.0
    assert stats.detectable(of, 0.0, 0.0025) == math.inf


@pytest.mark.parametrize("counts", [(0, 0, 80, 20), (1, 1, 78, 20), (3, 2, 150, 45)])
def test_the_facts_needed_clear_the_tolerance(
    counts: tuple[int, int, int, int],
) -> None:
    result = compared(flips(*counts))
    distance = 0.02 + result.estimate.value  # type: ignore[operator]
    needed = stats.facts_to_clear(result, distance)
    assert needed is not None
    for n, within in ((needed, True), (needed - 2, False)):
        times = n / sum(counts)
        assert (-tango(n, counts[0] * times, counts[1] * times)[0] <= 0.02) is within


def test_the_facts_needed_raise_the_alarm() -> None:
    result = compared(flips(6, 3, 80, 11))
    needed = stats.facts_to_alarm(result, 0.0, 0.001)
    assert needed is not None
    times = needed / 100
    assert mcnemar(round(6 * times), round(3 * times)) == pytest.approx(0.001, rel=0.3)
    assert stats.facts_to_alarm(compared(flips(3, 3, 80, 11)), 0.0, 0.001) is None


def test_the_standard_error_of_a_rate_difference_is_that_of_the_wider_side() -> None:
    for of in (
        flips(9, 2, 30, 10),
        flips(2, 9, 30, 10),
        flips(0, 0, 5, 5),
        flips(1, 0, 1, 0),
    ):
        result = rate_difference(of)
        low, high = tango(of.n, of.down, of.up)
        value = (of.up - of.down) / of.n
        assert (result.value, result.low, result.high, result.n, result.df) == (
            value,
            low,
            high,
            of.n,
            math.inf,
        )
        assert result.se == pytest.approx(max(high - value, value - low) / 1.959964)


def test_one_fact_has_a_rate_difference_but_no_interval() -> None:
    assert rate_difference(flips(1, 0, 0, 0)) == stats.Estimate(
        value=-1.0, n=1, note=TOO_FEW
    )
    assert rate_recovery(flips(1, 0, 0, 0), 0.9) == stats.Estimate(n=1, note=TOO_FEW)
    two = rate_recovery(flips(0, 0, 2, 0), 0.5)
    assert (two.value, two.n, two.df) == (0.5, 2, math.inf)
    assert two.low is not None


def test_a_tolerance_that_is_kept_already_is_kept_by_one_fact_more() -> None:
    assert stats.facts_to_clear(compared(flips(0, 0, 80, 20)), 0.5) == 101


def test_more_than_a_million_facts_are_none_to_ask_for() -> None:
    """One lost fact of 100: within 0.01 + d there are 0.01 * (1.96 / d)^2 facts, about, needed."""
    result = compared(flips(1, 0, 80, 19))
    assert stats.facts_to_clear(result, 1e-5) is None
    needed = stats.facts_to_clear(result, 3e-4)
    assert needed == pytest.approx(0.0099 * (1.959964 / 3e-4) ** 2, rel=0.05)
