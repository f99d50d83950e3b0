from __future__ import annotations

import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from pytest_kbrel import stats

P = st.floats(0, 1)
MAYBE = st.lists(st.none() | P, max_size=20)


@pytest.mark.parametrize(
    ("comparisons", "level"), [(0, 0.05), (1, 0.05), (2, 0.0253206), (20, 0.0025614)]
)
def test_sidak(comparisons: int, level: float) -> None:
    assert stats.sidak(comparisons) == pytest.approx(level, abs=1e-7)
    assert 1 - (1 - stats.sidak(comparisons)) ** max(comparisons, 1) == pytest.approx(
        0.05
    )


# statsmodels takes the logarithm of 1 - p.
@pytest.mark.filterwarnings("ignore:divide by zero")
@settings(max_examples=25)
@given(st.lists(P, min_size=1, max_size=30))
@pytest.mark.slow
def test_adjusted_p_values_agree_with_statsmodels_and_scipy(ps: list[float]) -> None:
    assert stats.holm(ps) == pytest.approx(multipletests(ps, method="holm")[1])
    assert stats.benjamini_hochberg(ps) == pytest.approx(
        multipletests(ps, method="fdr_bh")[1]
    )
    assert stats.benjamini_hochberg(ps) == pytest.approx(
        scipy.stats.false_discovery_control(ps)
    )
    single_step = multipletests(ps, method="sidak")[1]
    assert [stats.sidak_p(p, len(ps)) for p in ps] == pytest.approx(single_step)


@given(P, st.integers(1, 500))
def test_the_adjusted_p_value_decides_as_the_adjusted_level_does(
    p: float, comparisons: int
) -> None:
    assume(abs(stats.sidak_p(p, comparisons) - 0.05) > 1e-12)
    assert (stats.sidak_p(p, comparisons) < 0.05) == (p < stats.sidak(comparisons))


@given(MAYBE)
def test_tests_that_were_not_possible_stay_none_and_do_not_count(
    ps: list[float | None],
) -> None:
    given_ps = [p for p in ps if p is not None]
    for adjust in (stats.holm, stats.benjamini_hochberg):
        result = adjust(ps)
        assert [p is None for p in result] == [p is None for p in ps]
        assert [p for p in result if p is not None] == list(adjust(given_ps))


def test_holm_lies_between_bonferroni_and_nothing() -> None:
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert stats.benjamini_hochberg([0.01, 0.04, 0.03]) == pytest.approx(
        (0.03, 0.04, 0.04)
    )
    assert (stats.holm([]), stats.benjamini_hochberg([])) == ((), ())


def test_simes_of_the_worked_example() -> None:
    assert stats.simes([0.0024, 0.0018]) == pytest.approx(0.0024)
    assert stats.simes([0.0018, 0.9]) == pytest.approx(0.0036)
    assert stats.simes([]) == 1.0


def test_hommel_names_both_gates_where_the_larger_p_is_below_the_level() -> None:
    assert stats.hommel([0.0018, 0.0024]) == pytest.approx((0.0024, 0.0024))
    assert stats.hommel([0.0018, 0.9]) == pytest.approx((0.0036, 0.9))


@settings(max_examples=50)
@given(st.lists(P, min_size=1, max_size=12))
def test_hommel_agrees_with_statsmodels(ps: list[float]) -> None:
    assert stats.hommel(ps) == pytest.approx(multipletests(ps, method="hommel")[1])


@given(st.lists(P, min_size=1, max_size=12))
def test_no_gate_is_surer_than_its_case(ps: list[float]) -> None:
    assert min(stats.hommel(ps)) >= stats.simes(ps)
