"""How many tokens a run of some cases would feed, on each way of sharing, without any weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_kbrel.models.hf_caches import KeptPrefix
from pytest_kbrel.models.hf_feeding import Fed, Feeder
from pytest_kbrel.models.hf_ladder import Rung
from pytest_kbrel.planning.asking import Call, is_fixed, scenario
from pytest_kbrel.records import Case, record


@record
class SharedCase:
    """What one case asks of the model under test, and what goes through it.

    ``requests`` come in, ``distinct`` are put to the model. ``asked`` are the tokens if each request that
    comes in is fed by itself, ``fed`` those that are fed instead, by way. ``fixed`` tells whether what is
    asked hangs on no answer; else it is the most that there can be.
    """

    suite: str
    id: str
    fixed: bool
    requests: int
    distinct: int
    asked: int
    fed: tuple[tuple[Rung, Fed], ...]
    calls: tuple[Call, ...]


def shared_cases(cases: Sequence[Case], feeder: Feeder) -> tuple[SharedCase, ...]:
    """Return what each of ``cases`` feeds in a run of all of them, in this order.

    As in a run, what came before, in whatever case, is not fed again; what a judge or a writer is asked is
    left out.
    """
    calls = [call for call in scenario(cases, "most").calls if not call.to]
    kept = {way: KeptPrefix() for way in feeder.ways}
    return tuple(
        _shared(case, [call for call in calls if call.case == f"{case.suite}::{case.id}"], feeder, kept)
        for case in cases
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


def _shared(case: Case, calls: Sequence[Call], feeder: Feeder, kept: Mapping[Rung, KeptPrefix]) -> SharedCase:
    fed = {way: Fed() for way in feeder.ways}
    for call in calls:
        fed = {way: fed[way].plus(feeder.fed(call.requests, way, kept[way])) for way in fed}
    return SharedCase(
        suite=case.suite,
        id=case.id,
        fixed=is_fixed(case),
        requests=sum(call.asked for call in calls),
        distinct=sum(len(call.requests) for call in calls),
        asked=sum(feeder.whole((*call.requests, *call.repeated)) for call in calls),
        fed=tuple(fed.items()),
        calls=tuple(calls),
    )
