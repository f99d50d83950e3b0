"""Every interval, paired test, correction and power figure; docs/statistics.md says which is used for what.

Facts are the clusters: all that was asked about one fact is one row. Statistics are functions of column
totals (:mod:`pytest_kbrel.metrics.base`), so one delete-one-fact jackknife (Efron and Stein 1981) serves
means, ratios and composites, alone, paired and over several cases.
"""

from pytest_kbrel.stats.clusters import cluster_df
from pytest_kbrel.stats.differences import (
    detectable,
    facts_needed,
    facts_to_alarm,
    facts_to_clear,
    null_end,
    paired_difference,
)
from pytest_kbrel.stats.estimates import (
    FAMILY_LEVEL,
    FEWEST_UNLOST,
    LEVEL,
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
from pytest_kbrel.stats.intervals import (
    bootstrap_rows,
    estimate,
    jackknife,
    ratio_low,
    wilson,
)
from pytest_kbrel.stats.paired_rates import unpaired_contrast, unpaired_difference
from pytest_kbrel.stats.sequential import (
    benjamini_hochberg,
    holm,
    hommel,
    look_level,
    sequential_p,
    sidak,
    sidak_p,
    simes,
)
