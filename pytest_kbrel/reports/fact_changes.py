"""The facts lost and gained over a whole run: which they are, and the sentence about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_kbrel.records import BUCKETS, Change, Run
from pytest_kbrel.reports.formatting import count, number, one_line, signed
from pytest_kbrel.reports.view import names, slices, worst

UNANSWERABLE = "unanswerable"
_LONGEST = 60
_ORDER: dict[str, int] = {bucket: at for at, bucket in enumerate(BUCKETS)}


@dataclass(frozen=True, slots=True)
class Part:
    """How many facts of one bucket or relation were lost and gained."""

    name: str
    lost: int
    gained: int


@dataclass(frozen=True, slots=True)
class Moved:
    """The facts lost and gained over all cases of a run, each once, those that moved furthest first.

    ``buckets`` go from head to tail, ``relations`` from most to fewest lost facts. A fact without bucket or
    without relation counts in neither.
    """

    lost: tuple[Change, ...]
    gained: tuple[Change, ...]
    buckets: tuple[Part, ...]
    relations: tuple[Part, ...]

    @property
    def worst_relations(self) -> tuple[str, ...]:
        """The relation that lost most facts, or those that share this; empty where none lost any."""
        most = max((part.lost for part in self.relations), default=0)
        return tuple(part.name for part in self.relations if most and part.lost == most)


def moved(run: Run) -> Moved:
    """Return the facts that ``run`` lost and gained: a fact that several cases lost is one fact.

    Its answers are those of a case that tells the probability of the anchor, if there is one.
    """
    lost = _once((case.suite, change) for case in slices(run) for change in case.lost)
    gained = _once((case.suite, change) for case in slices(run) for change in case.gained)
    buckets = _parts([change.bucket for change in lost], [change.bucket for change in gained])
    relations = _parts([change.relation for change in lost], [change.relation for change in gained])
    return Moved(
        lost=lost,
        gained=gained,
        buckets=tuple(sorted(buckets, key=lambda part: _ORDER.get(part.name, len(_ORDER)))),
        relations=tuple(sorted(relations, key=lambda part: (-part.lost, -part.gained, part.name))),
    )


def sentence(run: Run) -> str:
    """Return the headline of lost and gained facts; empty where no fact was compared with a baseline.

    ``12 facts lost, 5 gained; 9 of the 12 are head; worst P108``
    """
    found = moved(run)
    if not found.lost and not found.gained:
        compared = any(value.paired for case in slices(run) for value in case.metrics)
        return "no fact lost or gained" if compared else ""
    parts = [f"{count(len(found.lost), 'fact')} lost, {len(found.gained)} gained"]
    if found.lost:
        parts.append(_share(found.lost))
        case = worst(run)
        where = found.worst_relations or ((names(run)[case.nodeid],) if case else ())
        parts.append(_worst([one_line(name, _LONGEST) for name in where]))
    return "; ".join(part for part in parts if part)


def _worst(found: Sequence[str]) -> str:
    if len(found) < 3:
        return f"worst {' and '.join(found)}" if found else ""
    return f"worst {found[0]} and {len(found) - 1} others"


def place(change: Change) -> str:
    """Return relation and bucket of a fact, those that are known: ``P36, tail``."""
    return ", ".join(one_line(part, _LONGEST) for part in (change.relation, change.bucket) if part)


def probability(change: Change) -> str:
    """Return how the anchor's probability moved, ``0.912 → 0.401 (-0.511)``; empty where it is unknown."""
    old, new = change.old_probability, change.new_probability
    if old is None and new is None:
        return ""
    by = "" if old is None or new is None else f" ({signed(new - old)})"
    return f"{number(old)} → {number(new)}{by}"


def _once(found: Iterable[tuple[str, Change]]) -> tuple[Change, ...]:
    kept: dict[tuple[str, str], Change] = {}
    for suite, change in found:
        key = (suite, change.fact_id)
        first = kept.get(key)
        if first is None:
            kept[key] = change
            continue
        told = change if _fall(first) is None and _fall(change) is not None else first
        kept[key] = replace(
            told, relation=first.relation or change.relation, bucket=first.bucket or change.bucket
        )
    return tuple(sorted(kept.values(), key=lambda change: -abs(_fall(change) or 0.0)))


def _fall(change: Change) -> float | None:
    if change.old_probability is None or change.new_probability is None:
        return None
    return change.old_probability - change.new_probability


def _parts(lost: Sequence[str], gained: Sequence[str]) -> list[Part]:
    of_lost, of_gained = Counter(filter(None, lost)), Counter(filter(None, gained))
    return [Part(name, of_lost[name], of_gained[name]) for name in sorted(of_lost | of_gained)]


def _share(lost: Sequence[Change]) -> str:
    """Name the group that at least half of the lost facts are in, if there is one."""
    groups = Counter(change.bucket if change.expected else UNANSWERABLE for change in lost)
    name = max(
        sorted(groups, key=lambda group: _ORDER.get(group, len(_ORDER))), key=lambda group: groups[group]
    )
    of = len(lost)
    if not name or 2 * groups[name] < of:
        return ""
    if of == 1:
        return f"it is {name}"
    if groups[name] == of:
        return f"all of them are {name}"
    return f"{groups[name]} of the {of} {'is' if groups[name] == 1 else 'are'} {name}"
