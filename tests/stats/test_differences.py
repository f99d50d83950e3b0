from __future__ import annotations

import dataclasses
import math
from random import Random

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import stats
from pytest_kbrel.stats.drop_tests import sign_flip
from pytest_kbrel.stats.estimates import FRAGILE, SIGN_TEST, TOO_FEW
from pytest_kbrel.stats.paired_rates import mcnemar, rate_recovery
from tests.stats.samples import (
    bootstrap,
    macro,
    mean,
    paired_difference,
    pooled,
    quotient,
    sample,
)

RNG = np.random.default_rng


@pytest.mark.parametrize(
    ("better", "alternative"), [("higher", "less"), ("lower", "greater")]
)
def test_where_many_facts_changed_it_is_the_paired_t_test(
    better: str, alternative: str
) -> None:
    rng = RNG(1)
    before = rng.random(60)
    after = before + rng.normal(-0.02, 0.2, 60)
    expected = scipy.stats.ttest_rel(after, before, alternative=alternative)
    result = paired_difference(sample(after), sample(before), mean, better=better)  # type: ignore[arg-type]
    assert result.tests[0](0.0) == pytest.approx(expected.pvalue)
    two_sided = scipy.stats.ttest_rel(after, before).confidence_interval(0.95)
    # Two imagined facts widen the interval a little.
    assert (result.estimate.low, result.estimate.high) == pytest.approx(
        (two_sided.low, two_sided.high), abs=0.01
    )


@pytest.mark.parametrize(
    ("better", "alternative"), [("higher", "less"), ("lower", "greater")]
)
def test_where_few_changed_it_is_the_exact_permutation_test(
    better: str, alternative: str
) -> None:
    rng = RNG(2)
    before = rng.random(40)
    after = before.copy()
    after[:9] += rng.normal(-0.1, 0.2, 9)
    result = paired_difference(sample(after), sample(before), mean, better=better)  # type: ignore[arg-type]
    moved = (after - before)[:9]
    theirs = scipy.stats.permutation_test(
        (moved,),
        np.sum,
        permutation_type="samples",
        alternative=alternative,
        n_resamples=np.inf,
    )
    # No two ways of the 512 give the same sum.
    assert result.tests[0](0.0) == pytest.approx(theirs.pvalue - 0.5 / 512)


@given(st.integers(0, 8), st.integers(0, 8))
def test_the_sign_flip_test_of_equal_steps_is_mcnemars(down: int, up: int) -> None:
    steps = np.array([-0.3] * down + [0.3] * up)
    assert sign_flip(steps) == pytest.approx(mcnemar(down, up))


def test_both_tests_agree_where_one_takes_over_from_the_other() -> None:
    rng = RNG(3)
    before = np.zeros(200)
    for shift in (-0.6, -0.3, 0.0, 0.3):
        after = before.copy()
        after[:16] += rng.normal(shift, 0.7, 16)
        result = paired_difference(sample(after), sample(before), mean, better="higher")
        exact = result.tests[0](0.0)
        t_test = scipy.stats.ttest_rel(after, before, alternative="less").pvalue
        assert exact == pytest.approx(t_test, rel=0.35)


def test_the_difference_of_ratios_agrees_with_a_paired_bootstrap() -> None:
    rng = RNG(2)
    before = rng.beta([2, 3], [3, 2], size=(150, 2))
    after = np.clip(before + rng.normal(0.03, 0.1, size=(150, 2)), 0, 1)
    result = paired_difference(
        sample(after), sample(before), quotient, better="lower"
    ).estimate
    drawn = bootstrap([(1.0, sample(after)), (-1.0, sample(before))], quotient, seed=5)
    assert (result.low, result.high) == pytest.approx(drawn, abs=0.01)


def test_pairing_over_several_cases() -> None:
    rng = RNG(3)
    before = [rng.normal(size=n) for n in (12, 20)]
    after = [b + rng.normal(0.1, 0.2, size=len(b)) for b in before]
    differences = [a - b for a, b in zip(after, before, strict=True)]
    variances = [d.var(ddof=1) / len(d) for d in differences]
    se = math.sqrt(sum(variances)) / 2
    welch = sum(variances) ** 2 / sum(
        v**2 / (len(d) - 1) for v, d in zip(variances, differences, strict=True)
    )
    result = paired_difference(sample(*after), sample(*before), macro, better="higher")
    value = np.mean([d.mean() for d in differences])
    assert result.estimate.value == pytest.approx(value)
    assert result.p == pytest.approx(scipy.stats.t.cdf(value / se, welch))


def test_facts_in_several_cases_have_obuchowskis_variance() -> None:
    """Obuchowski 1998, for clusters of three rows each: K / (K - 1) * sum (d_k - n_k * delta)^2 / N^2."""
    rng = RNG(4)
    ids = tuple(f"f{i}" for i in range(60))
    before = rng.integers(0, 2, (3, 60)).astype(float)
    after = np.where(rng.random((3, 60)) < 0.25, 1 - before, before)
    per_fact = (after - before).sum(axis=0)
    delta = per_fact.sum() / 180
    se = math.sqrt(60 / 59 * ((per_fact - 3 * delta) ** 2).sum()) / 180
    result = paired_difference(
        sample(*after, facts=[ids] * 3),
        sample(*before, facts=[ids] * 3),
        pooled,
        better="higher",
        bounds=(0, 1),
        rate=True,
    )
    assert result.estimate.value == pytest.approx(delta)
    assert result.p == pytest.approx(scipy.stats.t.cdf(delta / se, 59))
    assert result.flips is None


def test_the_interval_is_bonett_and_prices_where_steps_are_whole() -> None:
    """Bonett and Price 2012, with t for z: as for a rate, had it to be treated as a figure of any kind."""
    for n, down, up in ((100, 6, 2), (400, 3, 9)):
        before = np.array([1.0] * down + [0.0] * (n - down))
        after = np.array([0.0] * down + [1.0] * up + [0.0] * (n - down - up))
        result = paired_difference(
            sample(after), sample(before), mean, better="higher", bounds=(0, 1)
        )
        worse, better = (down + 1) / (n + 2), (up + 1) / (n + 2)
        half = scipy.stats.t.ppf(0.975, n - 1) * math.sqrt(
            (worse + better - (better - worse) ** 2) / (n + 2)
        )
        assert (result.estimate.low, result.estimate.high) == pytest.approx(
            (better - worse - half, better - worse + half)
        )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_equal_runs_do_not_differ_and_still_are_no_certainty(
    values: list[float],
) -> None:
    result = paired_difference(
        sample(values), sample(values), mean, better="higher", bounds=(0, 1)
    )
    estimate, n = result.estimate, len(values)
    assert (estimate.value, result.p, estimate.note) == (0, 0.5, stats.UNCHANGED)
    t = scipy.stats.t.ppf(0.975, n - 1)
    margin = min(t * 1.959964 / (n + 2), 1.0)
    assert (estimate.low, estimate.high) == pytest.approx((-margin, margin))


def test_unchanged_without_bounds_has_no_interval() -> None:
    result = paired_difference(
        sample([0.5] * 9), sample([0.5] * 9), mean, better="lower"
    )
    assert (result.estimate.value, result.estimate.low, result.estimate.high) == (
        0,
        None,
        None,
    )
    assert (result.p, stats.detectable(result, 0.0, 0.05), result.estimate.note) == (
        0.5,
        None,
        stats.UNCHANGED,
    )


@given(st.lists(st.floats(0, 1), min_size=3, max_size=30), st.floats(-1, 0))
def test_the_first_change_never_narrows_the_interval_on_its_side(
    values: list[float], step: float
) -> None:
    before = sample(values)
    none = paired_difference(
        before, before, mean, better="higher", bounds=(-1, 1)
    ).estimate
    one = paired_difference(
        sample([values[0] + step, *values[1:]]),
        before,
        mean,
        better="higher",
        bounds=(-1, 1),
    ).estimate
    assert one.low <= none.low + 1e-9  # type: ignore[operator]


@given(st.integers(0, 10_000), st.integers(3, 40))
def test_worse_one_way_is_better_the_other_way(seed: int, n: int) -> None:
    rng = RNG(seed)
    before, after = rng.random(n), rng.random(n)
    one = paired_difference(sample(after), sample(before), mean, better="higher")
    other = paired_difference(sample(before), sample(after), mean, better="higher")
    first, second = one.tests[0](0.0), other.tests[0](0.0)
    assert first is not None
    assert second is not None
    assert first + second == pytest.approx(1)
    # The largest of several tests' p is no surer of a direction than the first.
    assert one.p >= first - 1e-12  # type: ignore[operator]
    assert one.estimate.value == pytest.approx(-other.estimate.value)  # type: ignore[operator]
    assert one.estimate.low == pytest.approx(-other.estimate.high)  # type: ignore[operator]


@given(st.integers(0, 10_000), st.integers(0, 25))
def test_one_fact_more_that_is_lost_never_looks_better(seed: int, changed: int) -> None:
    rng = RNG(seed)
    before = rng.random(30)
    after = before.copy()
    after[:changed] = rng.random(changed)
    further = after.copy()
    row = int(rng.integers(30))
    further[row] = before[row] - 1.0
    result = [
        paired_difference(
            sample(v), sample(before), mean, better="higher", bounds=(0, 1)
        )
        for v in (after, further)
    ]
    assert result[1].estimate.low <= result[0].estimate.low + 1e-9  # type: ignore[operator]


THIRDS = st.sampled_from([0.0, 1 / 3, 2 / 3, 1.0])
# Each fact before and after: many changed, or hardly any.
STEPS = st.lists(
    st.tuples(THIRDS, THIRDS) | THIRDS.map(lambda value: (value, value)),
    min_size=4,
    max_size=40,
)


def over_cases(steps: list[tuple[float, float]], *cases: list[int]) -> stats.Difference:
    """Compare the pooled facts of some cases, each of which has the facts at these places, in this order."""
    facts = [tuple(f"f{row}" for row in case) for case in cases]
    before, after = (
        sample(*([steps[row][run] for row in case] for case in cases), facts=facts)
        for run in (0, 1)
    )
    return paired_difference(after, before, pooled, better="higher", bounds=(0, 1))


@given(STEPS, st.randoms(use_true_random=False))
def test_the_order_of_the_facts_does_not_matter(
    steps: list[tuple[float, float]], shuffler: Random
) -> None:
    places = list(range(len(steps)))
    whole = over_cases(steps, places)
    shuffler.shuffle(places)
    shuffled = over_cases(steps, places)
    assert dataclasses.asdict(shuffled.estimate) == pytest.approx(
        dataclasses.asdict(whole.estimate)
    )
    assert (shuffled.p, shuffled.spread) == (
        pytest.approx(whole.p),
        pytest.approx(whole.spread),
    )


@given(STEPS, st.randoms(use_true_random=False), st.integers(0, 36))
def test_facts_cut_into_two_cases_differ_from_them_in_one_by_the_variance_alone(
    steps: list[tuple[float, float]], shuffler: Random, cut: int
) -> None:
    """Figure, sign-flip p and imagined facts know no cases; the variance is a stratified sample's.

    That is no more than twice the variance of all facts together, and may be nothing at all: what differs
    between two cases is no chance. Its degrees of freedom may be those of the smaller case, by which the
    interval then gets wider, but no more of them count than the variance has of its own beside what the
    imagined facts add.
    """
    n = len(steps)
    places = list(range(n))
    shuffler.shuffle(places)
    cut = 2 + cut % (n - 3)
    whole, result = (
        over_cases(steps, places),
        over_cases(steps, places[:cut], places[cut:]),
    )
    one, two = whole.estimate, result.estimate
    assert (two.value, two.n) == (pytest.approx(one.value), n)

    moves = np.array([steps[row][1] - steps[row][0] for row in places])
    parts = [len(part) * part.var(ddof=1) / n**2 for part in (moves[:cut], moves[cut:])]
    gained = sum(parts) - moves.var(ddof=1) / n
    assert sum(parts) <= 2 * moves.var(ddof=1) / n + 1e-12
    assert two.se**2 - one.se**2 == pytest.approx(
        gained * (n / (n + 2)) ** 2 * (n - 1) / n, abs=1e-12
    )  # type: ignore[operator]
    assert one.df == n - 1
    assert min(cut, n - cut) - 1 <= two.df * (1 + 1e-9)
    assert two.df <= n - 1
    for estimate in (one, two):
        centre, half = (
            n / (n + 2) * one.value,
            scipy.stats.t.ppf(0.975, estimate.df) * estimate.se,
        )  # type: ignore[operator]
        ends = max(centre - half, -1.0), min(centre + half, 1.0)
        assert (estimate.low, estimate.high) == pytest.approx(ends, abs=1e-9)

    if np.count_nonzero(moves) <= 16:
        assert result.tests[0](0.0) == pytest.approx(whole.tests[0](0.0))
    elif sum(parts) > 1e-12:
        welch = sum(parts) ** 2 / sum(
            v**2 / (len(moves[s]) - 1)
            for v, s in zip(parts, (slice(cut), slice(cut, n)), strict=True)
        )
        assert result.tests[0](0.0) == pytest.approx(
            scipy.stats.t.cdf(moves.mean() / math.sqrt(sum(parts)), welch)
        )


@pytest.mark.parametrize("step", [0.001, 0.1, 1.0])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_one_change_in_a_small_case_is_as_one_in_a_large_case(
    size: int, step: float
) -> None:
    """A t of a single degree of freedom would make the interval six times as wide."""
    steps = [(0.0, 0.0)] * 29 + [(step, 0.0)]
    places = list(range(30))
    large = over_cases(steps, places).estimate
    small = over_cases(steps, places[:-size], places[-size:])
    assert small.estimate.se == pytest.approx(large.se)
    widths = [e.high - e.low for e in (small.estimate, large)]  # type: ignore[operator]
    assert 1 <= widths[0] / widths[1] + 1e-9 <= 1.14


def test_one_fact_decides_nothing() -> None:
    result = paired_difference(sample([0.0]), sample([1.0]), mean, better="higher")
    assert (result.estimate.value, result.estimate.low, result.p) == (-1.0, None, None)
    assert result.estimate.note == TOO_FEW


@pytest.mark.parametrize("n", [12, 20])
def test_all_facts_moved_alike_is_judged_by_the_sign_test(n: int) -> None:
    result = paired_difference(
        sample([0.0] * n), sample([0.5] * n), mean, better="higher", bounds=(0, 1)
    )
    assert result.tests[0](0.0) == pytest.approx(0.5 ** (n + 1), abs=0)
    assert result.estimate.note == SIGN_TEST
    assert result.estimate.low < -0.5 < result.estimate.high < 0  # type: ignore[operator]
    gained = paired_difference(
        sample([0.5] * n), sample([0.0] * n), mean, better="higher", bounds=(0, 1)
    )
    assert gained.tests[0](0.0) == pytest.approx(1 - 0.5 ** (n + 1), abs=0)


@pytest.mark.parametrize("statistic", [pooled, macro])
@pytest.mark.parametrize("n", [5, 20])
def test_one_case_lost_as_a_whole_and_one_gained_are_no_unchanged_run(
    n: int, statistic: stats.Statistic
) -> None:
    before, after = sample([0.5] * n, [0.5] * n), sample([0.0] * n, [1.0] * n)
    result = paired_difference(after, before, statistic, better="higher", bounds=(0, 1))
    assert (result.estimate.value, result.p) == (pytest.approx(0), pytest.approx(0.5))
    assert result.estimate.note == SIGN_TEST


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_cases_that_each_moved_as_a_whole_are_set_off_against_each_other(
    better: str,
) -> None:
    """Twenty facts each: of 2^40 ways to flip signs, those that fall as low or lower."""
    lost, gained = 5, 4
    ways = np.convolve(
        *(
            np.bincount(
                np.arange(21) * 2 * step,
                [math.comb(20, k) for k in range(21)],
                40 * step + 1,
            )
            for step in (lost, gained)
        )
    )
    column = 2 * gained * 20
    exact = (ways[:column].sum() + ways[column] / 2) / 2**40
    steps = (-lost, gained) if better == "higher" else (lost, -gained)
    result = paired_difference(
        sample(*([0.5 + step / 10] * 20 for step in steps)),
        sample([0.5] * 20, [0.5] * 20),
        pooled,
        better=better,  # type: ignore[arg-type]
        bounds=(0, 1),
    )
    assert result.p == pytest.approx(exact, rel=0.02)
    assert 0.2 < exact < 0.3


def test_three_facts_lost_of_three_are_too_few_for_a_direction() -> None:
    result = paired_difference(
        sample([0.0] * 3), sample([0.5] * 3), mean, better="higher"
    )
    assert result.tests[0](0.0) == 0.0625
    assert result.estimate.low < 0 < result.estimate.high  # type: ignore[operator]


def test_undefined_in_the_baseline_is_no_difference() -> None:
    result = paired_difference(
        sample([[0.5, 1.0]] * 3), sample([[0.0, 0.0]] * 3), quotient, better="lower"
    )
    assert (result.estimate.value, result.p, result.estimate.note) == (
        None,
        None,
        stats.UNDEFINED,
    )


def test_a_difference_that_rests_on_one_fact_has_no_interval() -> None:
    result = paired_difference(
        sample([[0.7, 1.0], [0.0, 0.0], [0.0, 0.0]]),
        sample([[0.9, 1.0], [0.0, 0.0], [0.0, 0.0]]),
        quotient,
        better="higher",
        bounds=(0, 1),
    )
    assert (result.estimate.value, result.p) == (pytest.approx(-0.2), None)
    assert result.estimate.note == FRAGILE


def test_the_detectable_drop_is_detected_with_80_percent_power() -> None:
    rng = RNG(4)
    n, sd, alpha = 60, 0.5, 0.01
    result = 0
    for _ in range(400):
        noise = rng.normal(0, sd, n)
        difference = paired_difference(
            sample(noise), sample(np.zeros(n)), mean, better="higher"
        )
        mde = stats.detectable(difference, 0.0, alpha)
        assert mde is not None
        shifted = paired_difference(
            sample(noise - mde), sample(np.zeros(n)), mean, better="higher"
        )
        assert shifted.p is not None
        result += shifted.p < alpha
    assert 0.74 <= result / 400 <= 0.86


def test_facts_needed_would_indeed_decide() -> None:
    needed = stats.facts_needed(0.02, 0.03, 100, 0.025)
    assert needed == math.ceil(100 * (1.959964 * 0.03 / 0.02) ** 2)
    assert stats.facts_needed(0.0, 0.03, 100, 0.025) is None
    assert stats.facts_needed(1e-9, 0.03, 100, 0.025) is None
    assert stats.facts_needed(1e-200, 0.03, 100, 0.025) is None
    assert stats.facts_needed(1.0, 0.03, 100, 0.025) == 101


@pytest.mark.parametrize(("better", "share"), [("higher", 0.9), ("lower", 1 / 0.9)])
def test_recovery_of_a_mean_is_a_t_interval_of_the_contrast(
    better: str, share: float
) -> None:
    rng = RNG(6)
    before = rng.random(200)
    after = before + rng.normal(0, 0.1, 200)
    result = paired_difference(
        sample(after), sample(before), mean, 0.9, better=better, bounds=(0, 1)
    ).estimate  # type: ignore[arg-type]
    contrast = after - 0.9 * before if better == "higher" else before - 0.9 * after
    assert result.value == pytest.approx(contrast.mean())
    plain = scipy.stats.t.interval(
        0.95, 199, contrast.mean(), scipy.stats.sem(contrast)
    )
    assert result.low == pytest.approx(plain[0], abs=0.005)
    assert result.low < plain[0]  # type: ignore[operator]


def test_recovery_of_a_rate_is_judged_by_the_counts() -> None:
    before, after = [1.0] * 80 + [0.0] * 20, [1.0] * 78 + [0.0] * 22
    result = paired_difference(
        sample(after),
        sample(before),
        mean,
        0.9,
        better="higher",
        bounds=(0, 1),
        rate=True,
    ).estimate
    counts = stats.Flips(n=100, down=2, up=0, both=78)
    expected = rate_recovery(counts, 0.9)
    assert dataclasses.replace(result, high=None) == expected
    other = rate_recovery(counts.mirrored, 1 / 0.9).low
    assert other is not None
    assert result.high == pytest.approx(-0.9 * other)
    lower = paired_difference(
        sample(before),
        sample(after),
        mean,
        0.9,
        better="lower",
        bounds=(0, 1),
        rate=True,
    ).estimate
    assert lower == result
