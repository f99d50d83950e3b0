"""Scheduler for pytest-xdist: items of suites one at a time and the largest first, large cases in parts.

Only imported where xdist is. Ordinary tests are dealt as xdist deals them, once no item of a suite can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from xdist.scheduler import LoadScheduling

from pytest_kbrel.plugin.parts import Dealing

# How often a part is dealt that workers crash at.
_TRIES = 2


class SliceScheduling(LoadScheduling):  # type: ignore[misc]
    """xdist's own scheduler with a queue of its own for the items of suites; without any it is xdist's own.

    A worker begins an item when it has the next one as well. So that none waits at a busy worker for that
    reason, a filler is sent behind each, at which nothing is to be done.

    Where a worker crashes in a part, another one is given the part: what was answered is in the store. An
    item is dealt once all its parts have been run.
    """

    # xdist's own, which has no types.
    collection: list[str] | None
    maxschedchunk: int | None

    def __init__(
        self, config: Any, log: Any, deal: Callable[[Sequence[str]], Dealing]
    ) -> None:
        """``deal`` returns the dealing of the items by their node ids."""
        super().__init__(config, log)
        self._deal = deal
        self._dealing = Dealing()
        # What can be dealt, in order; and for each item that is split, which of its parts have not been run.
        self._units: list[int] = []
        self._open_parts: dict[int, set[int]] = {}
        self._crashes: Counter[int] = Counter()

    @property
    def tests_finished(self) -> bool:
        """True if all is dealt, and no worker has more than the one that it runs."""
        if not self._dealing.order:
            return bool(super().tests_finished)
        return not self._outstanding and all(
            len(self._ahead(node)) < 2 for node in self.nodes
        )

    @property
    def has_pending(self) -> bool:
        """True if something has not been dealt or run."""
        return bool(self._outstanding or super().has_pending)

    @property
    def _outstanding(self) -> bool:
        return bool(self._units or self._open_parts or self.pending)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take what a worker has collected; one that takes another's place and has other items is ended."""
        super().add_node_collection(node, collection)
        if node not in self.node2collection:
            node.shutdown()

    def schedule(self) -> None:
        """Deal to all workers; called when the collection is complete, and when a worker has joined."""
        if self.collection is None:
            items = next(iter(self.node2collection.values()))
            dealing = self._deal(items)
            if not dealing.order:
                super().schedule()
                return
            if not self._check_nodes_have_same_collection():
                return
            self._dealing, self.collection = dealing, items
            for number in dealing.order:
                if dealing.part(number) is not None:
                    parts = self._open_parts.setdefault(dealing.item_of(number), set())
                    parts.add(number)
            self._units = [
                number for number in dealing.order if number not in self._open_parts
            ]
            of_suites = set(dealing.order)
            self.pending[:] = [
                number for number in range(len(items)) if number not in of_suites
            ]
            if self.maxschedchunk is None:
                self.maxschedchunk = len(items)
        for node in self.nodes:
            self.check_schedule(node)

    def mark_test_complete(
        self, node: Any, item_index: int, duration: float = 0
    ) -> None:
        """Note that a worker has run an item, a part or a filler, and deal on."""
        item = self._dealing.item_of(item_index)
        open_parts = self._open_parts.get(item, set())
        open_parts.discard(item_index)
        decidable = item in self._open_parts and not open_parts
        if decidable:
            del self._open_parts[item]
            self._units.insert(0, item)
        super().mark_test_complete(node, item_index, duration)
        for other in self.nodes if decidable else ():
            self.check_schedule(other)

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        """Send a worker what it is to run next, or to its end if nothing is left for it."""
        if not self._dealing.order:
            super().check_schedule(node, duration)
            return
        # One that takes the place of another is still collecting.
        if node.shutting_down or node not in self.node2collection:
            return
        if self._units and not self._ahead(node):
            number = self._units.pop(0)
            self._send(node, number, self._dealing.filler_behind(number))
        if not self._units:
            self._send_ordinary(node)
        pending = self.node2pending[node]
        if not self._outstanding:
            node.shutdown()
        elif len(self._ahead(node)) == 1 and not self._dealing.is_filler(pending[-1]):
            self._send(node, self._dealing.filler_behind(pending[-1]))

    def _send_ordinary(self, node: Any) -> None:
        """Send a worker ordinary tests, if it has no second one: several, as long as there are many."""
        ahead = len(self._ahead(node))
        if ahead < 2 and self.pending:
            assert self.maxschedchunk is not None
            count = max(2, len(self.pending) // len(self.nodes) // 2) - ahead
            count = min(count, max(2 - ahead, self.maxschedchunk))
            numbers = self.pending[:count]
            del self.pending[:count]
            self._send(node, *numbers)

    def remove_node(self, node: Any) -> str | None:
        """Remove a worker; return the item at which it crashed, ``None`` where that is run again."""
        if not self._dealing.order:
            result: str | None = super().remove_node(node)
            return result
        real, pending = list(self._real(node)), self.node2pending.pop(node)
        if not real:
            return None
        # At a filler fixtures of the items before it are torn down.
        crashed = (
            None if self._dealing.is_filler(pending[0]) else self._crashed_at(real[0])
        )
        of_suites = set(self._dealing.order)
        # What was dealt first stands in front again; nobody needs the parts of a case that has failed.
        again = [
            number
            for number in real[crashed is not None :]
            if self._dealing.part(number) is None
            or self._dealing.item_of(number) in self._open_parts
        ]
        self._units[:0] = [number for number in again if number in of_suites]
        self.pending[:0] = [number for number in again if number not in of_suites]
        for other in self.nodes:
            self.check_schedule(other)
        return crashed

    def _crashed_at(self, number: int) -> str | None:
        """Return the node id of the item that a worker crashed at, ``None`` for a part to deal again."""
        item = self._dealing.item_of(number)
        if number != item:
            self._crashes[number] += 1
            if item not in self._open_parts or self._crashes[number] < _TRIES:
                return None
            # The case fails.
            dropped = self._open_parts.pop(item)
            self._units = [unit for unit in self._units if unit not in dropped]
        return self._dealing.items[item]

    def _ahead(self, node: Any) -> list[int]:
        """Return the first two of what a worker has yet to run, without fillers."""
        return list(islice(self._real(node), 2))

    def _real(self, node: Any) -> Iterator[int]:
        """Yield the numbers that a worker has yet to run, without fillers."""
        for number in self.node2pending[node]:
            if not self._dealing.is_filler(number):
                yield number

    def _send(self, node: Any, *numbers: int) -> None:
        self.node2pending[node].extend(numbers)
        node.send_runtest_some(list(numbers))
