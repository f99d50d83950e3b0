"""Ids for facts of a source: unique, and duplicates known by their content."""

from __future__ import annotations

import dataclasses
import hashlib

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.readers.base import Row


class Ids:
    """The ids and contents met so far: all that is kept in memory of a source, about 0.25 kB a fact."""

    def __init__(self) -> None:
        self._first: dict[int, str] = {}
        self._taken: set[int] = set()
        self._last: dict[str, int] = {}

    def settle(self, row: Row) -> Row:
        """Return the row with an id nobody has; one that says what an earlier one said names it.

        Facts say the same when relation, subject, object and question are equal. A later one becomes
        ``id#2``, ``id#3``, ... A source's own id on two facts that differ is an error.
        """
        fact = row.fact
        if fact is None:
            return row
        said = _digest("\0".join((fact.relation, fact.subject, fact.object or "", fact.question or "")))
        wanted = _digest(fact.id)
        first = self._first.get(said)
        if first is None and wanted not in self._taken:
            self._first[said] = fact.id
            self._taken.add(wanted)
            return row
        if first is None and row.given:
            message = f"id {fact.id!r} stands twice, for facts that differ; allowed: an id for each fact"
            return dataclasses.replace(row, fact=None, error=SuiteError(message, row.path, row.line))
        fact = dataclasses.replace(fact, id=self._free(fact.id), duplicate_of=first or "")
        self._first.setdefault(said, fact.id)
        self._taken.add(_digest(fact.id))
        return dataclasses.replace(row, fact=fact)

    def _free(self, wanted: str) -> str:
        if _digest(wanted) not in self._taken:
            return wanted
        number = self._last.get(wanted, 1) + 1
        while _digest(f"{wanted}#{number}") in self._taken:
            number += 1
        self._last[wanted] = number
        return f"{wanted}#{number}"


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
