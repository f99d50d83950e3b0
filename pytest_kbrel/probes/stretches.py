"""A large case is asked in stretches of its facts, so that what is in memory does not grow with the case.

No probe looks from one fact to another: asked in stretches or at once, a case has the same outcomes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.probes.monitor_cells import grid_of
from pytest_kbrel.probes.monitor_row import worst_first
from pytest_kbrel.records import Case, ProbeName, Table

# Facts in a stretch: so many that a round has about 20,000 requests. Shorter rounds share less, and leave a
# model with little to do at the end of each.
FACTS: dict[ProbeName, int] = {"monitor": 1024, "head_to_tail": 16384, "reliability": 512}


def stretches_of(case: Case) -> Iterator[Case]:
    """Yield the case with as many facts at a time as :data:`FACTS` says, in their order.

    Raises ``SuiteError`` as :func:`grid_of` does for a case of MONITOR that is too large for one stretch.
    """
    size = FACTS[case.probe]
    facts = case.facts
    if len(facts) > size and case.probe == "monitor":
        # The poorest fact of the whole case says how many contexts all are asked with.
        count = len(grid_of(case).negatives)
        facts = tuple(dataclasses.replace(fact, negatives=fact.negatives[:count]) for fact in facts)
    for start in range(0, max(1, len(facts)), size):
        yield dataclasses.replace(case, facts=facts[start : start + size])


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
