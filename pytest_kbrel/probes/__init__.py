"""The probes: facts to questions, responses to outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes.base import ProbeResult, ProbeRun
from pytest_kbrel.probes.chunks import joined, stretches_of
from pytest_kbrel.probes.registry import IMPLEMENTATIONS
from pytest_kbrel.probes.wording import check_wording
from pytest_kbrel.records import (
    Ask,
    Case,
    Exchange,
    Request,
    Response,
)


def open_case(case: Case) -> ProbeRun:
    """Begin a case's probe; ``SuiteError`` where it has the settings of another, or no facts."""
    _check(case)
    return IMPLEMENTATIONS[case.probe].run(case)


def _check(case: Case) -> None:
    own = PROBES[case.probe].settings
    if not isinstance(case.settings, own):
        raise SuiteError(
            f"{case.id}: probe {case.probe!r} has settings of its own, {own.__name__}; "
            f"found {type(case.settings).__name__}"
        )
    check_wording(case.settings)
    if not case.facts:
        raise SuiteError(f"{case.id}: it has no facts, and zero facts are no measurement")


def run_case(
    case: Case,
    answer: Callable[[Sequence[Request], str], Sequence[Response]],
    keep: Callable[[Sequence[Exchange]], None],
) -> ProbeResult:
    """Drive a case's probe to its end, a large case in stretches of its facts.

    ``answer(requests, to)`` returns one response for each request, in order; ``to`` is who is asked, as in
    :class:`Ask`. ``keep`` is handed every exchange as soon as its round has been answered.
    """
    _check(case)
    return joined([_run(part, answer, keep) for part in stretches_of(case)])


def _run(
    case: Case,
    answer: Callable[[Sequence[Request], str], Sequence[Response]],
    keep: Callable[[Sequence[Exchange]], None],
) -> ProbeResult:
    probe = open_case(case)
    try:
        asks = next(probe)
        while True:
            responses = _answered(asks, answer)
            keep(list(_exchanges(case, asks, responses)))
            asks = probe.send(responses)
    except StopIteration as stop:
        result: ProbeResult = stop.value
        return result


def _answered(
    asks: Sequence[Ask], answer: Callable[[Sequence[Request], str], Sequence[Response]]
) -> tuple[Response, ...]:
    responses: dict[int, Response] = {}
    for to in dict.fromkeys(ask.to for ask in asks):
        places = [place for place, ask in enumerate(asks) if ask.to == to]
        found = answer([asks[place].request for place in places], to)
        responses.update(zip(places, found, strict=True))
    return tuple(responses[place] for place in range(len(asks)))


def _exchanges(case: Case, asks: Sequence[Ask], responses: Sequence[Response]) -> Iterator[Exchange]:
    for ask, response in zip(asks, responses, strict=True):
        yield Exchange(case=f"{case.suite}::{case.id}", ask=ask, response=response)
