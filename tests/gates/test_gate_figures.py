"""What a gate's result says in numbers: what was held against the bound, its interval and its p-values."""

from __future__ import annotations

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates import with_family
from pytest_kbrel.stats.paired_rates import drop_p, mcnemar
from tests.gates.tables import answers, case, decided, gate, only, run_of

BEFORE = "+" * 90 + "-" * 20 + "?" * 10
AFTER = "-" * 12 + BEFORE[12:]


@pytest.mark.parametrize("metric", ["accuracy", "hallucination"])
def test_a_drop_is_how_much_worse_the_metric_is(metric: str) -> None:
    result = decided(
        case(gate(metric, "max_drop", 0.02)),
        answers(AFTER),
        answers(BEFORE),
        comparisons=9,
    )
    value = next(value for value in result.metrics if value.name == metric)
    assert value.delta_low is not None
    assert value.delta_high is not None
    sign = -1 if metric == "accuracy" else 1
    actual = only(result)
    assert actual.observed == pytest.approx(0.1)
    assert (actual.low, actual.high) == tuple(
        sorted((sign * value.delta_low, sign * value.delta_high))
    )
    assert actual.p == pytest.approx(drop_p(120, 12, 0, 0.01))
    assert value.p == pytest.approx(mcnemar(12, 0))
    assert actual.p_sidak == pytest.approx(1 - (1 - actual.p) ** 9)


def test_the_corrected_p_decides() -> None:
    after = "-" * 7 + BEFORE[7:]
    for comparisons in (1, 5, 20, 60, 200):
        result = decided(
            case(gate("accuracy", "max_drop", 0.02)),
            answers(after),
            answers(BEFORE),
            comparisons=comparisons,
        )
        actual = only(result)
        assert actual.p is not None
        assert actual.p_sidak is not None
        assert (
            (actual.verdict == "fail")
            == (actual.p_sidak < 0.05)
            == (actual.p < stats.sidak(comparisons))
        )


def test_the_p_values_of_a_run_are_corrected_together() -> None:
    demands = (
        gate("accuracy", "max_drop", 0.0),
        gate("hallucination", "max_drop", 0.0),
    )
    worse, same = answers(AFTER), answers(BEFORE)
    cases = [
        decided(case(*demands, slice="a"), worse, same, comparisons=4),
        decided(
            case(*demands, gate("accuracy", "min", 0.1), slice="b"),
            same,
            same,
            comparisons=4,
        ),
        decided(case(*demands, slice="c"), same, baseline=run_of(), comparisons=4),
    ]
    actual = with_family(cases)
    made = [one for result in actual for one in result.gates if one.p is not None]
    assert len(made) == 4
    assert [one.p_holm for one in made] == list(stats.holm([one.p for one in made]))
    assert [one.p_bh for one in made] == list(
        stats.benjamini_hochberg([one.p for one in made])
    )
    assert all(
        one.p_holm is None for result in actual for one in result.gates if one.p is None
    )
    backwards = with_family(cases[::-1])
    assert [result.gates for result in backwards[::-1]] == [
        result.gates for result in actual
    ]
