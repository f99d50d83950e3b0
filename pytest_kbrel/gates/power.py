"""Power of gates before anything is asked: minimum detectable effects."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from pytest_kbrel import stats
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.figures import Figure
from pytest_kbrel.records import Gate, Rule, Table, record

T = TypeVar("T")

# Nobody knows beforehand how much two models differ. A tenth of the facts, one way or the other, is what a
# fine-tune or a quantisation often moves; for a rate of one half that is a correlation of 0.8.
DISCORDANT = 0.1
CORRELATION = 0.8
# Of the answers to several wordings about one fact. In the recorded candidates of the demo, means over 3
# wordings had 0.42 to 0.58 of the variance of one, means over 7 had 0.24 to 0.34 (benchmarks/wordings.py).
WORDING_CORRELATION = 0.2
_TOO_FEW = "no drop is found among so few facts"


@record
class GatePower:
    """The power of one gate over ``n`` facts.

    ``mde`` is the drop found with 80 % power, under the assumptions :data:`DISCORDANT` (rates) and
    :data:`CORRELATION` (all else); ``None`` where ``note`` says why. ``groups`` is the effective number of clusters of
    the facts, where these share any. ``wordings`` is in how many each fact is asked, at least; their changes
    have the correlation :data:`WORDING_CORRELATION`.
    """

    case: str
    metric: str
    rule: Rule
    bound: float
    n: int
    line: int = 0
    mde: float | None = None
    note: str = ""
    groups: float | None = None
    wordings: int = 1


@record
class Member:
    """One case as far as it is known beforehand: its facts, its table's columns, and its blessed outcomes.

    ``before`` has the facts of this case only; ``None`` without a blessed run of it. ``clusters`` are those
    of the facts that share one with others: (fact id, cluster). Each is asked in so many ``wordings``.
    """

    facts: tuple[str, ...]
    columns: tuple[str, ...]
    before: Table | None = None
    clusters: tuple[tuple[str, str], ...] = ()
    wordings: int = 1


class _Blessed:
    """A figure in the blessed run, whatever is told of it computed once."""

    def __init__(self, figure: Figure, tables: tuple[Table, ...]) -> None:
        self.figure = figure
        self.tables = tables
        self.lacking = bool(figure.lacking(tables))

    @functools.cached_property
    def value(self) -> float | None:
        """The value of the figure."""
        return self.figure.value(self.tables)

    @functools.cached_property
    def estimate(self) -> stats.Estimate:
        """The figure with its standard error."""
        return stats.jackknife(
            [(1.0, self.figure.sample(self.tables))], self.figure.statistic
        )


def gate_powers(
    case: str,
    gates: Sequence[Gate],
    figures: Sequence[Figure],
    members: Sequence[Member],
    *,
    comparisons: int,
    unknown: str = "",
    paired: bool = True,
) -> tuple[GatePower, ...]:
    """Return what each gate could find.

    ``figures`` are over ``members``, one for a single case. ``comparisons`` is the number of relative gates
    of the run; ``unknown`` says why a member has no blessed outcomes. ``paired``: the comparison is one fact by fact.
    """
    by_name = {figure.name: figure for figure in figures}
    powers = []
    for gate in gates:
        figure = by_name.get(gate.metric)
        start = GatePower(
            case=case,
            metric=gate.metric,
            rule=gate.rule,
            bound=gate.bound,
            n=len({fact for member in members for fact in member.facts}),
            line=gate.line,
        )
        if figure is None:
            powers.append(
                dataclasses.replace(start, note="no metric of this name is measured")
            )
        elif GATE_RULES[gate.rule].relative:
            powers.append(
                _relative(start, gate, figure, members, comparisons, unknown, paired)
            )
        else:
            powers.append(start)
    return tuple(powers)


def _relative(
    start: GatePower,
    gate: Gate,
    figure: Figure,
    members: Sequence[Member],
    comparisons: int,
    unknown: str,
    paired: bool,
) -> GatePower:
    alpha = stats.sidak(comparisons)
    facts = {fact for member in _used(figure, members) for fact in member.facts}
    before = _before(figure, members)
    if before is not None:
        facts &= {row.fact_id for table in before.tables for row in table.rows}
    beyond = GATE_RULES[gate.rule].beyond(gate)
    mde, note = (
        _mde(figure, members, before, alpha, _as_drop(gate, beyond, before))
        if paired
        else (None, "")
    )
    clusters = _clusters(figure, members)
    return dataclasses.replace(
        start,
        n=len(facts),
        mde=mde,
        note=unknown if before is None and unknown else note,
        groups=None if clusters is None else clusters[0],
        wordings=_wordings(figure, members),
    )


def _used(figure: Figure, of_members: Sequence[T]) -> list[T]:
    """Return those of the members that the figure is over."""
    return [
        of_members[member]
        for member in sorted({member for member, _ in figure.columns})
    ]


def _wordings(figure: Figure, members: Sequence[Member]) -> int:
    return min((member.wordings for member in _used(figure, members)), default=1)


def _variance_left(figure: Figure, members: Sequence[Member]) -> float:
    """Return the share of the variance of a fact's change that is left when its wordings are averaged."""
    return WORDING_CORRELATION + (1 - WORDING_CORRELATION) / _wordings(figure, members)


def _before(figure: Figure, members: Sequence[Member]) -> _Blessed | None:
    tables = tuple(
        member.before
        for member in members
        if member.before is not None and member.before.rows
    )
    return _Blessed(figure, tables) if len(tables) == len(members) else None


def _as_drop(gate: Gate, beyond: float, before: _Blessed | None) -> float:
    """Return the drop that a gate tolerates before it may fail, of a share that of the baseline's value."""
    if GATE_RULES[gate.rule].allows_more > 0:
        return beyond
    value = None if before is None or before.lacking else before.value
    return (1 - beyond) * abs(value) if value is not None else 0.0


def _mde(
    figure: Figure,
    members: Sequence[Member],
    before: _Blessed | None,
    alpha: float,
    beyond: float,
) -> tuple[float | None, str]:
    if before is not None and before.lacking:
        return None, "the baseline has not measured it"
    ids = [fact for member in _used(figure, members) for fact in member.facts]
    if figure.rate and len(set(ids)) == len(ids):
        n = len(ids) if before is None else figure.count(before.tables)
        se = math.sqrt(DISCORDANT * _variance_left(figure, members) / max(n, 1))
        if _wordings(figure, members) == 1:
            drop = stats.rate_mde(n, DISCORDANT * n, alpha, beyond) if n else None
        else:
            drop = beyond + stats.mde(se, n - 1, alpha) if n > 1 else None
        if drop is not None:
            drop = max(drop, _by_clusters(members, figure, se, alpha, beyond))
        return (drop, "") if drop is not None and drop <= 1 else (None, _TOO_FEW)
    if before is None:
        return None, "its spread is known with a baseline only"
    mde = stats.planned_mde(before.estimate, alpha, CORRELATION)
    if mde is None:
        return None, before.estimate.note
    low, high = figure.bounds
    drop = mde + beyond
    return (None, _TOO_FEW) if drop > high - low else (drop, "or more")


def _by_clusters(
    members: Sequence[Member], figure: Figure, se: float, alpha: float, beyond: float
) -> float:
    """Return the drop that the test by clusters would find, were facts to change independently.

    It is 0 where every fact is alone.
    """
    clusters = _clusters(figure, members)
    if clusters is None:
        return 0.0
    return (
        beyond + stats.mde(se, clusters[1], alpha)
        if clusters[1] is not None
        else math.inf
    )


def _clusters(
    figure: Figure, members: Sequence[Member]
) -> tuple[float, float | None] | None:
    """Return the effective number of clusters of a figure's facts, and the degrees of freedom they leave.

    ``None`` where every fact is alone.
    """
    used = _used(figure, members)
    names = dict(pair for member in used for pair in member.clusters)
    facts = list(dict.fromkeys(fact for member in used for fact in member.facts))
    numbers = {
        name: number
        for number, name in enumerate(dict.fromkeys(names.get(f, f) for f in facts))
    }
    if len(numbers) == len(facts):
        return None
    of_facts = [numbers[names.get(fact, fact)] for fact in facts]
    sizes = Counter(of_facts).values()
    return len(facts) ** 2 / sum(size**2 for size in sizes), stats.cluster_df(of_facts)
