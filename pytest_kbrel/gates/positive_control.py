"""Positive controls: would a gate have failed, had the model lost twice what the gate allows?

On paper, facts are marked lost in a copy of the candidate's outcomes until the figure has dropped by twice
the gate's ``within``, and the gate is judged again. That is the drop for which facts are commonly planned (a
gate finds it with 80 % power): a pass of a gate that misses it says little. A gate has no control where the
candidate has lost as much itself: nothing is lost on paper then.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from pytest_kbrel import stats
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.figures import Figure
from pytest_kbrel.gates.measurement import Measured, Measurement, Pairing, remeasured
from pytest_kbrel.gates.power import Member, extreme
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.records import Gate, GateResult, Table

# How many times a gate's tolerance is lost.
TIMES = 2
_SLACK = 1e-9

# What a lost fact has: for each member of a figure the values by column.
_Lost = Mapping[int, Mapping[str, float]]


def with_positive_controls(
    results: Sequence[GateResult],
    gates: Sequence[Gate],
    measurement: Measurement,
    comparisons: int,
) -> tuple[GateResult, ...]:
    """Return the results of a case's ``gates``, each that was compared fact by fact with its control.

    ``comparisons`` is that of :func:`pytest_kbrel.gates.rules.decide`. Gates that allow nothing have none,
    nor have those of figures of which no fact can be said to be lost, or that dropped as far themselves.
    """
    figures = {measured.figure.name: measured for measured in measurement.figures}
    # A gate that passes alone, or is not sure, does not fail beside others of its case either.
    relative = [gate.metric for gate in gates if GATE_RULES[gate.rule].relative]
    checked = []
    for index, (gate, result) in enumerate(zip(gates, results, strict=True)):
        checked.append(result)
        measured = figures.get(gate.metric)
        if not GATE_RULES[gate.rule].relative or result.observed is None:
            continue
        if (
            measured is None
            or measured.difference is None
            or measured.published is not None
        ):
            continue
        marked = _marked(
            measured, measurement.pairings, TIMES * _allowed(gate, measured)
        )
        if marked is None:
            continue
        pairings, drop = marked
        own = remeasured(measured, pairings)
        lost = dataclasses.replace(measurement, figures=(own,), pairings=pairings)
        (alone,) = decide([gate], lost, comparisons=comparisons, explain=False)
        if alone.verdict == "fail" and not _surely(alone, len(relative), comparisons):
            again = tuple(
                own
                if other is measured
                else remeasured(other, pairings)
                if other.figure.name in relative
                and other.difference
                and _lost_in(other) & _lost_in(measured)
                else other
                for other in measurement.figures
            )
            lost = dataclasses.replace(lost, figures=again)
            alone = decide(gates, lost, comparisons=comparisons, explain=False)[index]
        checked[-1] = dataclasses.replace(
            result,
            positive_control=alone.verdict == "fail",
            positive_control_drop=measured.true_change(drop),
        )
    return tuple(checked)


def _surely(alone: GateResult, gates: int, comparisons: int) -> bool:
    """Return True if a gate that fails alone does so beside others: by ``never``, or by Bonferroni's p."""
    if alone.p is None or alone.p_sidak is None or alone.p_sidak >= stats.FAMILY_LEVEL:
        return True
    return stats.sidak_p(min(gates * alone.p, 1.0), comparisons) < stats.FAMILY_LEVEL


def _lost_in(measured: Measured) -> set[tuple[int, str]]:
    """Return the columns, by member, in which a lost fact of the figure differs."""
    figure = measured.figure
    return {
        (member, name)
        for member, names in figure.columns
        for name in names
        if name != figure.over
    }


def _allowed(gate: Gate, measured: Measured) -> float:
    """Return the drop that a gate lets pass, of a share that of the baseline's value."""
    if GATE_RULES[gate.rule].allows_more > 0:
        return gate.bound / measured.true_change(1.0)
    value = measured.value.baseline or 0.0
    return (
        (1 - gate.bound)
        * value
        / (1 if measured.value.better == "higher" else gate.bound)
    )


def _marked(
    measured: Measured, pairings: Sequence[Pairing], drop: float
) -> tuple[tuple[Pairing, ...], float] | None:
    """Return the pairings with so many facts lost that the figure drops by ``drop``, and by how much it does.

    All facts are lost where these are too few. A fact of a case that several cases ask is lost in all.
    ``None`` where the figure has dropped as far without that.
    """
    figure = measured.figure
    tables = [pairing.candidate for pairing in pairings]
    before = [pairing.baseline for pairing in pairings]
    lost = _lost_values(figure, before)
    was = measured.value.baseline
    if drop <= _SLACK or lost is None or was is None:
        return None
    order = _drawn(figure, tables, lost)
    reached = _drops(figure, tables, lost, order, was)
    if reached[0] >= drop - _SLACK:
        return None
    enough = np.flatnonzero(reached >= drop - _SLACK)
    count = int(enough[0]) if len(enough) else int(np.nanargmax(reached))
    chosen = set(order[:count])
    marked = tuple(
        dataclasses.replace(
            pairing,
            candidate=_with_lost(pairing.candidate, lost.get(member, {}), chosen),
        )
        for member, pairing in enumerate(pairings)
    )
    return marked, float(reached[count])


def _lost_values(figure: Figure, before: Sequence[Table]) -> _Lost | None:
    """Return the values of a lost fact: the worst there can be, or those of the worst fact of the baseline.

    ``None`` where a figure has no worst values and facts that several cases share.
    """
    members = sorted({member for member, _ in figure.columns})
    columns = [Member(facts=(), columns=table.columns) for table in before]
    if (worst := extreme(figure, columns, worst=True)) is not None:
        return dict.fromkeys(members, worst)
    sample = figure.sample(before)
    if not sample.is_disjoint or any(len(facts) < 2 for facts in sample.facts):
        return None
    sign = 1 if figure.better == "higher" else -1
    lost: dict[int, dict[str, float]] = {member: {} for member in members}
    # Without its worst fact a figure is at its best.
    for (member, names), values, without in zip(
        figure.columns,
        sample.values,
        stats.left_out(sample, figure.statistic),
        strict=True,
    ):
        if np.isnan(without).all():
            return None
        lost[member] |= dict(
            zip(names, values[int(np.nanargmax(sign * without))].tolist(), strict=True)
        )
    return lost


def _drawn(figure: Figure, tables: Sequence[Table], lost: _Lost) -> list[str]:
    """Return the facts that can be lost in a random order, the same for the same facts.

    The first of them are spread over the clusters as all facts are, no more evenly than chance would.
    """
    facts: set[str] = set()
    for member, values in lost.items():
        table = tables[member]
        at = [(table.columns.index(name), value) for name, value in values.items()]
        over = table.columns.index(figure.over) if figure.over in values else None
        facts |= {
            row.fact_id
            for row in table.rows
            if (over is None or row.values[over] == 1)
            and any(row.values[i] != value for i, value in at)
        }
    order = sorted(facts)
    random.Random(0).shuffle(order)
    return order


def _drops(
    figure: Figure,
    tables: Sequence[Table],
    lost: _Lost,
    order: Sequence[str],
    was: float,
) -> stats.Array:
    """Return by how much the figure is worse than it ``was`` if none, one, two ... of ``order`` are lost."""
    sample = figure.sample(tables)
    step = {fact: number for number, fact in enumerate(order, start=1)}
    parts = []
    for (member, names), (totals, n), values, facts in zip(
        figure.columns, sample.totals, sample.values, sample.facts, strict=True
    ):
        moves = np.zeros((len(order) + 1, len(names)))
        rows = [row for row, fact in enumerate(facts) if fact in step]
        changed = np.array([lost[member][name] for name in names]) - values[rows]
        np.add.at(moves, [step[facts[row]] for row in rows], changed)
        parts.append((totals + moves.cumsum(axis=0), np.full(len(moves), float(n))))
    now = np.broadcast_to(figure.statistic(parts), (len(order) + 1,))
    return was - now if figure.better == "higher" else now - was


def _with_lost(
    table: Table, values: Mapping[str, float], facts: Collection[str]
) -> Table:
    at = {table.columns.index(name): value for name, value in values.items()}
    return Table(
        columns=table.columns,
        rows=tuple(
            dataclasses.replace(
                row,
                values=tuple(at.get(i, value) for i, value in enumerate(row.values)),
            )
            if row.fact_id in facts
            else row
            for row in table.rows
        ),
    )
