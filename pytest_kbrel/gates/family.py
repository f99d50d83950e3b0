"""The p-values of a whole run, corrected together once all are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_kbrel import stats
from pytest_kbrel.records import CaseResult


def with_family(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return the cases with Holm's and Benjamini and Hochberg's p-values at each gate that has a p-value.

    They are corrected for the comparisons that were made; one that could not be made (no baseline for it, not
    comparable, too few facts) has no p-value and does not count.
    """
    ps = [gate.p for case in cases for gate in case.gates]
    adjusted = iter(zip(stats.holm(ps), stats.benjamini_hochberg(ps), strict=True))
    corrected = []
    for case in cases:
        pairs = [(gate, *next(adjusted)) for gate in case.gates]
        gates = tuple(
            dataclasses.replace(gate, p_holm=holm, p_bh=bh) for gate, holm, bh in pairs
        )
        corrected.append(dataclasses.replace(case, gates=gates))
    return tuple(corrected)
