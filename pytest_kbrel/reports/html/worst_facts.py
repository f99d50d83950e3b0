"""The worst facts of each case, with every question that was asked about them, read from the responses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_kbrel.records import (
    CaseResult,
    Change,
    Exchange,
    Failed,
    Generated,
    Outcome,
    Scored,
)
from pytest_kbrel.reports.changes import examples
from pytest_kbrel.reports.formatting import end_of
from pytest_kbrel.reports.responses import from_line, numbered
from pytest_kbrel.reports.view import View

# So many facts of a case are looked up; fewer where the run has many cases.
_MOST_FACTS, _ALL_FACTS = 6, 1500
_LONGEST = 200
_MOST_PLACES = 40
_ROLE_KEY = b', "role": '


@dataclass(frozen=True, slots=True)
class Asked:
    """One question about a fact: ``part`` says in which frame and context, ``right`` is None if unknown.

    ``probability`` is the mean probability of the tokens of the right answer where it was scored, and else
    that of the model's own answer.
    """

    part: str
    prompt: str
    answer: str
    probability: float | None
    right: bool | None


@dataclass(frozen=True, slots=True)
class WorstFact:
    """A fact that speaks against the model, what changed if it was lost, and what was asked about it."""

    row: Outcome
    change: Change | None
    asked: tuple[Asked, ...] = ()


Worst = dict[tuple[str, str], WorstFact]


def worst_facts(view: View, responses: Path | None) -> dict[str, list[WorstFact]]:
    """Return the worst facts of each case by node id; without ``responses`` no questions are listed.

    Facts that were lost come first, then those that are wrong.
    """
    most = max(1, min(_MOST_FACTS, _ALL_FACTS // max(1, len(view.slices))))
    worst = {case.nodeid: _chosen(case, most) for case in view.slices}
    if responses is None or not responses.is_file():
        return worst
    wanted = {(case, of.row.fact_id) for case in worst for of in worst[case]}
    exchanges = _exchanges(responses, wanted)
    columns = {case.nodeid: case.table.columns for case in view.slices}
    return {
        case: [
            replace(
                of,
                asked=tuple(
                    _asked(exchanges.get((case, of.row.fact_id), []), columns[case], of)
                )[:_MOST_PLACES],
            )
            for of in facts
        ]
        for case, facts in worst.items()
    }


def _chosen(case: CaseResult, most: int) -> list[WorstFact]:
    """Return a case's worst facts, with what changed of those that were lost."""
    columns, rows = case.table.columns, {row.fact_id: row for row in case.table.rows}
    lost = examples((of for of in case.lost if of.fact_id in rows), most)
    by = next((name for name in ("term", "answer_prob") if name in columns), "")
    at = columns.index(by) if by else -1
    # The term of MONITOR is large for a fact whose probability depends on frame and context.
    others = [row for row in rows.values() if by == "term" or row.label == "wrong"]
    others.sort(key=lambda row: (-row.values[at] if by else 0.0, row.fact_id))
    facts = [WorstFact(rows[change.fact_id], change) for change in lost]
    known = {change.fact_id for change in case.lost}
    facts += [WorstFact(row, None) for row in others if row.fact_id not in known]
    return facts[:most]


def _exchanges(
    path: Path, wanted: set[tuple[str, str]]
) -> dict[tuple[str, str], list[Exchange]]:
    """Return what the model under test was asked about facts, by case and fact.

    Only their lines are read as JSON: a run may have hundreds of thousands.
    """
    # As to_line begins a line.
    starts = {
        json.dumps({"case": case, "fact": fact})[:-1].encode("ascii")
        for case, fact in wanted
    }
    by_fact: dict[tuple[str, str], list[Exchange]] = {}
    with path.open("rb") as stream:
        for _, line in numbered(stream, path):
            if line[: line.find(_ROLE_KEY)] not in starts:
                continue
            try:
                exchange = from_line(line)
            except ValueError:
                continue
            if not exchange.ask.to:
                place = exchange.case, exchange.ask.fact_id
                by_fact.setdefault(place, []).append(exchange)
    return by_fact


def _asked(
    exchanges: Sequence[Exchange], columns: Sequence[str], fact: WorstFact
) -> Iterator[Asked]:
    """Yield what was asked in each place, the score and the answer of one place as one."""
    row = fact.row
    values = dict(zip(columns, row.values, strict=False))
    places: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        place = exchange.ask.role.removesuffix("/score")
        # A wording's role is wording2/answer.
        if ":" in place:
            place = place.removesuffix("/answer")
        places.setdefault(place, []).append(exchange)
    for place, of_place in places.items():
        prompt, right = of_place[0].ask.request.prompt, values.get(f"cell:{place}")
        if right is None:
            # Instructions and examples before the question are the same for all facts.
            prompt = prompt[max(0, prompt.rfind(row.question)) :]
        if place == "answer":
            right = float(row.label == "correct")
        answer, probability = "", None
        for response in (exchange.response for exchange in of_place):
            if isinstance(response, Failed):
                answer, right = answer or f"failed: {response.error}", None
            elif isinstance(response, Generated):
                answer = response.text
                probability = probability or response.probability
            elif isinstance(response, Scored) and response.probabilities:
                known = response.probabilities
                probability = sum(known) / len(known)
        yield Asked(
            part=part_words(place),
            prompt=end_of(prompt, _LONGEST),
            answer=answer,
            probability=probability,
            right=None if right is None else bool(right),
        )


def part_words(place: str) -> str:
    """Return in words where a question stands: ``frame 2``, ``after wrong context 1``, ``options 3``."""
    kind, _, at = place.partition(":")
    number = int(at) + 1 if at.isdecimal() else 1
    framed = f", frame {number}" if number > 1 else ""
    if kind.startswith("negative"):
        return f"after wrong context {kind.removeprefix('negative')}{framed}"
    words = {
        "positive": f"after the right answer{framed}",
        "none": f"frame {number}",
        "choice": f"options {number}",
    }
    return words.get(kind, place)
