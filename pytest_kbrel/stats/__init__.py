"""Every interval, paired test, correction and power figure; docs/statistics.md says which is used for what.

Facts are the clusters: all that was asked about one fact is one row. Statistics are functions of column
totals (:mod:`pytest_kbrel.metrics.base`), so one delete-one-fact jackknife (Efron and Stein 1981) serves
means, ratios and composites, alone, paired and over several cases.
"""

from typing import TYPE_CHECKING

from pytest_kbrel.stats.differences import paired_difference, paired_recovery
from pytest_kbrel.stats.estimates import (
    FAMILY_LEVEL,
    FLAT,
    FRAGILE,
    LEVEL,
    POWER,
    SIGN_TEST,
    TOO_FEW,
    UNCHANGED,
    UNDEFINED,
    Difference,
    Estimate,
    Flips,
)
from pytest_kbrel.stats.family import benjamini_hochberg, holm, sidak, sidak_p
from pytest_kbrel.stats.flips import fewest_flips, sign_flip
from pytest_kbrel.stats.intervals import estimate, jackknife, wilson
from pytest_kbrel.stats.paired_rates import mcnemar, rate_mde, rate_recovery, tango
from pytest_kbrel.stats.planning import foreseen_mde
from pytest_kbrel.stats.power import facts_needed, facts_to_alarm, facts_to_clear
from pytest_kbrel.stats.ratios import ratio_low
from pytest_kbrel.stats.resampling import bootstrap
from pytest_kbrel.stats.samples import Sample, sample
from pytest_kbrel.stats.unpaired import contrast, unpaired_difference

if TYPE_CHECKING:
    from pytest_kbrel.stats.samples import Array, Parts, Statistic

__all__ = [
    "FAMILY_LEVEL",
    "FLAT",
    "FRAGILE",
    "LEVEL",
    "POWER",
    "SIGN_TEST",
    "TOO_FEW",
    "UNCHANGED",
    "UNDEFINED",
    "Array",
    "Difference",
    "Estimate",
    "Flips",
    "Parts",
    "Sample",
    "Statistic",
    "benjamini_hochberg",
    "bootstrap",
    "contrast",
    "estimate",
    "facts_needed",
    "facts_to_alarm",
    "facts_to_clear",
    "fewest_flips",
    "foreseen_mde",
    "holm",
    "jackknife",
    "mcnemar",
    "paired_difference",
    "paired_recovery",
    "rate_mde",
    "rate_recovery",
    "ratio_low",
    "sample",
    "sidak",
    "sidak_p",
    "sign_flip",
    "tango",
    "unpaired_difference",
    "wilson",
]
