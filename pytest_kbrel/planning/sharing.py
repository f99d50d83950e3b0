"""How many tokens a run of some cases would feed, on each way of sharing, without any weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

from pytest_kbrel.models.hf_caches import KeptPrefix
from pytest_kbrel.models.hf_feeding import Fed, Feeder
from pytest_kbrel.models.hf_ladder import Rung
from pytest_kbrel.planning.asking import Call, Scenario, is_fixed
from pytest_kbrel.records import Case, record


@record
class SharedCase:
    """What one case asks of the model under test, and what goes through it.

    ``requests`` come in, ``distinct`` are put to the model. ``asked`` are the tokens if each request that
    comes in is fed by itself, ``fed`` those that are fed instead, by way. ``fixed`` tells whether what is
    asked hangs on no answer; else it is the most that there can be. ``calls`` are there if they are to be
    shown.
    """

    suite: str
    id: str
    fixed: bool
    requests: int
    distinct: int
    asked: int
    fed: tuple[tuple[Rung, Fed], ...]
    calls: tuple[Call, ...]


def shared_cases(
    cases: Sequence[Case], feeder: Feeder, shown: Collection[Case] = ()
) -> tuple[SharedCase, ...]:
    """Return what each of ``cases`` feeds in a run of all of them, in this order; ``shown`` with their calls.

    As in a run, what came before, in whatever case, is not fed again; what a judge or a writer is asked is
    left out.
    """
    by_id = {f"{case.suite}::{case.id}": case for case in cases}
    kept = {way: KeptPrefix() for way in feeder.ways}
    calls = (call for call in Scenario(cases, "most").calls() if not call.to)
    return tuple(
        _shared(by_id[nodeid], own, feeder, kept, hold=by_id[nodeid] in shown)
        for nodeid, own in groupby(calls, key=lambda call: call.case)
    )


def total(cases: Sequence[SharedCase]) -> SharedCase:
    """Return the sum of all cases, as a case of its own without calls."""
    found = dict(cases[0].fed)
    for case in cases[1:]:
        found = {way: found[way].plus(fed) for way, fed in case.fed}
    return SharedCase(
        suite="",
        id="all",
        fixed=all(case.fixed for case in cases),
        requests=sum(case.requests for case in cases),
        distinct=sum(case.distinct for case in cases),
        asked=sum(case.asked for case in cases),
        fed=tuple(found.items()),
        calls=(),
    )


def _shared(
    case: Case, calls: Iterable[Call], feeder: Feeder, kept: Mapping[Rung, KeptPrefix], *, hold: bool
) -> SharedCase:
    fed = {way: Fed() for way in feeder.ways}
    requests = distinct = asked = 0
    held: list[Call] = []
    for call in calls:
        fed = {way: fed[way].plus(feeder.fed(call.requests, way, kept[way])) for way in fed}
        requests += call.asked
        distinct += len(call.requests)
        asked += feeder.whole((*call.requests, *call.repeated))
        held += [call] if hold else []
    return SharedCase(
        suite=case.suite,
        id=case.id,
        fixed=is_fixed(case),
        requests=requests,
        distinct=distinct,
        asked=asked,
        fed=tuple(fed.items()),
        calls=tuple(held),
    )
