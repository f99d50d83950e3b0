"""The sentences in which judgements give their reasons, part by part."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.measurement import Measured
from pytest_kbrel.gates.reasons import (
    describe_open_end,
    moved,
    power,
)
from pytest_kbrel.records import MetricValue
from pytest_kbrel.stats import power as detection
from tests.gates.test_statistics import figure


def measured(
    *, estimate: Any = None, unasked: int = 0, mde: float | None = None, **more: Any
) -> Measured:
    given = {
        "name": "m",
        "better": "higher",
        "value": 0.5,
        "baseline": 0.75,
        "delta": -0.25,
        "paired": 9,
    }
    spread = None if mde is None else (mde / detection.mde(1.0, 30.0, 0.05), 30.0)
    difference = stats.Difference(
        estimate=stats.Estimate(**(estimate or {})), spread=spread, worse=1
    )
    return Measured(
        figure=figure((0, "x")),
        value=MetricValue(**{**given, **more}),
        difference=difference,
        unasked=unasked,
    )


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (measured(), "m fell by 0.250 from 0.750 to 0.500 (paired over 9 facts)"),
        (
            measured(delta=0.25),
            "m rose by 0.250 from 0.750 to 1.000 (paired over 9 facts)",
        ),
        (
            measured(
                delta_low=-0.5, p=0.0, unasked=1, paired=1, estimate={"note": "why"}
            ),
            "m fell by 0.250 [-0.500, inf] from 0.750 to 0.500 "
            "(paired over 1 fact of the baseline's 2, p of no drop < 0.0001, why)",
        ),
        (
            measured(delta_high=0.0, p=0.0001),
            "m fell by 0.250 [-inf, 0.000] from 0.750 to 0.500 (paired over 9 facts, p of no drop 0.0001)",
        ),
        (measured(delta=0.0), "m did not change from 0.750 (paired over 9 facts)"),
        (
            measured(
                delta=0.0, delta_low=0.0, delta_high=0.0, estimate={"note": "why"}
            ),
            "m did not change [0.000, 0.000] from 0.750 (why, paired over 9 facts)",
        ),
        (
            measured(baseline=0.0, delta=0.25),
            "m rose by 0.250 from 0.000 to 0.250 (paired over 9 facts)",
        ),
    ],
)
def test_how_a_figure_moved(of: Measured, said: str) -> None:
    assert moved(of) == said


@pytest.mark.parametrize(
    ("mde", "better", "said"),
    [
        (None, "higher", ""),
        (0.0, "higher", "; a drop of 0.000 would be found with 80 % power"),
        (0.125, "lower", "; a rise of 0.125 would be found with 80 % power"),
        # The figure is at most 1.
        (1.2, "higher", "; no drop would be found with 80 % power"),
        (1.2, "lower", "; no rise would be found with 80 % power"),
    ],
)
def test_which_drop_would_be_found(mde: float | None, better: Any, said: str) -> None:
    assert power(measured(mde=mde, better=better), 0.0) == said
    # Without a spread, or with none, no number of facts can be told.
    for se in (None, 0.0):
        assert (
            describe_open_end(
                measured(mde=mde, better=better, estimate={"se": se}),
                beyond=0.0,
                clear=0.0,
            )
            == said
        )
