"""The fact that moved a figure of MONITOR's probabilities, with the frame or context in which it is seen."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_kbrel.records import CaseResult, GateResult, MovedFact, Run
from pytest_kbrel.reports.formatting import (
    answer_text,
    end_of,
    metric_title,
    number,
    one_line,
)
from pytest_kbrel.reports.view import metric

_LONGEST_ANSWER, _LONGEST_PROMPT = 60, 160


def moved_fact(
    case: CaseResult, gate: GateResult, run: Run | None = None
) -> MovedFact | None:
    """Return the fact that moved what a gate is about; ``None`` where that is no figure of probabilities.

    Of a figure over several cases of ``run`` it is one of the case whose figure got worse most.
    """
    of: Iterable[CaseResult] = [case]
    if case.aggregate and run is not None:
        members = {(case.suite, member) for member in case.members}
        of = [one for one in run.cases if (one.suite, one.id) in members]
    facts = [
        (_harm(one, gate.metric), moved)
        for one in of
        for moved in one.moved
        if moved.metric == gate.metric
    ]
    return max(facts, key=lambda pair: pair[0], default=(0.0, None))[1]


def _harm(case: CaseResult, name: str) -> float:
    """Return by how much the figure of a case got worse; without a baseline how bad it is."""
    value = metric(case, name)
    if value is None:
        return 0.0
    change = value.value if value.delta is None else value.delta
    return (change or 0.0) * (-1 if value.better == "higher" else 1)


def moved_text(moved: MovedFact) -> str:
    """Return where the probability of a right answer moved, and what the model said there.

    ``after a wrong context: Peru. Where is Oslo? Peru (right: Norway); probability of Norway 0.031, 0.982
    after the right answer; its IRD 0.012 to 0.633``
    """
    context, _, frame = moved.place.cell.partition(":")
    where = {"none": f"in frame {int(frame) + 1}", "positive": "after the right answer"}
    expected = one_line(moved.expected.strip(), _LONGEST_ANSWER)
    answer = answer_text(moved.place.answer, _LONGEST_ANSWER)
    right = "" if expected.casefold() in answer.casefold() else f" (right: {expected})"
    old = "" if moved.before is None else f"{number(moved.before)} to "
    seen = f"probability of {expected} {old}{number(moved.now)}"
    if moved.column != "anchor":
        anchor = f"{number(moved.anchor)} after the right answer"
        of_fact = f"its {metric_title(moved.column)} {old}{number(moved.now)}"
        seen = f"probability of {expected} {number(moved.place.probability)}, {anchor}; {of_fact}"
    prompt = end_of(moved.place.prompt, _LONGEST_PROMPT)
    return f"{where.get(context, 'after a wrong context')}: {prompt} {answer}{right}; {seen}"
