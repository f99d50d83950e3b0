"""The worst facts of each case, with every question that was asked about them, read from the responses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pytest_kbrel.records import (
    CaseResult,
    Change,
    Exchange,
    Failed,
    Generated,
    Outcome,
    Response,
    Run,
    Scored,
)
from pytest_kbrel.reports import view
from pytest_kbrel.reports.changes import examples
from pytest_kbrel.reports.formatting import end_of
from pytest_kbrel.store.lines import from_line, numbered

# So many facts of a case are looked up; fewer where the run has many cases.
_MOST_FACTS, _ALL_FACTS = 6, 1500
_LONGEST = 200
_MOST_PARTS = 40
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
    asked: tuple[Asked, ...]


def worst_facts(run: Run, responses: Path | None) -> dict[str, list[WorstFact]]:
    """Return the worst facts of each case by node id; without ``responses`` no questions are listed.

    Facts that were lost come first, then those that are wrong. Only the lines of these facts are read as
    JSON: a run may have hundreds of thousands.
    """
    cases = view.slices(run)
    most = max(1, min(_MOST_FACTS, _ALL_FACTS // max(1, len(cases))))
    chosen = {case.nodeid: _chosen(case, most) for case in cases}
    exchanges: dict[tuple[str, str], list[Exchange]] = {}
    if responses is not None and responses.is_file():
        exchanges = _exchanges(responses, chosen)
    worst: dict[str, list[WorstFact]] = {case.nodeid: [] for case in cases}
    for case in cases:
        for row, change in chosen[case.nodeid]:
            values = dict(zip(case.table.columns, row.values, strict=False))
            asked = _asked(exchanges.get((case.nodeid, row.fact_id), ()), values, row)
            fact = WorstFact(row, change, tuple(islice(asked, _MOST_PARTS)))
            worst[case.nodeid].append(fact)
    return worst


def _chosen(case: CaseResult, most: int) -> list[tuple[Outcome, Change | None]]:
    """Return the outcomes of a case's worst facts, with what changed of those that were lost."""
    rows = {row.fact_id: row for row in case.table.rows}
    lost = {change.fact_id: change for change in case.lost if change.fact_id in rows}
    first = examples(tuple(lost.values()), most)
    columns = case.table.columns
    by = next((name for name in ("term", "answer_prob") if name in columns), "")
    at = columns.index(by) if by else -1
    # The term of MONITOR is large for a fact whose probability depends on frame and context.
    others = [
        row
        for row in case.table.rows
        if row.fact_id not in lost and (by == "term" or row.label == "wrong")
    ]
    others.sort(key=lambda row: (-row.values[at] if by else 0.0, row.fact_id))
    chosen = [(rows[change.fact_id], change) for change in first]
    return [*chosen, *((row, None) for row in others[: most - len(chosen)])]


def _exchanges(
    path: Path, chosen: Mapping[str, list[tuple[Outcome, Change | None]]]
) -> dict[tuple[str, str], list[Exchange]]:
    """Return what the model under test was asked about the chosen facts, by case and fact."""
    wanted = {
        # As to_line begins a line.
        json.dumps({"case": case, "fact": row.fact_id})[:-1].encode("ascii")
        for case, rows in chosen.items()
        for row, _ in rows
    }
    by_fact: dict[tuple[str, str], list[Exchange]] = {}
    with path.open("rb") as stream:
        for _, line in numbered(stream, path):
            if line[: line.find(_ROLE_KEY)] not in wanted:
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
    exchanges: Iterable[Exchange], values: Mapping[str, float], row: Outcome
) -> Iterator[Asked]:
    """Yield what was asked in each place, the score and the answer of one place as one."""
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
        responses = [exchange.response for exchange in of_place]
        answers = [one.text for one in responses if isinstance(one, Generated)]
        errors = [one.error for one in responses if isinstance(one, Failed)]
        told = [*answers, *(f"failed: {error}" for error in errors), ""]
        yield Asked(
            part=part_words(place),
            prompt=end_of(prompt, _LONGEST),
            answer=told[0],
            probability=_probability(responses),
            right=None if right is None or errors else bool(right),
        )


def _probability(responses: Sequence[Response]) -> float | None:
    """Return the mean probability of the right answer's tokens, or that of the model's own answer."""
    for response in responses:
        if isinstance(response, Scored) and response.probabilities:
            return sum(response.probabilities) / len(response.probabilities)
    own = (one.probability for one in responses if isinstance(one, Generated))
    return next(own, None)


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
