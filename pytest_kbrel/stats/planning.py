"""What a comparison that has not been made yet could find."""

from __future__ import annotations

import math

from pytest_kbrel.stats.estimates import POWER, Estimate


def foreseen_mde(figure: Estimate, alpha: float, correlation: float) -> float | None:
    """Return the drop of ``figure`` that a paired t test at level ``alpha`` would find with 80 % power.

    ``figure`` is estimated before the comparison, and is taken to have the same standard error after it;
    ``correlation`` is that of the facts' values before and after. The difference then has the standard error
    se * sqrt(2 * (1 - correlation)). ``None`` where the estimate has no spread to go by.
    """
    from scipy.special import stdtrit

    if not figure.se or figure.n < 2:
        return None
    df = figure.df or figure.n - 1
    quantiles = float(stdtrit(df, 1 - alpha)) + float(stdtrit(df, POWER))
    return quantiles * figure.se * math.sqrt(2 * (1 - correlation))
