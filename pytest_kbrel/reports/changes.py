"""The facts that a run lost and gained: each once, and in the order in which they are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, NamedTuple

from pytest_kbrel.catalogue import verdicts
from pytest_kbrel.records import BUCKETS, CaseResult, Change, Run, record, sparse
from pytest_kbrel.reports.formatting import (
    answer_text,
    expected_text,
    number,
    one_line,
    relation_title,
    signed,
    slices,
)

UNANSWERABLE, UNBUCKETED = "unanswerable", "no bucket"
# From head to tail; others stand in the place of the empty one.
_ORDER = (*BUCKETS, "", UNANSWERABLE, UNBUCKETED)
_LONGEST = 60


@record
class Part:
    """Numbers of facts of one bucket or relation that were lost and gained."""

    name: str
    lost: int
    gained: int
    label: str = sparse("")

    @property
    def title(self) -> str:
        """The name with the label of a relation that has one."""
        return relation_title(self.name, self.label)


class ChangedFacts(NamedTuple):
    """The facts lost and gained over all cases of a run, each once.

    Those of failed cases come first, and among these one of each bucket and relation
    (:func:`examples`).
    """

    lost: tuple[Change, ...]
    gained: tuple[Change, ...]

    @property
    def buckets(self) -> list[Part]:
        """The buckets from head to tail, which add up to all facts.

        Facts without an answer are :data:`UNANSWERABLE`, others of no bucket :data:`UNBUCKETED`.
        """
        return sorted(self._parts(bucket_of), key=lambda part: _place(part.name))

    @property
    def relations(self) -> list[Part]:
        """The relations from most to fewest lost facts; a fact without relation counts in none."""
        parts = self._parts(lambda change: change.relation)
        return sorted(parts, key=lambda part: (-part.lost, -part.gained, part.name))

    @property
    def worst(self) -> list[Part]:
        """The relation that lost most facts, or those that share this; empty where none lost any."""
        parts = self.relations
        return [part for part in parts if part.lost and part.lost == parts[0].lost]

    def _parts(self, group_of: Callable[[Change], str]) -> list[Part]:
        lost, gained = (
            Counter(filter(None, map(group_of, changes)))
            for changes in (self.lost, self.gained)
        )
        labels = {one.relation: one.label for one in (*self.lost, *self.gained)}
        return [
            Part(
                name=name,
                lost=lost[name],
                gained=gained[name],
                label=labels.get(name, ""),
            )
            for name in lost | gained
        ]


def changed_facts(run: Run) -> ChangedFacts:
    """Return the facts that ``run`` lost and gained: a fact that several cases lost is one fact.

    Its answers are those of a case that tells the probability of the anchor, if there is one.
    """
    return ChangedFacts(_each_once(run, "lost"), _each_once(run, "gained"))


def bucket_of(change: Change) -> str:
    """Return the popularity bucket of a fact; in words where it has no answer, or no bucket."""
    return (change.bucket or UNBUCKETED) if change.expected else UNANSWERABLE


def _place(bucket: str) -> int:
    return _ORDER.index(bucket if bucket in _ORDER else "")


def examples(changes: Iterable[Change], most: int | None = None) -> tuple[Change, ...]:
    """Return up to ``most`` of the changes that stand for all: one of each group, the largest group first.

    A group are the facts of one bucket and relation. Where there are fewer groups than ``most``, further
    facts follow, group by group, those whose probability moved furthest first.
    """

    def group_of(change: Change) -> tuple[str, str]:
        return bucket_of(change), change.relation

    changes = list(changes)
    sizes = Counter(map(group_of, changes))

    def place(change: Change) -> tuple[object, ...]:
        bucket, relation = group_of(change)
        size = sizes[bucket, relation]
        return (-size, _place(bucket), bucket, relation, -abs(_fall(change) or 0.0))

    groups = [list(of) for _, of in groupby(sorted(changes, key=place), group_of)]
    first, others = [of[0] for of in groups], [one for of in groups for one in of[1:]]
    return tuple((first + others)[:most])


def fact_cells(change: Change, limit: int = 160) -> dict[str, str]:
    """Return what tables of facts say of a change, by the heading of the column; empty where not known."""
    relation = relation_title(change.relation, change.label)
    known = filter(None, (relation, change.bucket))
    old, new, fall = change.old_probability, change.new_probability, _fall(change)
    until = f" (outdated: {change.outdated})" if change.outdated else ""
    by = "" if fall is None else f" ({signed(-fall)})"
    return {
        "question": one_line(change.question, limit),
        "expected": expected_text(change.expected, limit),
        "old answer": answer_text(change.old_answer, limit),
        "new answer": answer_text(change.new_answer, limit) + until,
        "anchor": "" if old is new is None else f"{number(old)} → {number(new)}{by}",
        "from": ", ".join(one_line(part, _LONGEST) for part in known),
    }


def fact_columns(changes: Sequence[Change]) -> list[str]:
    """Return the headings of a table of facts: those of which any fact has something to say."""
    rows = [fact_cells(change) for change in changes]
    return [
        name for name in (rows[0] if rows else ()) if any(row[name] for row in rows)
    ]


def _severity(case: CaseResult) -> int:
    return verdicts.SEVERITY.index("pass" if case.waived else case.verdict)


def _each_once(run: Run, of: Literal["lost", "gained"]) -> tuple[Change, ...]:
    by_fact: dict[tuple[str, str], Change] = {}
    severity: dict[tuple[str, str], int] = {}
    for case in sorted(slices(run), key=_severity):
        for change in getattr(case, of):
            key = (case.suite, change.fact_id)
            severity.setdefault(key, _severity(case))
            first = by_fact.setdefault(key, change)
            by_fact[key] = replace(
                change if _fall(first) is None is not _fall(change) else first,
                relation=first.relation or change.relation,
                label=first.label or change.label,
                bucket=first.bucket or change.bucket,
            )
    # A list that is cut should show more than one group.
    return tuple(
        change
        for _, keys in groupby(by_fact, key=severity.__getitem__)
        for change in examples(by_fact[key] for key in keys)
    )


def _fall(change: Change) -> float | None:
    if change.old_probability is None or change.new_probability is None:
        return None
    return change.old_probability - change.new_probability
