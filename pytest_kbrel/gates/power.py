"""Power of gates before anything is asked: minimum detectable effects."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from pytest_kbrel import stats
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.figures import Figure
from pytest_kbrel.gates.rules import FEW_CLUSTERS
from pytest_kbrel.records import Gate, Rule, Table, record

# Nobody knows beforehand how much two models differ. A tenth of the facts, one way or the other, is what a
# fine-tune or a quantisation often moves; for a rate of one half that is a correlation of 0.8.
DISCORDANT = 0.1
CORRELATION = 0.8
# Of the answers to several wordings about one fact. In the recorded candidates of the demo, means over 3
# wordings had 0.42 to 0.58 of the variance of one, means over 7 had 0.24 to 0.34 (benchmarks/wordings.py).
WORDING_CORRELATION = 0.2


@record
class GatePower:
    """The power of one gate over ``n`` facts.

    ``mde`` is the drop found with 80 % power, under the assumptions :data:`DISCORDANT` (rates) and
    :data:`CORRELATION` (all else); ``None`` where ``note`` says why. ``groups`` is the effective number of
    clusters of the facts, where these share any. ``wordings`` is in how many each fact is asked, at least;
    their changes have the correlation :data:`WORDING_CORRELATION`.
    """

    case: str
    metric: str
    rule: Rule
    bound: float
    n: int
    mde: float | None = None
    note: str = ""
    groups: float | None = None
    wordings: int = 1


@record
class Member:
    """One case as far as it is known beforehand: its facts and its blessed outcomes.

    ``before`` has the facts of this case only; ``None`` without a blessed run of it. ``clusters`` are those
    of the facts that share one with others: (fact id, cluster). Each is asked in so many ``wordings``.
    """

    facts: tuple[str, ...]
    before: Table | None = None
    clusters: tuple[tuple[str, str], ...] = ()
    wordings: int = 1


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
        power = GatePower(
            case=case,
            metric=gate.metric,
            rule=gate.rule,
            bound=gate.bound,
            n=len({fact for member in members for fact in member.facts}),
        )
        if figure is None:
            note = "no metric of this name is measured"
            power = dataclasses.replace(power, note=note)
        elif GATE_RULES[gate.rule].relative:
            known = _FigurePower(figure, members)
            mde = known.mde(gate, stats.sidak(comparisons)) if paired else ""
            note = mde if isinstance(mde, str) else ""
            power = dataclasses.replace(
                power,
                n=known.n,
                mde=None if isinstance(mde, str) else mde,
                note=note if known.before else unknown or note,
                groups=known.groups,
                wordings=known.wordings,
            )
        powers.append(power)
    return tuple(powers)


class _FigurePower:
    """The power of a figure over members: ``n`` facts, with the blessed tables where all members have one."""

    def __init__(self, figure: Figure, members: Sequence[Member]) -> None:
        used = [
            members[index] for index in sorted({member for member, _ in figure.columns})
        ]
        tables = [
            member.before
            for member in members
            if member.before is not None and member.before.rows
        ]
        self._figure = figure
        self.before = tables if len(tables) == len(members) else []
        self._facts = [fact for member in used for fact in member.facts]
        facts = set(self._facts)
        if self.before:
            facts &= {row.fact_id for table in self.before for row in table.rows}
        self.n = len(facts)
        self.wordings = min((member.wordings for member in used), default=1)
        names = dict(pair for member in used for pair in member.clusters)
        self._clusters = [names.get(fact, fact) for fact in dict.fromkeys(self._facts)]
        sizes = Counter(self._clusters).values()
        self.groups = None
        if len(sizes) < len(self._clusters):
            self.groups = len(self._clusters) ** 2 / sum(size**2 for size in sizes)

    def mde(self, gate: Gate, alpha: float) -> float | str:
        """Return the drop that a run would find with 80 % power, or why none is known."""
        figure, before = self._figure, self.before
        if before and not figure.is_in(before):
            return "the baseline has not measured it"
        if self.groups is not None and self.groups < FEW_CLUSTERS:
            return f"{self.groups:.1f} answers < {FEW_CLUSTERS}"
        rule = GATE_RULES[gate.rule]
        beyond = rule.beyond(gate)
        if rule.allows_more < 0:
            # A share of the baseline's value must be left.
            value = figure.value(before) if before else None
            beyond = 0.0 if value is None else (1 - beyond) * abs(value)
        if figure.rate and len(set(self._facts)) == len(self._facts):
            change = self._change_of_rate()
        elif before:
            estimate = stats.jackknife([(1.0, figure.sample(before))], figure.statistic)
            if not estimate.se or estimate.n < 2:
                return estimate.note
            se = estimate.se * math.sqrt(2 * (1 - CORRELATION))
            change = _change(spread=(se, estimate.df or estimate.n - 1))
        else:
            return "its spread is known with a baseline only"
        drop = stats.detectable(change, beyond, alpha)
        if drop is None or drop > figure.span:
            return "no drop is found among so few facts"
        return drop

    def _change_of_rate(self) -> stats.Difference:
        """Return the difference from an equally good model; it has no spread where there are too few facts."""
        n = self._figure.count(self.before) if self.before else len(self._facts)
        df = stats.cluster_df(self._clusters)
        if n < 2 or df is None:
            return _change()
        clustered = None
        if self.groups is not None:
            clustered = stats.ClusteredMean(
                value=0.0, se=0.0, df=df, effective=self.groups
            )
        if self.wordings > 1:
            # Of the variance of a fact's change so much is left when its wordings are averaged.
            left = WORDING_CORRELATION + (1 - WORDING_CORRELATION) / self.wordings
            se = math.sqrt(DISCORDANT * left / n)
            return _change(spread=(se, n - 1), clustered=clustered)
        changed = round(DISCORDANT * n)
        flips = stats.Flips(n=n, down=changed, up=0, both=0)
        return _change(flips=flips, clustered=clustered)


def _change(**known: Any) -> stats.Difference:
    return stats.Difference(estimate=stats.Estimate(), **known)
