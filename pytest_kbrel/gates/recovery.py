"""The share of the baseline's figure that the candidate keeps, with its interval."""

from __future__ import annotations

from pytest_kbrel import stats
from pytest_kbrel.gates.measurement import Measured, Measurement


def recovered(
    measurement: Measurement, measured: Measured, share: float
) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval of ``share``, the ratio above 0 as the rule ``recovery`` takes it.

    It holds the shares that the gate's own test would not rule out, so that a gate passes where its bound is
    at most the lower end. ``None`` for an end that is infinite, or that the facts do not give.
    """
    assert measured.difference is not None
    flips = measured.difference.flips

    def above(of: float) -> float | None:
        return measurement.contrast(measured, of).low

    def below(of: float) -> float | None:
        if flips is not None:
            # The score test gives one end; with before and after exchanged it gives the other.
            return stats.rate_recovery(flips.mirrored, of).low
        high = measurement.contrast(measured, 1 / of).high
        return None if high is None else -high * of

    low = stats.ratio_low(above, share)
    inverse = stats.ratio_low(below, 1 / share)
    return low, 1 / inverse if inverse else None
