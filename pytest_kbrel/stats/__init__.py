"""Every interval, paired test, correction and power figure; docs/statistics.md says which is used for what.

Facts are the clusters: all that was asked about one fact is one row. Statistics are functions of column
totals (:mod:`pytest_kbrel.metrics.base`), so one delete-one-fact jackknife (Efron and Stein 1981) serves
means, ratios and composites, alone, paired and over several cases.
"""

from pytest_kbrel.stats.clusters import cluster_df, clustered_mean
from pytest_kbrel.stats.differences import paired_difference
from pytest_kbrel.stats.drop_tests import sign_flip
from pytest_kbrel.stats.estimates import (
    FAMILY_LEVEL,
    FEWEST_UNLOST,
    FLAT,
    FRAGILE,
    LEVEL,
    ONE_CLUSTER,
    POWER,
    SIGN_TEST,
    TOO_FEW,
    UNCHANGED,
    UNDEFINED,
    Array,
    ClusteredMean,
    Comparison,
    Difference,
    Estimate,
    Flips,
    Parts,
    Sample,
    Statistic,
    sample,
)
from pytest_kbrel.stats.family import (
    benjamini_hochberg,
    holm,
    hommel,
    sidak,
    sidak_p,
    simes,
)
from pytest_kbrel.stats.intervals import (
    bootstrap_rows,
    estimate,
    jackknife,
    left_out,
    ratio_low,
    wilson,
)
from pytest_kbrel.stats.paired_rates import (
    drop_p,
    fewest_lost,
    mcnemar,
    rate_mde,
    rate_power,
    rate_recovery,
    tango,
)
from pytest_kbrel.stats.power import (
    detectable,
    facts_needed,
    facts_to_alarm,
    facts_to_clear,
    mde,
    null_end,
)
from pytest_kbrel.stats.sequential import (
    boundaries,
    look_level,
    sequential_p,
    spent,
)
from pytest_kbrel.stats.unpaired import contrast, unpaired_contrast, unpaired_difference

__all__ = [
    "FAMILY_LEVEL",
    "FEWEST_UNLOST",
    "FLAT",
    "FRAGILE",
    "LEVEL",
    "ONE_CLUSTER",
    "POWER",
    "SIGN_TEST",
    "TOO_FEW",
    "UNCHANGED",
    "UNDEFINED",
    "Array",
    "ClusteredMean",
    "Comparison",
    "Difference",
    "Estimate",
    "Flips",
    "Parts",
    "Sample",
    "Statistic",
    "benjamini_hochberg",
    "bootstrap_rows",
    "boundaries",
    "cluster_df",
    "clustered_mean",
    "contrast",
    "detectable",
    "drop_p",
    "estimate",
    "facts_needed",
    "facts_to_alarm",
    "facts_to_clear",
    "fewest_lost",
    "holm",
    "hommel",
    "jackknife",
    "left_out",
    "look_level",
    "mcnemar",
    "mde",
    "null_end",
    "paired_difference",
    "rate_mde",
    "rate_power",
    "rate_recovery",
    "ratio_low",
    "sample",
    "sequential_p",
    "sidak",
    "sidak_p",
    "sign_flip",
    "simes",
    "spent",
    "tango",
    "unpaired_contrast",
    "unpaired_difference",
    "wilson",
]
