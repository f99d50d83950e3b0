"""The probes: facts to requests, responses to outcomes. This module runs the probe of a case.

A fact that is asked in several wordings of its question has the mean over them as its outcome. Each wording is a run
of the probe by itself, with its own answer, verdict and multiple-choice questions; all have the same draws. The
answer that represents a fact in reports is that to its first wording.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.metrics.calibration import ANSWERED, PROBABILITIES
from pytest_kbrel.probes import edits, head_to_tail, monitor, reliability
from pytest_kbrel.probes.base import (
    ProbeResult,
    ProbeRun,
    check_wording,
    in_step,
    in_wording,
    joined,
    joined_digest,
    with_columns,
    without_missing,
)
from pytest_kbrel.probes.monitor import with_equal_negatives
from pytest_kbrel.records import (
    Ask,
    Case,
    ExampleWording,
    Exchange,
    Fact,
    Outcome,
    ProbeName,
    Request,
    Response,
    Table,
    read_digest,
    short_digest,
)

A = TypeVar("A")
R = TypeVar("R")
# ``answer(requests, to)`` returns one response for each request, in order.
Answer = Callable[[Sequence[Request], str], Sequence[Response]]
Keep = Callable[[Sequence[Exchange]], None]
# As ``Answer``; the third argument has the node id of each request's case.
AnswerAll = Callable[[Sequence[Request], str, Sequence[str]], Sequence[Response]]
# Gets the number of a round, and its exchanges with the numbers of their parts.
KeepRound = Callable[[int, Sequence[int], Sequence[Exchange]], None]


# The code behind the records of ``catalogue/probes.py``.
IMPLEMENTATIONS: Mapping[ProbeName, Callable[[Case], ProbeRun]] = {
    "monitor": monitor.run,
    "head_to_tail": head_to_tail.run,
    "questions": head_to_tail.run,
    "reliability": reliability.run,
    "edits": edits.run,
}
# How many facts are asked at a time.
CHUNK_FACTS: dict[ProbeName, int] = {
    name: probe.chunk for name, probe in PROBES.items()
}


def open_case(case: Case) -> ProbeRun:
    """Start the probe of a case; ``SuiteError`` where it has the settings of another, or no facts."""
    _check(case)
    case = replace(case, settings=case.settings.for_model(chat=case.chat))
    run = IMPLEMENTATIONS[case.probe]
    return run(case) if count_of(case) == 1 else run_wordings(case, run)


def run_case(case: Case, answer: Answer, keep: Keep) -> ProbeResult:
    """Drive the probe of a case to its end, a large case in chunks of its facts.

    The second argument of ``answer`` is :attr:`Ask.to`. ``keep`` gets every exchange as soon as its round has
    been answered.
    """
    return whole_result(
        run_parts(
            [case],
            lambda requests, to, _: answer(requests, to),
            lambda _, __, exchanges: keep(exchanges),
        )
    )


def run_parts(
    parts: Sequence[Case], answer: AnswerAll, keep: KeepRound, to: str = ""
) -> list[ProbeResult]:
    """Drive the probes of parts of cases to their ends, together: a call of ``answer`` has requests of all.

    ``to`` is asked in place of the model under test. Otherwise as :func:`run_case`; :func:`whole_result` joins
    the parts of a case.
    """
    names = [f"{part.suite}::{part.id}" for part in parts]
    rounds = itertools.count()

    def named(ask: Ask, part: int) -> tuple[Ask, int]:
        is_other = to and not ask.to
        return replace(ask, to=to) if is_other else ask, part

    def respond(asked: Sequence[tuple[Ask, int]]) -> tuple[Response, ...]:
        responses: dict[int, Response] = {}
        for to in dict.fromkeys(ask.to for ask, _ in asked):
            mine = [n for n, (ask, _) in enumerate(asked) if ask.to == to]
            requests = [asked[n][0].request for n in mine]
            cases = [names[asked[n][1]] for n in mine]
            responses.update(zip(mine, answer(requests, to, cases), strict=True))
        exchanges = [
            Exchange(case=names[part], ask=ask, response=responses[n])
            for n, (ask, part) in enumerate(asked)
        ]
        keep(next(rounds), [part for _, part in asked], exchanges)
        return tuple(one.response for one in exchanges)

    return drive(in_step(list(map(_in_chunks, parts)), named), respond)


def _in_chunks(case: Case) -> ProbeRun:
    _check(case)
    results = []
    for chunk in chunks_of(case):
        results.append((yield from open_case(chunk)))
    return _merged(results)


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
        yield replace(case, facts=case.facts[start : start + size])


def part_of(case: Case, facts: Sequence[Fact]) -> Case:
    """Return the case with these of its facts, which are asked as in the whole case, whichever they are."""
    _check(case)
    leveled = {fact.id: fact for fact in _leveled(case).facts}
    return replace(case, facts=tuple(leveled[fact.id] for fact in facts))


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
    return replace(merged, table=without_missing(merged.table))


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


def drive(run: Generator[A, Any, R], respond: Callable[[A], Any]) -> R:
    """Drive a probe, or several in step, to the end; ``respond`` answers each round."""
    try:
        asks = next(run)
        while True:
            asks = run.send(respond(asks))
    except StopIteration as stop:
        result: R = stop.value
        return result


# Figures of these depend on the order of single answers, which a mean over wordings says nothing of.
_NOT_AVERAGED = PROBABILITIES[:2]
_WORDED = re.compile(r"wording([0-9]+)/(.*)")


def count_of(case: Case) -> int:
    """Return in how many wordings a case asks each fact."""
    return case.settings.wordings if isinstance(case.settings, ExampleWording) else 1


def wording_of(role: str) -> tuple[int, str]:
    """Return the number of the wording that an ask is about, from 0, and its role in the probe itself."""
    match = _WORDED.fullmatch(role)
    return (int(match[1]) - 1, match[2]) if match else (0, role)


def run_wordings(case: Case, run: Callable[[Case], ProbeRun]) -> ProbeRun:
    """Run a probe once for each wording, all in step, so that a round has the asks of all of them.

    Raises ``SuiteError`` where a fact has fewer wordings.
    """
    runs = [run(_in_wording(case, number)) for number in range(count_of(case))]
    return _averaged(case, (yield from in_step(runs, in_wording)))


def _in_wording(case: Case, number: int) -> Case:
    relations = {relation.id: relation for relation in case.relations}

    def worded(fact: Fact) -> Fact:
        questions = fact.questions(relations.get(fact.relation))
        if number < len(questions):
            return replace(fact, question=questions[number])
        raise SuiteError(
            f"{case.id}: wordings: found {count_of(case)}, and {len(questions)} of the question of "
            f"{fact.id!r}; allowed: 1 to {len(questions)}, or more frames of relation {fact.relation!r}"
        )

    # The answer that stands in the outcome is that to the first wording.
    top_k = 0 if number else case.top_k
    return replace(case, facts=tuple(map(worded, case.facts)), top_k=top_k)


def _averaged(case: Case, results: Sequence[ProbeResult]) -> ProbeResult:
    """Return the result of a case from those of its wordings; a fact that lacks one of them is an error."""
    columns = results[0].table.columns
    wanted = dict.fromkeys((fact.id for fact in case.facts), len(results))
    rows, errors = joined(
        case.facts, results, wanted, lambda _, outcomes: _mean(outcomes)
    )
    left_out = _left_out(results)
    table = with_columns(
        Table(columns=columns, rows=rows),
        tuple(name for name in columns if name not in left_out),
    )
    return ProbeResult(table=table, errors=errors)


def _left_out(results: Sequence[ProbeResult]) -> Sequence[str]:
    """Return the columns that are not averaged; none of probabilities is where one answer has none."""
    columns = results[0].table.columns
    answered, mean = columns.index(ANSWERED), columns.index(PROBABILITIES[0])
    rows = [row.values for result in results for row in result.table.rows]
    is_lacking = any(row[answered] and not row[mean] for row in rows)
    return PROBABILITIES if is_lacking else _NOT_AVERAGED


def _mean(outcomes: Sequence[Outcome]) -> Outcome:
    columns = zip(*(row.values for row in outcomes), strict=True)
    first, *others = outcomes
    return replace(
        first,
        values=tuple(math.fsum(column) / len(outcomes) for column in columns),
        prompt_digest=joined_digest([row.prompt_digest for row in outcomes]),
        others=tuple(row.replies[0] for row in others),
    )
