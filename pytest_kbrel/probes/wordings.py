"""Wordings: every fact asked in several wordings of its question, its outcome the mean over them.

Each wording is a run of the probe by itself, with its own answer, verdict and multiple-choice questions; all
have the same draws. The answer that represents a fact in reports is that to its first wording.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.metrics.calibration import ANSWERED, PROBABILITIES
from pytest_kbrel.probes.base import ProbeResult, ProbeRun, with_columns
from pytest_kbrel.records import (
    Ask,
    Case,
    ExampleWording,
    Fact,
    Outcome,
    Response,
    Table,
    read_digest,
    short_digest,
)

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
    asks = {number: next(one) for number, one in enumerate(runs)}
    results: dict[int, ProbeResult] = {}
    while asks:
        responses = yield tuple(
            _named(ask, number) for number, of in asks.items() for ask in of
        )
        following, start = {}, 0
        for number, of in asks.items():
            mine: tuple[Response, ...] = responses[start : start + len(of)]
            start += len(of)
            try:
                following[number] = runs[number].send(mine)
            except StopIteration as stop:
                results[number] = stop.value
        asks = following
    return _averaged(case, [results[number] for number in range(len(runs))])


def _in_wording(case: Case, number: int) -> Case:
    relations = {relation.id: relation for relation in case.relations}

    def worded(fact: Fact) -> Fact:
        questions = fact.questions(relations.get(fact.relation))
        if number < len(questions):
            return dataclasses.replace(fact, question=questions[number])
        raise SuiteError(
            f"{case.id}: wordings: found {count_of(case)}, and {len(questions)} of the question of "
            f"{fact.id!r}; allowed: 1 to {len(questions)}, or more frames of relation {fact.relation!r}"
        )

    # The answer that stands in the outcome is that to the first wording.
    top_k = 0 if number else case.top_k
    return dataclasses.replace(case, facts=tuple(map(worded, case.facts)), top_k=top_k)


def _named(ask: Ask, number: int) -> Ask:
    if not number:
        return ask
    return dataclasses.replace(ask, role=f"wording{number + 1}/{ask.role}")


def _averaged(case: Case, results: Sequence[ProbeResult]) -> ProbeResult:
    """Return the result of a case from those of its wordings; a fact that lacks one of them is an error."""
    columns = results[0].table.columns
    of_fact = [{row.fact_id: row for row in result.table.rows} for result in results]
    failures = [error for result in results for error in result.errors]
    rows, errors = [], []
    for fact in case.facts:
        outcomes = [table[fact.id] for table in of_fact if fact.id in table]
        if len(outcomes) == len(results):
            rows.append(_mean(outcomes))
            continue
        # One text a fact, for that is how facts without usable responses are counted.
        own = [error for error in failures if error.startswith(f"{fact.id} (")]
        own.append(f"{fact.id}: one of its wordings has no usable response")
        errors.append(own[0])
    left_out = _left_out(results)
    table = with_columns(
        Table(columns=columns, rows=tuple(rows)),
        tuple(name for name in columns if name not in left_out),
    )
    return ProbeResult(table=table, errors=tuple(errors))


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
    return dataclasses.replace(
        first,
        values=tuple(math.fsum(column) / len(outcomes) for column in columns),
        prompt_digest=_joined([row.prompt_digest for row in outcomes]),
        others=tuple(row.replies[0] for row in others),
    )


def _joined(texts: Sequence[str]) -> str:
    digests = [digest for digest in map(read_digest, texts) if digest is not None]
    assert len(digests) == len(texts), texts
    return str(
        dataclasses.replace(
            digests[0],
            prompts=short_digest([digest.prompts for digest in digests]),
            bos=sum(digest.bos for digest in digests),
            count=sum(digest.count for digest in digests),
        )
    )
