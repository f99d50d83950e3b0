"""Parts: how items of suites are dealt to workers, the largest first and large cases in parts of their facts.

Controller and workers reckon the same parts from the node ids and the suites, so that a number tells a worker
what to ask. A part asks and keeps the outcomes of its facts in a file; the item itself then runs once, joins
the parts and decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.records import Shard, Suite, facts_asked, record
from pytest_kbrel.words import in_suite

# A case is split if it costs more than this share of what each worker has to do.
_SPLIT = 0.1
# A part has this share of what has not been dealt yet, over the workers: early parts are large, late ones
# small.
_ROUNDS = 1.5
# No part is smaller than what each worker has to do over this, or has fewer facts than this.
_PARTS_OF_A_WORKER = 16
_LEAST_FACTS = 16


@record
class Part:
    """``size`` facts of the case of ``item`` (a node id), from the one at ``first`` on."""

    item: str
    first: int
    size: int


@record
class Dealing:
    """The order in which the items of suites are dealt, by numbers.

    The numbers of items are their positions among the ``items`` that were collected. Behind them are those of
    ``fillers``, one for each suite by its path, and then those of ``parts``. ``order`` are parts and items in
    the order in which they are dealt, the largest case first; an item stands behind its own parts.
    """

    items: tuple[str, ...] = ()
    fillers: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    order: tuple[int, ...] = ()

    def part(self, number: int) -> Part | None:
        """Return the part of this number, ``None`` if it is that of something else."""
        position = number - len(self.items) - len(self.fillers)
        return self.parts[position] if 0 <= position < len(self.parts) else None

    def item_of(self, number: int) -> int:
        """Return the number of the item that a part is one of; that of an item is its own."""
        part = self.part(number)
        return number if part is None else self.items.index(part.item)

    def is_filler(self, number: int) -> bool:
        """Return True if nothing is to be done at this number."""
        return 0 <= number - len(self.items) < len(self.fillers)

    def filler_behind(self, number: int) -> int:
        """Return the number of the filler that follows an item or a part; any suite's where it has none."""
        path = self.items[self.item_of(number)].partition("::")[0]
        place = self.fillers.index(path) if path in self.fillers else 0
        return len(self.items) + place


def dealing_of(
    items: Sequence[str],
    suites: Sequence[Suite],
    workers: int,
    *,
    split: bool,
    shard: Shard | None = None,
) -> Dealing:
    """Return how items are dealt to so many workers; none is split without ``split``.

    Of each case only the facts that are in the ``shard`` count.
    """
    if not any(map(in_suite, items)):
        return Dealing(items=tuple(items))
    # Not in a session that has none: it loads the probes.
    from pytest_kbrel.planning.case_cost import cost_of
    from pytest_kbrel.probes import chunk_size

    cases = {
        f"{suite.path}::{case.id}": case for suite in suites for case in suite.cases
    }
    facts: dict[str, int] = {}
    costs: dict[int, float] = {}
    for number, item in enumerate(items):
        if not in_suite(item):
            continue
        case, costs[number] = cases.get(item), 0.0
        if case is not None and case.facts:
            facts[item] = len(facts_asked(case, shard))
            costs[number] = cost_of(case) * facts[item] / len(case.facts)
    fillers = tuple(dict.fromkeys(items[number].partition("::")[0] for number in costs))
    share = remaining = sum(costs.values())
    share /= workers
    parts: list[Part] = []
    order: list[int] = []
    for number in sorted(costs, key=lambda one: (-costs[one], one)):
        item, cost = items[number], costs[number]
        if split and cost > _SPLIT * share:
            each, chunk = cost / facts[item], chunk_size(cases[item])
            least = max(round(share / _PARTS_OF_A_WORKER / each), _LEAST_FACTS)
            cuts = _cut(item, facts[item], chunk, remaining / each, workers, least)
            if len(cuts) > 1:
                start = len(items) + len(fillers) + len(parts)
                order += range(start, start + len(cuts))
                parts += cuts
        order.append(number)
        remaining -= cost
    return Dealing(
        items=tuple(items),
        fillers=fillers,
        parts=tuple(parts),
        order=tuple(order),
    )


def _cut(
    item: str, facts: int, chunk: int, remaining: float, workers: int, least: int
) -> list[Part]:
    """Cut a case into parts of at least ``least`` facts.

    ``remaining`` is all that has not been dealt, this case included, as so many of its facts. A case is asked
    in chunks of ``chunk`` facts: a part ends with one rather than a few facts before or behind it.
    """
    first = 0
    parts = []
    while first < facts:
        size = max(round(remaining / (_ROUNDS * workers)), least)
        to_end = chunk - first % chunk
        if size >= to_end:
            size = to_end + (size - to_end) // chunk * chunk
        elif to_end - size < least:
            size = to_end
        if facts - first - size < least:
            size = facts - first
        parts.append(Part(item=item, first=first, size=size))
        first += size
        remaining -= size
    return parts
