"""Units of work: chunks of facts of a case that one process claims, asks, and keeps in files for the others.

All processes cut the same cases into the same units. A unit is held by a lock file while it is asked: the
kernel frees it when its process dies, and another process claims the unit again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.cache.store import Lock
from pytest_kbrel.planning.requests import cost_of
from pytest_kbrel.probes import chunk_size
from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.records import Case, Exchange, Fingerprint, Shard, facts_asked, record
from pytest_kbrel.reports.spools import append_exchanges
from pytest_kbrel.serialization import dumps_compact, from_wire

# A case is cut finer than in chunks if it costs more than this share of what each worker has to do.
_LARGE = 0.1
# A unit has this share of what is left, over the workers: large ones share more text in their batches, and
# with small ones at the end all workers end at the same moment.
_ROUNDS = 1.5
# No unit costs less than what each worker has to do over this, or has fewer facts than this.
_UNITS_OF_A_WORKER = 16
_LEAST_FACTS = 16
# How many workers may die at a unit before it is not asked again.
_TRIES = 2
_RESULT, _EXCHANGES = ".result", ".exchanges"


@record
class Unit:
    """``size`` facts of a case from the one at ``first`` on, in its chunk number ``chunk``."""

    first: int
    size: int
    chunk: int


@record
class UnitResult:
    """What a process got for a unit of a case.

    ``base`` is the result of the baseline model, ``prompt`` the first prompt as the model read it,
    ``seconds`` how long it took. ``requests`` are those to the model under test and its helpers. ``models``
    are those of the process, by their names in ``Ask.to``.
    """

    own: ProbeResult
    base: ProbeResult | None
    prompt: str
    requests: int
    seconds: float
    models: tuple[tuple[str, Fingerprint], ...]


def units_of(
    cases: Sequence[Case], workers: int, shard: Shard | None
) -> dict[str, tuple[Unit, ...]]:
    """Return the units of each case by its node id, the case that costs most first.

    Of each case only the facts that are in the ``shard`` count.
    """
    facts = {
        f"{case.suite}::{case.id}": len(facts_asked(case, shard)) for case in cases
    }
    named = {f"{case.suite}::{case.id}": case for case in cases}
    costs = {
        name: cost_of(case) * facts[name] / max(len(case.facts), 1)
        for name, case in named.items()
    }
    left = sum(costs.values())
    share = left / workers
    units = {}
    for name in sorted(costs, key=lambda one: (-costs[one], one)):
        least, parts = facts[name], 1.0
        if costs[name] > _LARGE * share:
            small = share / _UNITS_OF_A_WORKER / costs[name] * facts[name]
            least, parts = max(round(small), _LEAST_FACTS), _ROUNDS * workers
        more = (left / costs[name] - 1) * facts[name] if costs[name] else 0.0
        cut = _cut(facts[name], chunk_size(named[name]), least, parts, more)
        units[name] = tuple(cut)
        left -= costs[name]
    return units


def _cut(
    facts: int, chunk: int, least: int, parts: float, more: float
) -> Iterator[Unit]:
    """Cut a case into units, each within a chunk and one of ``parts`` of what is left.

    What is left behind the case costs as much as ``more`` of its facts.
    """
    first = 0
    while first < facts:
        end = min(first - first % chunk + chunk, facts)
        size = round((facts - first + more) / parts)
        stop = min(first + max(size, least), end)
        if end - stop < least:
            stop = end
        yield Unit(first=first, size=stop - first, chunk=first // chunk)
        first = stop


class UnitFolder:
    """Files of the units of one case (a node id) in ``folder``, which all workers of the session share.

    A unit's files are complete or not there: of a killed worker's unit none is read.
    """

    def __init__(self, folder: Path, case: str) -> None:
        self._case = case
        digest = hashlib.blake2b(case.encode(), digest_size=8).hexdigest()
        self._prefix = folder / f"unit-{digest}"

    @contextlib.contextmanager
    def claim(self, unit: Unit) -> Iterator[UnitWriter | None]:
        """Claim a unit: hold it, and give the writer of its files; ``None`` where it is asked or held.

        Raises :class:`KbrelError` where workers have died at it, ``OSError`` and as :class:`Lock` does.
        """
        self._prefix.parent.mkdir(parents=True, exist_ok=True)
        lock, begun = Lock(self._path(unit, ".lock")), self._path(unit, ".begun")
        if self.is_asked(unit) or not lock.take():
            yield None
            return
        try:
            if self.is_asked(unit):
                yield None
                return
            self._begin(unit, begun)
            try:
                yield UnitWriter(self._prefix, unit)
            except Exception:
                begun.unlink()
                raise
            begun.unlink()
        finally:
            lock.free()

    def _begin(self, unit: Unit, begun: Path) -> None:
        """Count that a worker begins; one that dies leaves its count."""
        with begun.open("ab") as stream:
            if stream.tell() >= _TRIES:
                last = unit.first + unit.size
                raise KbrelError(
                    f"{_TRIES} workers died while they asked facts {unit.first + 1} to "
                    f"{last} of {self._case}"
                )
            stream.write(b".")

    def is_asked(self, unit: Unit) -> bool:
        """Return True if a process has asked the unit."""
        return self._path(unit, _RESULT).exists()

    def result(self, unit: Unit) -> UnitResult:
        """Return the result of a unit that was asked; raises ``OSError`` or ``ValueError``."""
        data = json.loads(self._path(unit, _RESULT).read_bytes())
        return from_wire(UnitResult, data)

    def copy_exchanges(self, spool: Path) -> None:
        """Append the exchanges of all units to a spool file, in the order in which the whole case has them.

        Raises ``OSError``.
        """
        with spool.open("ab") as stream:
            for path in sorted(
                self._prefix.parent.glob(f"{self._prefix.name}-*{_EXCHANGES}")
            ):
                with path.open("rb") as unit:
                    shutil.copyfileobj(unit, stream)

    def _path(self, unit: Unit, ending: str) -> Path:
        return _path(self._prefix, f"{unit.first:08}{ending}")


class UnitWriter:
    """Writer of the files of one unit.

    A case is asked in chunks and a chunk in rounds, and the baseline model after the model under test: sorted
    by name, the files of all units have the order of the whole case.
    """

    def __init__(self, prefix: Path, unit: Unit) -> None:
        self._prefix, self._unit = prefix, unit
        self._rounds = [0, 0]
        self._written: dict[Path, Path] = {}

    def keep(self, exchanges: Sequence[Exchange], *, of_base: bool = False) -> None:
        """Write the exchanges of one round; raises ``OSError``."""
        at, unit = self._rounds[of_base], self._unit
        self._rounds[of_base] += 1
        new = self._new(
            f"{of_base:d}-{unit.chunk:06}-{at:04}-{unit.first:08}{_EXCHANGES}"
        )
        new.unlink(missing_ok=True)
        append_exchanges(new, exchanges)

    def finish(self, result: UnitResult) -> None:
        """Write the result, and with it make the unit known; raises ``OSError``."""
        self._new(f"{self._unit.first:08}{_RESULT}").write_text(dumps_compact(result))
        for own, path in self._written.items():
            os.replace(own, path)

    def _new(self, ending: str) -> Path:
        """Return what a file of the unit is called until the unit is finished."""
        path = _path(self._prefix, ending)
        own = path.with_name(f"{path.name}.{os.getpid()}")
        self._written[own] = path
        return own


def _path(prefix: Path, ending: str) -> Path:
    return prefix.with_name(f"{prefix.name}-{ending}")
