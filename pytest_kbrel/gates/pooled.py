"""The case over all slices of all probes of a suite: the share of facts answered as they should be.

It is the most powerful test there is of whether anything was lost: many slices that each lost too little to
show. A fact that several slices ask about is one cluster, and moves with all its answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_kbrel import stats
from pytest_kbrel.gates.fact_changes import is_good
from pytest_kbrel.gates.statistics import Figure
from pytest_kbrel.metrics.base import ratio
from pytest_kbrel.records import Change, Outcome, Table

AS_EXPECTED = "as_expected"


def pooled_figures(members: int) -> tuple[Figure, ...]:
    """Return the one figure over the tables of so many members, as :func:`as_expected` makes them."""

    def share(parts: stats.Parts) -> stats.Array:
        # Not one sum: the parts have different shapes while one member's facts are left out in turn.
        (totals, n), *rest = parts
        good = totals[..., 0]
        for more, facts in rest:
            good, n = good + more[..., 0], n + facts
        return ratio(good, n)

    return (
        Figure(
            name=AS_EXPECTED,
            better="higher",
            columns=tuple((member, (AS_EXPECTED,)) for member in range(members)),
            statistic=share,
            rate=True,
        ),
    )


def as_expected(table: Table, asked: Table) -> Table:
    """Return the table with one column: 1 where a fact was answered as it should be, else 0.

    That is right where an answer exists, and uninformative where none does. ``asked`` is the candidate's
    table, whose rows have the expected answers; a baseline's have none.
    """
    expected = {row.fact_id: row.expected for row in asked.rows}
    return Table(
        columns=(AS_EXPECTED,),
        rows=tuple(_row(row, is_good(row, expected.get(row.fact_id, row.expected))) for row in table.rows),
    )


def once(changes: Iterable[Sequence[Change]]) -> tuple[Change, ...]:
    """Return each fact's change once, in the order of fact ids: the one with probabilities, if there is."""
    found: dict[str, Change] = {}
    for change in (change for case in changes for change in case):
        known = found.get(change.fact_id)
        if known is None or (known.old_probability is None and change.old_probability is not None):
            found[change.fact_id] = change
    return tuple(found[fact] for fact in sorted(found))


def _row(row: Outcome, good: bool) -> Outcome:
    return Outcome(
        fact_id=row.fact_id,
        question=row.question,
        expected=row.expected,
        answer=row.answer,
        label=row.label,
        values=(float(good),),
        prompt_digest=row.prompt_digest,
    )
