"""The facts that a run lost and gained: in which order they are shown, in groups, and in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from pytest_kbrel.catalogue import verdicts
from pytest_kbrel.records import (
    BUCKETS,
    CaseResult,
    Change,
    Run,
    record,
    sparse,
)
from pytest_kbrel.reports.formatting import (
    answer_text,
    count,
    expected_text,
    number,
    one_line,
    signed,
)
from pytest_kbrel.reports.view import names, relation_title, slices

UNANSWERABLE, UNBUCKETED = "unanswerable", "no bucket"
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


@dataclass(frozen=True, slots=True)
class ChangedFacts:
    """The facts lost and gained over all cases of a run, each once.

    Those of failed cases come first. Among these the first of each group (bucket and relation), that which
    lost most before the others; then all others, group by group, those that moved furthest first.
    ``buckets`` go from head to tail and add up to all facts: those that have no answer are
    :data:`UNANSWERABLE`, and others of no bucket :data:`UNBUCKETED`. ``relations`` go from most to fewest
    lost facts; a fact without relation counts in none.
    """

    lost: tuple[Change, ...]
    gained: tuple[Change, ...]
    buckets: tuple[Part, ...]
    relations: tuple[Part, ...]

    @property
    def worst(self) -> tuple[Part, ...]:
        """The relation that lost most facts, or those that share this; empty where none lost any."""
        most = max((part.lost for part in self.relations), default=0)
        return tuple(part for part in self.relations if most and part.lost == most)


def changed_facts(run: Run) -> ChangedFacts:
    """Return the facts that ``run`` lost and gained: a fact that several cases lost is one fact.

    Its answers are those of a case that tells the probability of the anchor, if there is one.
    """
    lost, gained = _each_once(run, "lost"), _each_once(run, "gained")
    labels = {change.relation: change.label for change in (*lost, *gained)}
    buckets = _parts(map(bucket_of, lost), map(bucket_of, gained), {})
    relations = _parts(
        (change.relation for change in lost),
        (change.relation for change in gained),
        labels,
    )
    buckets.sort(key=lambda part: _bucket_order(part.name))
    relations.sort(key=lambda part: (-part.lost, -part.gained, part.name))
    return ChangedFacts(lost, gained, tuple(buckets), tuple(relations))


def bucket_of(change: Change) -> str:
    """Return the popularity bucket of a fact; in words where it has no answer, or no bucket."""
    return (change.bucket or UNBUCKETED) if change.expected else UNANSWERABLE


def _bucket_order(bucket: str) -> int:
    order: tuple[str, ...] = (*BUCKETS, "", UNANSWERABLE, UNBUCKETED)
    # Any other stands behind those from head to tail.
    return order.index(bucket if bucket in order else "")


def examples(changes: Iterable[Change], most: int | None = None) -> tuple[Change, ...]:
    """Return up to ``most`` of the changes that stand for all: one of each group, the largest group first.

    A group are the facts of one bucket and relation. Where there are fewer groups than ``most``, further
    facts follow, group by group, those that moved furthest first.
    """
    changes = list(changes)
    buckets = Counter(map(bucket_of, changes))
    groups = Counter((bucket_of(change), change.relation) for change in changes)

    def place(change: Change) -> tuple[object, ...]:
        bucket = bucket_of(change)
        size = groups[bucket, change.relation]
        moved = abs(_fall(change) or 0.0)
        order = _bucket_order(bucket)
        return (-buckets[bucket], order, -size, change.relation, -moved)

    first: dict[tuple[str, str], Change] = {}
    others = []
    for change in sorted(changes, key=place):
        group = (bucket_of(change), change.relation)
        if group in first:
            others.append(change)
        else:
            first[group] = change
    return tuple([*first.values(), *others][:most])


def changes_headline(run: Run) -> str:
    """Return the headline of lost and gained facts; empty where no fact was compared with a baseline.

    ``12 of 1,240 facts lost, 5 gained; 45 of 1,694 answers changed; 9 of the 12 are head; worst P108``

    Where facts could not be compared, "no fact lost or gained" names how many facts that is said of. First
    stands how many facts of the baseline the suites have lost.
    """
    changes = changed_facts(run)
    lacking = {(of.suite, fact) for of in slices(run) for fact in of.unmatched.lacking}
    gone = [f"{count(len(lacking), 'fact')} of the baseline not asked any more"]
    gone = gone if lacking else []
    compared, of_all = run.compared or (0, 0)
    if not changes.lost and not changes.gained:
        if not any(value.paired for case in slices(run) for value in case.metrics):
            return "".join(gone)
        parts = ["no fact lost or gained"]
        if compared < of_all:
            parts[0] += f" of the {compared:,} of {of_all:,} facts that were compared"
        if not gone and _answers_alike(run):
            parts.append("answers exactly as the baseline does: is the change applied?")
    else:
        lost = count(len(changes.lost), "fact")
        if run.compared is not None:
            lost = f"{len(changes.lost)} of {compared:,} facts"
        parts = [f"{lost} lost, {len(changes.gained)} gained"]
    parts.append(churn_text(run))
    if changes.lost:
        parts += [_share(changes.lost), _worst(run, changes)]
    return "; ".join(filter(None, [*gone, *parts]))


def _answers_alike(run: Run) -> bool:
    """Return True if no answer and no figure differs from the baseline's, which is of another model."""
    ours, theirs = run.model, run.base
    if ours is None or theirs is None or not run.baseline:
        return False
    if ours.weights_digest:
        is_other = ours.weights_digest != theirs.weights_digest
    else:
        is_other = (ours.spec, ours.device) != (theirs.spec, theirs.device)
    churns = [case.churn for case in slices(run) if case.churn is not None]
    values = [value for case in slices(run) for value in case.metrics]
    same = not any(churn.texts for churn in churns)
    return bool(is_other and churns and same) and not any(one.delta for one in values)


def churn_text(run: Run) -> str:
    """Return how many answers of all slices changed, whichever way: ``45 of 1,694 answers changed``.

    Empty where none was compared, and where none changed; the divergence stands there where it was measured.
    """
    churns = [case.churn for case in slices(run) if case.churn is not None]
    changed = sum(churn.texts for churn in churns)
    text = (
        f"{changed:,} of {sum(churn.facts for churn in churns):,} answers changed"
        if changed
        else ""
    )
    moved = [churn.divergence for churn in churns if churn.divergence is not None]
    if not moved:
        return text
    kl = sum(of.kl * of.facts for of in moved) / sum(of.facts for of in moved)
    agreed = sum(of.top1_agreement * of.positions for of in moved) / sum(
        of.positions for of in moved
    )
    divergence = f"KL {number(kl)} nats, top-1 agreement {number(agreed)}"
    return f"{text}; {divergence}" if text else divergence


def _worst(run: Run, changes: ChangedFacts) -> str:
    """Return where most facts were lost: in which relations, or in which case where they are of none."""
    case = max(slices(run), key=lambda case: len(case.lost))
    where = [part.title for part in changes.worst] or [names(run)[case.nodeid]]
    if where[2:]:
        where[1:] = [f"{len(where) - 1} others"]
    return f"worst {' and '.join(one_line(name, _LONGEST) for name in where)}"


def fact_cells(change: Change, limit: int = 160) -> dict[str, str]:
    """Return what tables of facts say of a change, by the heading of the column; empty where not known."""
    relation = relation_title(change.relation, change.label)
    known = filter(None, (relation, change.bucket))
    return {
        "question": one_line(change.question, limit),
        "expected": expected_text(change.expected, limit),
        "old answer": answer_text(change.old_answer, limit),
        "new answer": answer_text(change.new_answer, limit),
        "anchor": _probability(change),
        "from": ", ".join(one_line(part, _LONGEST) for part in known),
    }


def fact_columns(changes: Sequence[Change]) -> list[str]:
    """Return the headings of a table of facts: those of which any fact has something to say."""
    rows = [fact_cells(change) for change in changes]
    return [
        name
        for name in (rows[0] if rows else ())
        if name == "question" or any(row[name] for row in rows)
    ]


def _probability(change: Change) -> str:
    """Return how the anchor's probability moved, ``0.912 → 0.401 (-0.511)``; empty where it is unknown."""
    old, new = change.old_probability, change.new_probability
    if old is None and new is None:
        return ""
    by = "" if old is None or new is None else f" ({signed(new - old)})"
    return f"{number(old)} → {number(new)}{by}"


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
            if first is not change:
                is_better = _fall(first) is None and _fall(change) is not None
                by_fact[key] = replace(
                    change if is_better else first,
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


def _parts(
    lost: Iterable[str], gained: Iterable[str], labels: Mapping[str, str]
) -> list[Part]:
    of_lost, of_gained = Counter(filter(None, lost)), Counter(filter(None, gained))
    return [
        Part(
            name=name,
            lost=of_lost[name],
            gained=of_gained[name],
            label=labels.get(name, ""),
        )
        for name in sorted(of_lost | of_gained)
    ]


def _share(lost: Sequence[Change]) -> str:
    """Return the bucket of at least half of the lost facts, in words; empty if there is none."""
    groups = Counter(map(bucket_of, lost))
    name = max(sorted(groups, key=_bucket_order), key=lambda group: groups[group])
    of = len(lost)
    if name == UNBUCKETED or 2 * groups[name] < of:
        return ""
    if of == 1:
        return f"it is {name}"
    if groups[name] == of:
        return f"all of them are {name}"
    return f"{groups[name]} of the {of} {'is' if groups[name] == 1 else 'are'} {name}"
