"""Samples for tests of the statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_kbrel import stats
from pytest_kbrel.metrics.base import ratio
from pytest_kbrel.stats import Sample


def sample(
    *members: npt.ArrayLike, facts: Sequence[tuple[str, ...]] | None = None
) -> Sample:
    """Make a sample of one array a member, each fact its own unless ``facts`` says otherwise."""
    arrays = [np.asarray(member, dtype=float) for member in members]
    arrays = [array if array.ndim == 2 else array.reshape(-1, 1) for array in arrays]
    ids = [
        tuple(f"{j}/{i}" for i in range(len(array))) for j, array in enumerate(arrays)
    ]
    return Sample(values=tuple(arrays), facts=tuple(facts or ids))


def mean(parts: Any) -> Any:
    """The mean of the first column of the first member."""
    return ratio(parts[0][0][..., 0], parts[0][1])


def quotient(parts: Any) -> Any:
    """The sum of the first column over that of the second."""
    return ratio(parts[0][0][..., 0], parts[0][0][..., 1])


def macro(parts: Any) -> Any:
    """The plain mean over members of their first columns' means."""
    return sum(ratio(totals[..., 0], n) for totals, n in parts) / len(parts)


def pooled(parts: Any) -> Any:
    """The mean of the first column over all members' rows."""
    return ratio(sum(t[..., 0] for t, _ in parts), sum(n for _, n in parts))


def paired_difference(*of: Any, **how: Any) -> stats.Difference:
    """Compare two samples with a statistic, and perhaps a share of the baseline."""
    return stats.paired_difference(stats.Comparison(*of, **how))
