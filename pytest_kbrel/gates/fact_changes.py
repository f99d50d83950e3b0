"""The facts that were lost and gained against the baseline."""

from __future__ import annotations

from pytest_kbrel.gates.measurement import pair
from pytest_kbrel.records import Case, Change, Outcome, Table

_KEPT, _ANCHOR = "kept", "anchor"


def changes(
    case: Case | None, table: Table, baseline: Table
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return the facts lost (good before, not now) and gained, in the order of fact ids.

    "Good" is the label ``correct``, and ``uninformative`` where no answer exists. Facts that were asked
    differently are left out. Relations and buckets are known where the ``case`` is.
    The probabilities are means over the tokens of MONITOR's primary anchor (0..1);
    ``None`` in other probes' tables, and where a variant of MONITOR left the fact out.
    """
    relations = {fact.id: fact.relation for fact in case.facts} if case is not None else {}
    buckets = dict(case.buckets) if case is not None else {}
    lost: list[Change] = []
    gained: list[Change] = []
    pairing = pair(table, baseline)
    for new, old in zip(pairing.candidate.rows, pairing.baseline.rows, strict=True):
        before, after = is_good(old, new.expected), is_good(new, new.expected)
        if before != after:
            change = Change(
                fact_id=new.fact_id,
                question=new.question,
                expected=new.expected,
                old_answer=old.answer,
                new_answer=new.answer,
                relation=relations.get(new.fact_id, ""),
                bucket=buckets.get(new.fact_id, ""),
                old_probability=_anchor(pairing.baseline.columns, old),
                new_probability=_anchor(pairing.candidate.columns, new),
            )
            (lost if before else gained).append(change)
    return tuple(lost), tuple(gained)


def is_good(row: Outcome, expected: str) -> bool:
    """Tell whether a fact was answered as it should be; ``expected`` is empty where no answer exists."""
    return row.label == ("correct" if expected else "uninformative")


def _anchor(columns: tuple[str, ...], row: Outcome) -> float | None:
    found = dict(zip(columns, row.values, strict=True))
    return found.get(_ANCHOR) if found.get(_KEPT) else None
