"""The probes: facts to requests, responses to outcomes. This module runs the probe of a case."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes import head_to_tail, monitor, reliability
from pytest_kbrel.probes.base import (
    ProbeResult,
    ProbeRun,
    check_wording,
    with_columns,
    without_missing,
)
from pytest_kbrel.probes.monitor import with_equal_negatives
from pytest_kbrel.probes.wordings import count_of, run_wordings
from pytest_kbrel.records import (
    Ask,
    Case,
    Exchange,
    Fact,
    ProbeName,
    Request,
    Response,
    Table,
)

# ``answer(requests, to)`` returns one response for each request, in order.
Answer = Callable[[Sequence[Request], str], Sequence[Response]]
Keep = Callable[[Sequence[Exchange]], None]


# The code behind the records of ``catalogue/probes.py``.
IMPLEMENTATIONS: Mapping[ProbeName, Callable[[Case], ProbeRun]] = {
    "monitor": monitor.run,
    "head_to_tail": head_to_tail.run,
    "questions": head_to_tail.run,
    "reliability": reliability.run,
}
# How many facts are asked at a time.
CHUNK_FACTS: dict[ProbeName, int] = {
    name: probe.chunk for name, probe in PROBES.items()
}


def open_case(case: Case) -> ProbeRun:
    """Start the probe of a case; ``SuiteError`` where it has the settings of another, or no facts."""
    _check(case)
    case = dataclasses.replace(case, settings=case.settings.for_model(chat=case.chat))
    run = IMPLEMENTATIONS[case.probe]
    return run(case) if count_of(case) == 1 else run_wordings(case, run)


def run_case(case: Case, answer: Answer, keep: Keep) -> ProbeResult:
    """Drive the probe of a case to its end, a large case in chunks of its facts.

    The second argument of ``answer`` is :attr:`Ask.to`. ``keep`` gets every exchange as soon as its round has
    been answered.
    """
    return whole_result([run_part(case, answer, keep)])


def run_part(case: Case, answer: Answer, keep: Keep) -> ProbeResult:
    """Drive the probe of a part of a case, as :func:`run_case`; :func:`whole_result` joins the parts."""
    _check(case)
    return _merged([_run(chunk, answer, keep) for chunk in chunks_of(case)])


def chunk_size(case: Case) -> int:
    """Return how many facts of a case are asked at a time; facts in several wordings count as often."""
    return max(CHUNK_FACTS[case.probe] // count_of(case), 1)


def chunks_of(case: Case) -> Iterator[Case]:
    """Yield the case with :data:`CHUNK_FACTS` of its facts at a time, so that memory does not grow with it.

    No probe compares facts: asked in chunks or at once, a case has the same outcomes. Raises ``SuiteError``
    for a case of MONITOR that is too large for one chunk, as
    :func:`~pytest_kbrel.probes.monitor.grid_of` does.
    """
    size = chunk_size(case)
    if len(case.facts) > size:
        case = _leveled(case)
    for start in range(0, max(1, len(case.facts)), size):
        yield dataclasses.replace(case, facts=case.facts[start : start + size])


def part_of(case: Case, facts: Sequence[Fact]) -> Case:
    """Return the case with these of its facts, which are asked as in the whole case, whichever they are."""
    _check(case)
    leveled = {fact.id: fact for fact in _leveled(case).facts}
    return dataclasses.replace(case, facts=tuple(leveled[fact.id] for fact in facts))


def _leveled(case: Case) -> Case:
    """Return the case with all that its facts must share when they are asked in several chunks."""
    contexts = PROBES[case.probe].reads == "contexts"
    return with_equal_negatives(case) if contexts else case


def whole_result(
    results: Sequence[ProbeResult], order: Sequence[Fact] = ()
) -> ProbeResult:
    """Return the result of a case from those of its parts, at least one; rows in the ``order`` of facts.

    It has no columns of probabilities where an answer lacks one.
    """
    merged = _merged(results, order)
    return dataclasses.replace(merged, table=without_missing(merged.table))


def _merged(results: Sequence[ProbeResult], order: Sequence[Fact] = ()) -> ProbeResult:
    # A part whose answers all lack a probability has no columns of them.
    tables = [result.table for result in results]
    columns = tuple(
        name
        for name in tables[0].columns
        if all(name in table.columns for table in tables)
    )
    rows = tuple(row for table in tables for row in with_columns(table, columns).rows)
    if order:
        positions = {fact.id: position for position, fact in enumerate(order)}
        rows = tuple(sorted(rows, key=lambda row: positions[row.fact_id]))
    return ProbeResult(
        table=Table(columns=columns, rows=rows),
        errors=tuple(error for result in results for error in result.errors),
        moved=tuple(moved for result in results for moved in result.moved),
    )


def _check(case: Case) -> None:
    own = PROBES[case.probe].settings
    if not isinstance(case.settings, own):
        raise SuiteError(
            f"{case.id}: probe {case.probe!r} has settings of its own, {own.__name__}; "
            f"found {type(case.settings).__name__}"
        )
    check_wording(case.settings)
    if not case.facts:
        raise SuiteError(
            f"{case.id}: it has no facts, and zero facts are no measurement"
        )


def _run(case: Case, answer: Answer, keep: Keep) -> ProbeResult:
    def respond(asks: Sequence[Ask]) -> tuple[Response, ...]:
        responses = _answered(asks, answer)
        nodeid = f"{case.suite}::{case.id}"
        pairs = zip(asks, responses, strict=True)
        keep(
            [
                Exchange(case=nodeid, ask=ask, response=response)
                for ask, response in pairs
            ]
        )
        return responses

    return drive(case, respond)


def drive(
    case: Case, respond: Callable[[Sequence[Ask]], Sequence[Response]]
) -> ProbeResult:
    """Drive the probe of a case to its end; ``respond`` answers each of its rounds."""
    probe = open_case(case)
    try:
        asks = next(probe)
        while True:
            asks = probe.send(tuple(respond(asks)))
    except StopIteration as stop:
        result: ProbeResult = stop.value
        return result


def _answered(asks: Sequence[Ask], answer: Answer) -> tuple[Response, ...]:
    responses: dict[int, Response] = {}
    for to in dict.fromkeys(ask.to for ask in asks):
        indices = [index for index, ask in enumerate(asks) if ask.to == to]
        answers = answer([asks[index].request for index in indices], to)
        responses.update(zip(indices, answers, strict=True))
    return tuple(responses[index] for index in range(len(asks)))
