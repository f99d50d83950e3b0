"""The three probes: facts to questions, responses to outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pytest_kbrel.probes import head_to_tail, monitor, reliability
from pytest_kbrel.probes.base import ProbeResult, ProbeRun
from pytest_kbrel.records import Ask, Case, Exchange, ProbeName, Request, Response

_RUN: dict[ProbeName, Callable[[Case], ProbeRun]] = {
    "monitor": monitor.run,
    "head_to_tail": head_to_tail.run,
    "reliability": reliability.run,
}


def run_case(
    case: Case,
    answer: Callable[[Sequence[Request]], Sequence[Response]],
    keep: Callable[[Sequence[Exchange]], None],
) -> ProbeResult:
    """Drive a case's probe to its end.

    ``answer`` returns one response for each request, in order; ``keep`` is handed every exchange as soon as
    its round has been answered.
    """
    probe = _RUN[case.probe](case)
    try:
        asks = next(probe)
        while True:
            responses = tuple(answer([ask.request for ask in asks]))
            keep(list(_exchanges(case, asks, responses)))
            asks = probe.send(responses)
    except StopIteration as stop:
        result: ProbeResult = stop.value
        return result


def _exchanges(case: Case, asks: Sequence[Ask], responses: Sequence[Response]) -> Iterator[Exchange]:
    for ask, response in zip(asks, responses, strict=True):
        yield Exchange(case=f"{case.suite}::{case.id}", ask=ask, response=response)
