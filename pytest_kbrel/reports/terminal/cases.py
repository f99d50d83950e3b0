"""The cases of a run that need eyes: why each did not pass, and an example of what the model answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.records import (
    NOT_KNOWN,
    CaseResult,
    GateResult,
    Judgement,
    MovedFact,
)
from pytest_kbrel.reports import phrases, reasons
from pytest_kbrel.reports.changes import examples
from pytest_kbrel.reports.formatting import (
    answer_text,
    count,
    end_of,
    expected_text,
    metric_title,
    number,
    one_line,
)
from pytest_kbrel.reports.view import View

# From how many cases on one reason is told once; the figures of failed and open cases differ.
_ALIKE = {"fail": 4, "inconclusive": 4}
_LONGEST_PROMPT, _LONGEST_ANSWER = 160, 60
_FIGURES = re.compile(r"\d[\d.,]*")


class Entry(NamedTuple):
    """Cases of one verdict that did not pass for one reason."""

    verdict: Judgement
    reason: str
    cases: tuple[CaseResult, ...]

    @property
    def word(self) -> str:
        """The verdict in pytest's words."""
        return VERDICTS[self.verdict].shown.upper()


def entries(view: View) -> list[Entry]:
    """Return why cases did not pass that are not waived, with those of one verdict and cause."""
    causes: dict[tuple[Judgement, str], list[tuple[str, CaseResult]]] = {}
    for case in view.deciding:
        if phrases.is_waived(case, view.run):
            continue
        reason = reasons.told(case)
        cause = case.verdict, _FIGURES.sub("#", reason)
        causes.setdefault(cause, []).append((reason, case))
    told: list[Entry] = []
    for (verdict, _), alike in causes.items():
        if len(alike) < _ALIKE.get(verdict, 2):
            told += [Entry(verdict, reason, (case,)) for reason, case in alike]
            continue
        differ = len({reason for reason, _ in alike}) > 1
        note = " (figures of the first)" if differ else ""
        cases = tuple(case for _, case in alike)
        told.append(Entry(verdict, alike[0][0] + note, cases))
    return told


def example(case: CaseResult, view: View) -> str:
    """Return an answer that speaks for the case: of its largest group of lost facts, else a wrong one.

    Where the gate that is told is about probabilities, it is the fact that moved these; of a figure over
    several cases one of theirs.
    """
    members = {(case.suite, member) for member in case.members}
    cases = [one for one in view.run.cases if (one.suite, one.id) in members]
    gate = reasons.told_gate(case)
    if gate is not None and (moved := moved_fact([case, *cases], gate)) is not None:
        return f"such as, {moved_text(moved)}"
    for change in examples(case.lost, 1):
        gained = f", {len(case.gained)} gained" if case.gained else ""
        said = _said(
            change.question, change.expected, change.old_answer, change.new_answer
        )
        return f"{count(len(case.lost), 'fact')} lost{gained}, such as: {said}"
    # What answers that decide nothing look like is told by any of them.
    labels = {"fail": ("wrong",), "invalid": ("wrong", "uninformative", "correct")}
    for label in labels.get(case.verdict, ()):
        for row in case.table.rows:
            if row.label == label:
                return f"such as: {_said(row.question, row.expected, row.answer)}"
    return ""


def moved_fact(cases: Iterable[CaseResult], gate: GateResult) -> MovedFact | None:
    """Return the fact that moved most what a gate is about; ``None`` of other figures than probabilities."""
    facts = (of for case in cases for of in case.moved if of.metric == gate.metric)
    return max(facts, key=lambda of: abs(of.now - (of.before or 0.0)), default=None)


def moved_text(moved: MovedFact) -> str:
    """Return where the probability of a right answer moved, and what the model said there.

    ``after a wrong context: Peru. Where is Oslo? Peru (right: Norway); probability of Norway 0.031, 0.982
    after the right answer; its IRD 0.012 to 0.633``
    """
    context, _, frame = moved.place.cell.partition(":")
    where = {"none": f"in frame {int(frame) + 1}", "positive": "after the right answer"}
    prompt = end_of(moved.place.prompt, _LONGEST_PROMPT)
    right = one_line(moved.expected.strip(), _LONGEST_ANSWER)
    old = "" if moved.before is None else f"{number(moved.before)} to "
    return (
        f"{where.get(context, 'after a wrong context')}: "
        f"{_said(prompt, moved.expected, moved.place.answer)}; "
        f"probability of {right} {number(moved.place.probability)}, "
        f"{number(moved.anchor)} after the right answer; "
        f"its {metric_title(moved.column)} {old}{number(moved.now)}"
    )


def _said(question: str, expected: str, *answers: str) -> str:
    """Return what was said: ``Where is Oslo? Norway → Peru``, with the right answer where that is none."""
    told = [answer_text(answer, _LONGEST_ANSWER) for answer in answers]
    right = expected_text(expected, _LONGEST_ANSWER)
    if expected == NOT_KNOWN or right.casefold() in told[0].casefold():
        right = ""
    elif not right.startswith("("):
        right = f"(right: {right})"
    asked = one_line(question, _LONGEST_PROMPT)
    return f"{asked} {' → '.join(told)} {right}".rstrip()
