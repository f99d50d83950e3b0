"""Power of gates before anything is asked: minimum detectable effects, and gates that cannot fail."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from pytest_kbrel import stats
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.figures import Figure
from pytest_kbrel.gates.measurement import Pairing, measure_figures
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.records import Gate, Outcome, Rule, Table, record

T = TypeVar("T")

# Nobody knows beforehand how much two models differ. A tenth of the facts, one way or the other, is what a
# fine-tune or a quantisation often moves; for a rate of one half that is a correlation of 0.8.
DISCORDANT = 0.1
CORRELATION = 0.8
# A model that lost nothing changes fewer: about 2 % of answers by quantisation, 5 % by a fine-tune elsewhere.
# For a rate of one half that is a correlation of 0.9.
UNCHANGED = 0.05
UNCHANGED_CORRELATION = 0.9
# Of the answers to several wordings about one fact. In the recorded candidates of the demo, means over 3
# wordings had 0.42 to 0.58 of the variance of one, means over 7 had 0.24 to 0.34 (benchmarks/wordings.py).
WORDING_CORRELATION = 0.2
# The chances to pass for which the facts needed are told.
CHANCES = (0.8, 0.98)
# More facts than these are significant when all are lost, or half, in a family of any size that is met.
_FEW = 40
_TOO_FEW = "no drop is found among so few facts"
# Of so many columns all combinations of 0 and 1 are looked at.
_COMBINED = 4


@record
class GatePower:
    """The power of one gate over ``n`` facts.

    ``mde`` is the drop found with 80 % power, under the assumptions :data:`DISCORDANT` (rates) and
    :data:`CORRELATION` (all else); ``None`` where ``note`` says why. ``never`` says why the gate cannot fail,
    empty where it can.

    Of an unchanged model (:data:`UNCHANGED`, :data:`UNCHANGED_CORRELATION`), ``needs`` are the facts with
    which it passes, one for each of :data:`CHANCES`, and ``false_red`` is the chance that it is red by the
    gate's own ``never``; ``None`` where that is not known. ``groups`` is the effective number of clusters of
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
    never: str = ""
    needs: tuple[int | None, ...] = ()
    false_red: float | None = None
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
    waived: str = "",
) -> tuple[GatePower, ...]:
    """Return what each gate could find.

    ``figures`` are over ``members``, one for a single case. ``comparisons`` is the number of relative gates
    of the run; ``unknown`` says why a member has no blessed outcomes, ``waived`` why a failure of the case is
    let pass. ``paired``: the comparison is one fact by fact.
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
            never=waived,
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
            powers.append(
                dataclasses.replace(start, never=waived or _absolute(gate, figure))
            )
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
    never = start.never or _tolerance(gate, figure, before)
    if paired and not never:
        never = _power(gate, figure, members, facts, before, comparisons)
    needs, false_red = (
        _unchanged(gate, figure, members, before) if paired else ((), None)
    )
    clusters = _clusters(figure, members)
    return dataclasses.replace(
        start,
        n=len(facts),
        mde=mde,
        note=unknown if before is None and unknown else note,
        never=never,
        needs=needs,
        false_red=false_red,
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


def _absolute(gate: Gate, figure: Figure) -> str:
    """Return why a bound is met by every value there can be."""
    why = GATE_RULES[gate.rule].always_met(gate.bound, *figure.bounds)
    return why and f"{gate.metric} {why}"


def _tolerance(gate: Gate, figure: Figure, before: _Blessed | None) -> str:
    """Return why the largest drop there can be is allowed."""
    value = None if before is None or before.lacking else before.value
    return MET[gate.rule](gate.bound, figure, value)


def _met_drop(bound: float, figure: Figure, value: float | None) -> str:
    low, high = figure.bounds
    if value is None:
        most, where = high - low, "its range is"
    else:
        most = value - low if figure.better == "higher" else high - value
        where = f"from the baseline's {value:.3f} it can get worse by"
    return f"{where} {most:.3g}, within the tolerance" if bound >= most else ""


def _met_recovery(bound: float, figure: Figure, value: float | None) -> str:
    high = figure.bounds[1]
    if value == 0 and figure.better == "higher":
        return "of a baseline of 0 nothing can be recovered"
    worst = 0.0
    if figure.better == "lower" and value and math.isfinite(high):
        worst = value / high
    return (
        f"at least {worst:.3g} of the baseline is left in any case"
        if bound <= worst
        else ""
    )


# Of each relative rule why every value meets its bound, empty where one may not: (bound, figure, baseline's).
MET: Mapping[Rule, Callable[[float, Figure, float | None], str]] = {
    "max_drop": _met_drop,
    "recovery": _met_recovery,
}


def _as_drop(gate: Gate, beyond: float, before: _Blessed | None) -> float:
    """Return the drop that a gate tolerates before it may fail, of a share that of the baseline's value."""
    if GATE_RULES[gate.rule].allows_more > 0:
        return beyond
    value = None if before is None or before.lacking else before.value
    return (1 - beyond) * abs(value) if value is not None else 0.0


def _power(
    gate: Gate,
    figure: Figure,
    members: Sequence[Member],
    facts: Collection[str],
    before: _Blessed | None,
    comparisons: int,
) -> str:
    """Return why not even the worst outcome there can be is significant."""
    if before is not None and before.lacking:
        return ""
    if len(facts) < 2:
        return "nothing can be concluded from one fact"
    worst, best = (
        extreme(figure, members, worst=True),
        extreme(figure, members, worst=False),
    )
    if worst is None or (before is None and best is None):
        return ""
    alpha = stats.sidak(comparisons)
    was = (
        list(before.tables)
        if before is not None
        else [_filled(member, best or {}) for member in members]
    )
    # A gate may be red by ``never`` without a significant drop.
    fewest = stats.fewest_flips(alpha) if gate.never is None else 1
    for lost in _losses(facts, fewest):
        now = [_lost(table, worst, lost) for table in was]
        pairings = [
            Pairing(candidate=a, baseline=b, differing=(), added=(), unasked=())
            for a, b in zip(now, was, strict=True)
        ]
        measurement = measure_figures([figure], now, pairings, alpha=alpha)
        (result,) = decide([gate], measurement, comparisons=comparisons, explain=False)
        if result.verdict == "fail":
            return ""
    return f"not even the loss of all {len(facts)} facts would be significant (p < {alpha:.2g} is needed)"


def _losses(facts: Collection[str], fewest: int) -> Iterator[set[str]]:
    """Yield facts to lose: all, then fewer of them from either end, at least ``fewest``.

    A quotient that is at its worst in all facts has no spread left. The loss of some can then be significant
    where that of all is not.
    """
    order = sorted(facts)
    every = range(len(order), fewest - 1, -1)
    for count in every if len(order) <= _FEW else (len(order), len(order) // 2):
        yield set(order[:count])
        yield set(order[-count:])


def extreme(
    figure: Figure, members: Sequence[Member], *, worst: bool
) -> dict[str, float] | None:
    """Return the values of a fact, by column, that bring the figure to an end of its range if all have them.

    ``None`` where no values of 0 and 1 are seen to do that.
    """
    end = figure.bounds[0 if (figure.better == "higher") == worst else 1]
    # Where all facts are alike, one tells what many would.
    ones = [dataclasses.replace(member, facts=("",)) for member in members]
    for values in _combinations(figure):
        tables = [_filled(member, values) for member in ones]
        if not figure.lacking(tables) and figure.value(tables) == end:
            return values
    return None


def _combinations(figure: Figure) -> Iterator[dict[str, float]]:
    names = sorted(
        {
            name
            for _, columns in figure.columns
            for name in columns
            if name != figure.over
        }
    )
    # A fact that does not count in the figure can neither be lost nor found.
    counted = {figure.over: 1.0} if figure.over else {}
    if len(names) > _COMBINED:
        yield from ({**dict.fromkeys(names, value), **counted} for value in (0.0, 1.0))
        return
    for values in itertools.product((0.0, 1.0), repeat=len(names)):
        yield {**dict(zip(names, values, strict=True)), **counted}


def _filled(member: Member, values: dict[str, float]) -> Table:
    row = tuple(values.get(name, 0.0) for name in member.columns)
    return Table(
        columns=member.columns,
        rows=tuple(_row(fact, row) for fact in dict.fromkeys(member.facts)),
    )


def _lost(table: Table, values: dict[str, float], lost: Collection[str]) -> Table:
    at = [
        (index, values[name])
        for index, name in enumerate(table.columns)
        if name in values
    ]
    rows = []
    for row in table.rows:
        if row.fact_id in lost:
            changed = list(row.values)
            for index, value in at:
                changed[index] = value
            rows.append(_row(row.fact_id, tuple(changed), row))
        else:
            rows.append(row)
    return Table(columns=table.columns, rows=tuple(rows))


def _row(fact: str, values: tuple[float, ...], like: Outcome | None = None) -> Outcome:
    return Outcome(
        fact_id=fact,
        question="",
        expected="",
        answer="",
        label="wrong",
        values=values,
        prompt_digest=like.prompt_digest if like is not None else "",
    )


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
    least = _least_found(before, members, alpha)
    drop = mde + beyond if least is None else max(mde + beyond, least)
    low, high = figure.bounds
    if drop > high - low:
        return None, _TOO_FEW
    return drop, "or more" if least is None else ""


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


def _unchanged(
    gate: Gate, figure: Figure, members: Sequence[Member], before: _Blessed | None
) -> tuple[tuple[int | None, ...], float | None]:
    """Return how many facts let an unchanged model pass, and how often it is red by ``never``.

    Facts are taken to change independently; those in clusters are judged by these as well.
    """
    if before is not None and before.lacking:
        return (), None
    within = _as_drop(gate, gate.bound, before)
    never = None if gate.never is None else _as_drop(gate, gate.never, before)
    ids = [fact for member in _used(figure, members) for fact in member.facts]
    once = figure.rate and len(set(ids)) == len(ids)
    is_rate = once and _wordings(figure, members) == 1
    n = len(set(ids)) if before is None else figure.count(before.tables)
    if not n or within <= 0:
        return (), None
    spreads: list[tuple[float, float]] = []
    if once:
        se = math.sqrt(UNCHANGED * _variance_left(figure, members) / n)
        if not is_rate:
            spreads.append((se, max(n - 1, 1)))
    else:
        estimate = None if before is None else before.estimate
        if estimate is None or not estimate.se or estimate.n < 2:
            return (), None
        n, se = estimate.n, estimate.se * math.sqrt(2 * (1 - UNCHANGED_CORRELATION))
        spreads.append((se, estimate.df or n - 1))
    clusters = _clusters(figure, members)
    if clusters is not None and clusters[1] is None:
        # Facts that all share one answer never pass, and their interval has no end.
        return (None,) * len(CHANCES), None if never is None else 1.0
    if clusters is not None and clusters[1] is not None:
        spreads.append((se, clusters[1]))
    needs: list[int | None] = []
    for chance in CHANCES:
        numbers = [stats.facts_to_pass(n, se, df, within, chance) for se, df in spreads]
        if is_rate:
            by_facts = stats.rate_facts_to_pass(UNCHANGED, within, chance)
            numbers = [] if by_facts is None else [by_facts, *numbers]
        needs.append(max(numbers, default=None))
    reds = (
        [] if never is None else [stats.end_beyond(never, se, df) for se, df in spreads]
    )
    if is_rate and never is not None:
        reds.append(1 - stats.rate_within(n, UNCHANGED, never, or_unlost=True))
    return tuple(needs), max(reds, default=None)


def _least_found(
    before: _Blessed, members: Sequence[Member], alpha: float
) -> float | None:
    """Return the drop when so many facts are lost as the sign-flip test needs at least to call it one.

    However even a spread looks, fewer changed facts are never significant. ``None`` where no values of 0
    and 1 are seen to be the worst.
    """
    figure, was = before.figure, before.value
    worst = extreme(figure, members, worst=True)
    if worst is None or was is None:
        return None
    moved = set[str]()
    for table in _used(figure, before.tables):
        at = [
            (table.columns.index(name), value)
            for name, value in worst.items()
            if name in table.columns
        ]
        moved |= {
            row.fact_id
            for row in table.rows
            if any(row.values[i] != value for i, value in at)
        }
    lost = set(sorted(moved)[: stats.fewest_flips(alpha)])
    now = figure.value([_lost(table, worst, lost) for table in before.tables])
    return None if now is None else abs(was - now)
