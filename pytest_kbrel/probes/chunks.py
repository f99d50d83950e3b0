"""A large case is asked in stretches of its facts, so that what is in memory does not grow with the case.

No probe looks from one fact to another: asked in stretches or at once, a case has the same outcomes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.probes.monitor.row import worst_first
from pytest_kbrel.probes.registry import IMPLEMENTATIONS
from pytest_kbrel.records import Case, ProbeName, Table

FACTS: dict[ProbeName, int] = {name: probe.chunk for name, probe in PROBES.items()}


def stretches_of(case: Case) -> Iterator[Case]:
    """Yield the case with as many facts at a time as :data:`FACTS` says, in their order.

    Raises ``SuiteError`` for a case of MONITOR that is too large for one stretch, as
    :func:`~pytest_kbrel.probes.monitor.cells.grid_of` does.
    """
    size = FACTS[case.probe]
    if len(case.facts) > size:
        case = IMPLEMENTATIONS[case.probe].level(case)
    for start in range(0, max(1, len(case.facts)), size):
        yield dataclasses.replace(case, facts=case.facts[start : start + size])


def joined(results: Sequence[ProbeResult]) -> ProbeResult:
    """Return the result of a case from those of its stretches, at least one."""
    table = Table(
        columns=results[0].table.columns, rows=tuple(row for result in results for row in result.table.rows)
    )
    explain = {pair[0].fact_id: pair for result in results for pair in result.explain}
    return ProbeResult(
        table=table,
        errors=tuple(error for result in results for error in result.errors),
        explain=tuple(explain[fact] for fact in worst_first(table) if fact in explain) if explain else (),
    )
