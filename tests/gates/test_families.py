"""The gates of one case together, at the level of the family of all cases of the suite file."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.measurement import Measured, Measurement, measure_figures, pair
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.metrics import metrics_for
from tests.gates.tables import HEAD_TO_TAIL, answers, gate

GATES = (gate("accuracy", "max_drop", 0.0), gate("hallucination", "max_drop", 0.0))


def measured(*ps: float, m: int) -> Measurement:
    """Return a measurement in which the gates' figures have these p-values."""
    figures = [
        of
        for of in figures_of(metrics_for("head_to_tail", "a", HEAD_TO_TAIL))
        if of.name in METRICS
    ]
    before, after = answers("+" * 60), answers("-" * 12 + "+" * 48)
    pairing = pair(after, before)
    measurement = measure_figures(figures, (after,), (pairing,), comparisons=m)

    def known(one: Measured, p: float) -> Measured:
        assert one.difference is not None
        return dataclasses.replace(
            one,
            difference=dataclasses.replace(one.difference, tests=(lambda allowed: p,)),
        )

    by_name = {one.figure.name: one for one in measurement.figures}
    return dataclasses.replace(
        measurement,
        figures=tuple(
            known(by_name[name], p) for name, p in zip(METRICS, ps, strict=True)
        ),
    )


METRICS = tuple(of.metric for of in GATES)


@pytest.mark.parametrize(
    ("ps", "m", "verdicts"),
    [
        # The level is .0025614 for 20 cases and .0022277 for 23. The case's p is .0024 by Simes, not .0036.
        ((0.0018, 0.0024), 20, ("fail", "fail")),
        ((0.0018, 0.0024), 23, ("inconclusive", "inconclusive")),
        # One of two gates fails if it is below half of the level, both if the larger is below all of it.
        ((0.0011, 0.4), 23, ("fail", "inconclusive")),
        ((0.4, 0.0012), 23, ("inconclusive", "inconclusive")),
        ((0.0018, 0.4), 20, ("inconclusive", "inconclusive")),
        ((0.0022, 0.0021), 23, ("fail", "fail")),
    ],
)
def test_simes_decides_for_a_case_and_hommel_names_its_gates(
    ps: tuple[float, float], m: int, verdicts: tuple[str, str]
) -> None:
    results = decide(GATES, measured(*ps, m=m))
    assert tuple(result.verdict for result in results) == verdicts
    assert tuple(result.p for result in results) == ps


def test_the_smallest_p_of_a_case_is_corrected_by_simes_and_sidak() -> None:
    results = decide(GATES, measured(0.0018, 0.0024, m=20))
    for result in results:
        assert result.p_sidak == pytest.approx(stats.sidak_p(0.0024, 20))
    assert stats.sidak(20) == pytest.approx(0.0025614, abs=5e-8)
    assert stats.sidak(23) == pytest.approx(0.0022277, abs=5e-8)
