"""Figures: metrics as statistics over the tables of one case, of several of a probe, or of all (pooled).

The pooled figure is the share of facts that were answered as they should be over all slices of all probes of
a suite: the most powerful test of whether anything was lost, since many slices may each lose too little to
show. A fact that several slices ask about is one cluster and moves with all its answers.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import fields, replace

import numpy as np

from pytest_kbrel import stats
from pytest_kbrel.catalogue.metrics import METRICS, Better
from pytest_kbrel.catalogue.probes import RELIABILITY, TOP10, probe_named
from pytest_kbrel.gates.integrity import is_empty
from pytest_kbrel.metrics import MetricFormula, metrics_for
from pytest_kbrel.metrics.base import MetricTraits, mean, rate
from pytest_kbrel.metrics.reliability import average, c_wrong
from pytest_kbrel.records import (
    BUCKETS,
    CaseResult,
    Change,
    Outcome,
    Reply,
    Table,
    record,
)

# Sums of floats do not end on the last digit.
_SLACK = 1e-9
_fact_of = operator.attrgetter("fact_id")


@record
class Figure(MetricTraits):
    """A metric of one case, or one over several cases ("members").

    ``columns`` has (member number, column names) for each member concerned; ``statistic`` takes their
    (totals, n) in this order. It is made of as many parts as ``terms``, each over the pooled facts of so many
    of the columns; ``shares`` are those of the terms in it, adding up to 1 (empty: all alike).
    """

    columns: tuple[tuple[int, tuple[str, ...]], ...]
    statistic: stats.Statistic
    terms: tuple[int, ...] = (1,)
    shares: tuple[float, ...] = ()

    @property
    def span(self) -> float:
        """The largest change that the figure can have."""
        return self.bounds[1] - self.bounds[0]

    def case_weights(self, tables: Sequence[Table]) -> tuple[float, ...]:
        """Return the share of each of :attr:`columns` in the figure: terms by theirs, facts alike in them."""
        weights: list[float] = []
        for share, group in self._counted(tables):
            facts = sum(map(len, group)) or 1
            weights += (share * len(counted) / facts for counted in group)
        return tuple(weights)

    def count(self, tables: Sequence[Table]) -> int:
        """Return the number of facts the figure is over, all members together, each once."""
        counts, facts = 0.0, set[str]()
        for member, _ in self.columns:
            counted = self._counts(tables[member])
            if self.over in tables[member].columns:
                counts += sum(counted.values())
            else:
                facts |= counted.keys()
        return round(counts) + len(facts)

    def weight(self, tables: Sequence[Table]) -> int:
        """Return of how many facts, at least, one is: no fact moves the figure by more than that share.

        In a term over pooled facts one is one of them all, whatever case asks about it; what a fact moves in
        several terms, or several times in one, adds up.
        """
        moved: dict[str, float] = {}
        for share, group in self._counted(tables):
            total = math.fsum(
                itertools.chain.from_iterable(of.values() for of in group)
            )
            for fact, count in itertools.chain.from_iterable(
                of.items() for of in group
            ):
                # Without any that counts, the first one is all there is.
                part = share * max(count, 1.0) / total if total else 1.0
                moved[fact] = moved.get(fact, 0.0) + part
        return max(math.floor(1 / max(moved.values(), default=1.0) + _SLACK), 1)

    def _counted(
        self, tables: Sequence[Table]
    ) -> Iterator[tuple[float, list[dict[str, float]]]]:
        """Yield the share of each term, and how often the facts of each of its columns count."""
        columns = iter(self.columns)
        shares = self.shares or (1 / len(self.terms),) * len(self.terms)
        for share, size in zip(shares, self.terms, strict=True):
            group = itertools.islice(columns, size)
            yield share, [self._counts(tables[member]) for member, _ in group]

    def _counts(self, table: Table) -> dict[str, float]:
        if self.over not in table.columns:
            return dict.fromkeys(map(_fact_of, table.rows), 1.0)
        column = table.columns.index(self.over)
        return {row.fact_id: row.values[column] for row in table.rows}

    def is_in(self, tables: Sequence[Table]) -> bool:
        """Return True if the tables have all columns that the figure needs."""
        return all(
            set(names) <= set(tables[member].columns) for member, names in self.columns
        )

    def sample(self, tables: Sequence[Table]) -> stats.Sample:
        """Return the figure's columns of its members, rows in the order of fact ids."""
        values, facts = [], []
        for member, names in self.columns:
            table = tables[member]
            columns_of = operator.itemgetter(
                *(table.columns.index(name) for name in names)
            )
            rows = sorted(table.rows, key=_fact_of)
            values.append([columns_of(row.values) for row in rows])
            facts.append(tuple(map(_fact_of, rows)))
        return stats.sample(values, facts, [len(names) for _, names in self.columns])

    def value(self, tables: Sequence[Table]) -> float | None:
        """Return the figure itself; ``None`` where it is undefined."""
        sample = self.sample(tables)
        if self.of_rows is None:
            result = float(self.statistic(sample.totals))
        else:
            (rows,) = sample.values
            counts = np.ones(len(rows))
            result = float(self.of_rows(rows, counts)) if len(rows) else math.nan
        return None if math.isnan(result) else result

    def estimate(self, tables: Sequence[Table]) -> stats.Estimate:
        """Return the figure with its interval, if it has one."""
        sample, of_rows = self.sample(tables), self.of_rows
        if of_rows is None:
            return stats.estimate(
                sample,
                self.statistic,
                bounds=self.bounds,
                rate=self.rate,
                facts=self.weight(tables),
            )
        (rows,), value = sample.values, self.value(tables)
        note, low, high = stats.UNDEFINED if value is None else "", None, None
        if value is not None and self.has_interval:
            low, high = stats.bootstrap_rows(
                lambda counts: of_rows(rows, counts), len(rows)
            )
            # Draws that are all alike say nothing about how far the figure could be off.
            low, high = (None, None) if low == high else (low, high)
        return stats.Estimate(value=value, n=len(rows), note=note, low=low, high=high)


def figures_of(metrics: Sequence[MetricFormula], member: int = 0) -> tuple[Figure, ...]:
    """Return metrics as figures of a single case, ``member`` of several."""
    return tuple(_figure_of(metric, member) for metric in metrics)


def _figure_of(metric: MetricFormula, member: int = 0) -> Figure:
    traits = {field.name: getattr(metric, field.name) for field in fields(MetricTraits)}
    return Figure(
        columns=((member, metric.columns),),
        statistic=lambda parts: metric.formula(*parts[0]),
        **traits,
    )


def mean_figure(
    name: str,
    column: str,
    tables: Sequence[Table],
    *,
    member: int = 0,
    better: Better = "higher",
    undefined: str = "no fact",
) -> Figure:
    """Return the mean of a column that may hold any numbers; one that holds only 0 and 1 is a rate.

    ``tables`` are all that are compared: what they hold says what the figure can be.
    """
    values = {
        row.values[table.columns.index(column)]
        for table in tables
        for row in table.rows
        if column in table.columns
    }
    low = 0.0 if min(values, default=0.0) >= 0 else -math.inf
    high = 1.0 if low == 0 and max(values, default=0.0) <= 1 else math.inf
    is_rate = values <= {0.0, 1.0}
    metric = mean(name, column, better=better, bounds=(low, high), rate=is_rate)
    return _figure_of(replace(metric, undefined=undefined), member)


# A metric over the pooled facts of some members, by their numbers.
Term = tuple[MetricFormula, Sequence[int]]
# How the values of terms make a figure: by these weights (none: their mean), or as this function says.
How = Sequence[float] | Callable[..., stats.Array]
# The name of a figure over several cases, its terms by the names of their metrics, and how they make it.
Overall = tuple[str, Sequence[tuple[str, Sequence[int]]], How]


def figures_over(cases: Sequence[CaseResult]) -> tuple[Figure, ...]:
    """Return the figures over ``cases``, all of one probe."""
    metrics = [
        {of.name: of for of in metrics_for(case.probe, case.slice, case.table.columns)}
        for case in cases
    ]
    probe = probe_named(cases[0].probe)
    assert probe is not None
    slices, members = [case.slice for case in cases], range(len(cases))
    # How papers combine slices, where it is not by plain means.
    if probe.name == "head_to_tail":
        overall = _head_to_tail(slices, "outdated" in metrics[0])
    elif probe.name == "reliability":
        overall = _reliability(slices)
    elif probe.name == "questions":
        # Groups are of any size, and every question counts alike.
        overall = (
            (name, [(name, members)], ())
            for name in probe.overall_metrics
            if name in metrics[0]
        )
    else:
        # MONITOR's Table 4 has the sum of the slices / 21, which looks like a slip.
        overall = (
            (name, [(name, [member]) for member in members], ())
            for name in probe.overall_metrics
            if all(name in of for of in metrics)
        )
    return tuple(
        _figure(name, [(metrics[of[0]][metric], of) for metric, of in terms], how)
        for name, terms, how in overall
    )


def _head_to_tail(slices: Sequence[str], dated: bool) -> Iterator[Overall]:
    """Yield accuracy by bucket over the facts of all domains, the gap, and means over the buckets present.

    In the paper a domain's buckets are of equal size, so that its figures over all domains, which are over
    all facts ("micro"), are plain means of the buckets'. ``_macro`` is the plain mean over the domains, each
    the mean of its buckets. The top tenth belongs to the head: it has its own figure and counts in no other.
    """
    groups: dict[str, list[int]] = {}
    domains: dict[str, list[int]] = {}
    for member, name in enumerate(slices):
        domain, _, bucket = name.rpartition("-")
        groups.setdefault(bucket, []).append(member)
        if bucket != TOP10:
            domains.setdefault(domain, []).append(member)
    for bucket in (*BUCKETS, TOP10):
        if bucket in groups:
            yield f"accuracy_{bucket}", [("accuracy", groups[bucket])], ()
    groups.pop(TOP10, None)
    ends = [("accuracy", groups[name]) for name in ("head", "tail") if name in groups]
    if len(ends) > 1:
        yield "gap", ends, (1, -1)
    shares = [1 / len(domains) / len(of) for of in domains.values() for _ in of]
    names = ("accuracy", "hallucination", "missing") if groups else ()
    for name in (*names, "outdated") if dated and groups else names:
        yield name, [(name, members) for members in groups.values()], ()
    for name in names:
        single = [(name, [member]) for of in domains.values() for member in of]
        yield f"{name}_macro", single, shares


def _reliability(slices: Sequence[str]) -> Iterator[Overall]:
    """Yield known and unseen figures over the pooled slices of their kind, and the two that need both."""
    of_kind: dict[str, list[int]] = {"known": [], "unseen": []}
    for member, name in enumerate(slices):
        of_kind[RELIABILITY.kind(name)].append(member)
    known, unseen = of_kind.values()
    for names, members in ((("nccr", "ncr"), known), (("iur", "ur"), unseen)):
        if members:
            for name in names:
                yield name, [(name, members)], ()
    if known and unseen:
        yield "c_wrong", [("c_wrong", known), ("c_wrong", unseen)], c_wrong
        yield "avg", [("nccr", known), ("iur", unseen)], average


def _sum(values: Sequence[stats.Array]) -> stats.Array:
    # Not numpy's: the values have different shapes while one member's facts are left out in turn.
    return functools.reduce(operator.add, values)


def pooled(parts: stats.Parts) -> tuple[stats.Array, stats.Array]:
    """Return column totals and number of facts of several members together."""
    return _sum([totals for totals, _ in parts]), _sum([n for _, n in parts])


def _figure(name: str, terms: Sequence[Term], how: How) -> Figure:
    first, known = terms[0][0], METRICS[name]
    weights = () if callable(how) else tuple(how)

    def statistic(parts: stats.Parts) -> stats.Array:
        remaining = iter(parts)
        values = [
            metric.formula(*pooled(list(itertools.islice(remaining, len(group)))))
            for metric, group in terms
        ]
        if callable(how):
            return how(*values)
        if not weights:
            return _sum(values) / len(values)
        return _sum([value * of for value, of in zip(values, weights, strict=True)])

    several = " in one of the cases" if len(terms) > 1 else ""
    return Figure(
        name=name,
        better=known.better,
        columns=tuple((at, metric.columns) for metric, group in terms for at in group),
        statistic=statistic,
        bounds=(float(known.low), float(known.high)),
        # Over the pooled facts of some members, and not a mean of their means.
        rate=first.rate and len(terms) == 1,
        over=first.over,
        undefined=first.undefined + several,
        vacuous=first.vacuous,
        terms=tuple(len(group) for _, group in terms),
        shares=weights if min(weights, default=0) > 0 else (),
    )


AS_EXPECTED = "as_expected"


def pooled_figures(members: int) -> tuple[Figure, ...]:
    """Return the one figure over the tables of so many members, as :func:`as_expected` makes them."""
    return (_figure(AS_EXPECTED, [(rate(AS_EXPECTED), range(members))], ()),)


def is_good(reply: Reply, expected: str) -> bool:
    """Return True if an answer is as it should be; ``expected`` is empty where no answer exists."""
    return reply.label == ("correct" if expected else "uninformative")


def good_share(row: Outcome, expected: str) -> float:
    """Return the share of a fact's wordings that were answered as they should be: 0 or 1 of a single one."""
    replies = row.replies
    return sum(is_good(reply, expected) for reply in replies) / len(replies)


# What an empty answer may have been, by column: wrong and kept to, right and not kept to, or outdated.
_NEITHER = dict.fromkeys(("missing", "uninformative"), 0.0)
_WRONG = dict.fromkeys(("wrong", "consistency_wrong", "kept", "term"), 1.0)
# Of edits: not forgotten.
_KNOWN = {"passed": 0.0, "condition": 1.0, "rouge_l": 1.0}
AT_WORST: tuple[Mapping[str, float], ...] = (
    {**_NEITHER, AS_EXPECTED: 0.0, "correct": 0.0, "anchor": 0.0, **_WRONG},
    {**_NEITHER, **_KNOWN, "wrong": 0.0, "consistency_correct": 0.0, "correct": 1.0},
    {**_NEITHER, "correct": 0.0, "outdated": 1.0},
)


def at_worst(table: Table, ends: Mapping[str, float], before: Table | None) -> Table:
    """Return the table with these values, one of :data:`AT_WORST`, in the rows of empty answers.

    A reply that is missing says nothing for a model: neither that it is unsure nor, where it picks no option,
    that it does not keep to a wrong answer. What was missing ``before`` stays, as does what MONITOR scores.
    """
    if "outdated" in ends and "outdated" not in table.columns:
        return table
    # "right?" is how much more "right" may be.
    open_ended = [name for name in table.columns if name.endswith("?")]
    counted = open_ended or "choices_unread" in table.columns
    if not (counted or any(map(is_empty, table.rows))):
        return table
    olds = {row.fact_id: row for row in before.rows} if before else {}

    def row_at_worst(row: Outcome) -> Outcome:
        values, old = values_of(table, row), olds.get(row.fact_id)
        was = values_of(before, old) if before and old else {}
        unread = values.get("choices_unread", 0.0) - was.get("choices_unread", 0.0)
        if is_empty(row) and not (old and is_empty(old)) and not values.get("kept"):
            values |= {name: end for name, end in ends.items() if name in values}
        elif unread > 0 and values.get("wrong"):
            more = values["consistency_wrong"] + unread / values["choices"]
            values["consistency_wrong"] = min(more, 1.0)
        elif unread > 0 and values.get("may_know"):
            values |= {
                name: _KNOWN[name] for name in ("passed", "condition") if name in values
            }
        for name in open_ended:
            values[name[:-1]] += max(values[name] - was.get(name, 0.0), 0.0)
        return replace(row, values=tuple(values.values()))

    return replace(table, rows=tuple(map(row_at_worst, table.rows)))


def values_of(table: Table, row: Outcome) -> dict[str, float]:
    """Return the values of a row by column."""
    return dict(zip(table.columns, row.values, strict=True))


def as_expected(table: Table, asked: Table) -> Table:
    """Return the table with one column: 1 where a fact was answered as it should be, else 0.

    Of a fact that was asked in several wordings it is the share of these. As it should be is right where an
    answer exists, and uninformative where none does. ``asked`` is the candidate's table, whose rows have the
    expected answers; a baseline's have none.
    """
    expected = {row.fact_id: row.expected for row in asked.rows}
    return Table(
        columns=(AS_EXPECTED,),
        rows=tuple(
            replace(
                row,
                values=(good_share(row, expected.get(row.fact_id, row.expected)),),
                cluster="",
            )
            for row in table.rows
        ),
    )


def distinct_changes(changes: Iterable[Sequence[Change]]) -> tuple[Change, ...]:
    """Return each fact's change once, in the order of fact ids: the one with probabilities, if there is."""
    distinct: dict[str, Change] = {}
    for change in (change for case in changes for change in case):
        first = distinct.get(change.fact_id)
        if first is None or (
            first.old_probability is None and change.old_probability is not None
        ):
            distinct[change.fact_id] = change
    return tuple(distinct[fact] for fact in sorted(distinct))
