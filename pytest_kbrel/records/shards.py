"""Shards: the shares into which a run is divided, so that several machines each ask one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

from pytest_kbrel.records.exchange import record
from pytest_kbrel.records.suite import Case, Fact

ShardBy = Literal["fact", "case"]


@record
class Shard:
    """One share of a run: number ``index``, from 1, of ``count``.

    Facts are dealt out by sha256 of their ids, and with ``by`` "case" whole cases by that of their node ids.
    So a share depends on no machine, no order and no other fact.
    """

    index: int
    count: int
    by: ShardBy = "fact"

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, name: str) -> bool:
        """Return True if the fact with this id is in the share."""
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.index - 1

    def part(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of these fact ids that are in the share, in their order."""
        return tuple(name for name in names if self.has(name))

    def facts_of(self, case: Case) -> tuple[Fact, ...]:
        """Return the facts of a case that are in the share, in their order."""
        if self.by == "case":
            return case.facts if self.has(f"{case.suite}::{case.id}") else ()
        return tuple(fact for fact in case.facts if self.has(fact.id))


def facts_asked(case: Case, shard: Shard | None) -> tuple[Fact, ...]:
    """Return the facts of a case that a session asks: those in its shard, all of them without one."""
    return case.facts if shard is None else shard.facts_of(case)


@record
class ShardedRun:
    """What a report says of its shard, by which shards are held against each other before they are joined.

    ``suites`` are the digests of all that the suites ask, by path, ``commit`` is that of the project.
    """

    shard: Shard
    suites: tuple[tuple[str, str], ...]
    commit: str = ""
