"""Units of work: chunks of facts of a case that one process claims and asks for all.

All processes cut the same cases into the same units. A unit is held by a lock file while it is asked: the
kernel frees it when its process dies, and another process claims the unit again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.stub_run import cost_of
from pytest_kbrel.probes import chunk_size
from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.records import Case, Shard, facts_asked, record
from pytest_kbrel.store.database import Lock
from pytest_kbrel.store.run_store import RunStore

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
    ``seconds`` how long it took. ``requests`` are those to the model under test and its helpers.
    """

    own: ProbeResult
    base: ProbeResult | None
    prompt: str
    requests: int
    seconds: float


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


@contextlib.contextmanager
def claim(store: RunStore, case: str, unit: Unit) -> Iterator[bool]:
    """Claim a unit of a case (a node id) and hold it; False where it is asked, or another process holds it.

    Raises :class:`KbrelError` where workers have died at it, and where the store or the lock fails.
    """
    if unit.first in store.asked_units(case):
        yield False
        return
    assert store.path is not None
    digest = hashlib.blake2b(case.encode(), digest_size=8).hexdigest()
    lock = Lock(store.path.with_name(f"unit-{digest}-{unit.first}.lock"))
    if not lock.take():
        yield False
        return
    try:
        if unit.first in store.asked_units(case):
            yield False
            return
        if store.begin(case, unit.first) >= _TRIES:
            last = unit.first + unit.size
            raise KbrelError(
                f"{_TRIES} workers died while they asked facts {unit.first + 1} to {last} of {case}"
            )
        try:
            yield True
        except Exception:
            store.give_up(case, unit.first)
            raise
    finally:
        lock.free()


def unit_place(unit: Unit, of_base: bool, at: int) -> str:
    """Return the place of what was asked in round ``at`` of a unit.

    A case is asked in chunks and a chunk in rounds, and the baseline model after the model under test: sorted
    by their places, the exchanges of all units have the order of the whole case.
    """
    return f"{of_base:d}-{unit.chunk:06}-{at:04}-{unit.first:08}"
