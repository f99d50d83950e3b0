"""Every interval, paired test, correction and power figure; docs/statistics.md says which is used for what.

Facts are the clusters: all that was asked about one fact is one row. Statistics are functions of column
totals (:mod:`pytest_kbrel.metrics.base`), so one delete-one-fact jackknife (Efron and Stein 1981) serves
means, ratios and composites, alone, paired and over several cases.
"""

from pytest_kbrel.stats.clusters import ClusteredMean, Clusters, cluster_df, clustered_mean
from pytest_kbrel.stats.differences import paired_difference, paired_recovery
from pytest_kbrel.stats.drop_tests import fewest_flips, sign_flip
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
    Difference,
    Estimate,
    Flips,
    Parts,
    Sample,
    Statistic,
    sample,
)
from pytest_kbrel.stats.family import benjamini_hochberg, holm, hommel, sidak, sidak_p, simes
from pytest_kbrel.stats.intervals import bootstrap, estimate, jackknife, ratio_low, wilson
from pytest_kbrel.stats.paired_rates import drop_p, fewest_lost, mcnemar, rate_mde, rate_power, rate_recovery, tango
from pytest_kbrel.stats.power import (
    detectable,
    facts_needed,
    facts_to_alarm,
    facts_to_clear,
    mde,
    null_end,
    planned_mde,
)
from pytest_kbrel.stats.rate_verdicts import (
    RateVerdicts,
    end_beyond,
    facts_to_pass,
    rate_facts_to_pass,
    rate_verdicts,
    rate_within,
)
from pytest_kbrel.stats.sequential import boundaries, spent
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
    "Clusters",
    "Difference",
    "Estimate",
    "Flips",
    "Parts",
    "RateVerdicts",
    "Sample",
    "Statistic",
    "benjamini_hochberg",
    "bootstrap",
    "boundaries",
    "cluster_df",
    "clustered_mean",
    "contrast",
    "detectable",
    "drop_p",
    "end_beyond",
    "estimate",
    "facts_needed",
    "facts_to_alarm",
    "facts_to_clear",
    "facts_to_pass",
    "fewest_flips",
    "fewest_lost",
    "holm",
    "hommel",
    "jackknife",
    "mcnemar",
    "mde",
    "null_end",
    "paired_difference",
    "paired_recovery",
    "planned_mde",
    "rate_facts_to_pass",
    "rate_mde",
    "rate_power",
    "rate_recovery",
    "rate_verdicts",
    "rate_within",
    "ratio_low",
    "sample",
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
