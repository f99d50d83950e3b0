"""The cases of a run that need eyes: why each did not pass, and an example of what the model answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.records import (
    NOT_KNOWN,
    CaseResult,
    Change,
    GateResult,
    Judgement,
    MovedFact,
    Run,
)
from pytest_kbrel.reports import phrases, reasons, view
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
from pytest_kbrel.reports.terminal.lines import Line, row, wrapped

# So many entries stand on the first screen.
_MOST_ENTRIES = 8
# So many cases of an entry are named.
_MOST_NAMES = 3
# From how many cases on one reason is told once; the figures of failed and open cases differ.
_ALIKE, _ALIKE_WITH_FIGURES = 2, 4
_LONGEST_QUESTION, _LONGEST_PROMPT, _LONGEST_ANSWER = 120, 160, 60
_FIGURES = re.compile(r"\d[\d.,]*")


def case_lines(run: Run, width: int, *, brief: bool) -> Iterator[Line]:
    """Yield the cases that need eyes, the worst first; ``brief`` leaves out the examples."""
    entries = list(_entries(run))
    words = [VERDICTS[cases[0].verdict].shown.upper() for _, cases in entries]
    column = max(map(len, words), default=0) + 2
    names, told = view.names(run), False
    for word, (reason, cases) in zip(words[:_MOST_ENTRIES], entries, strict=False):
        title = one_line(names[cases[0].nodeid], 200)
        if cases[1:]:
            shown = [one_line(names[case.nodeid], 80) for case in cases[:_MOST_NAMES]]
            more = len(cases) - len(shown)
            title = f"{len(cases)} cases: {', '.join(shown)}"
            title += f" and {more} more" if more else ""
        head = f"{title}: {reason}" if brief else title
        yield from row(word, head, width, column, VERDICTS[cases[0].verdict].markup)
        if brief:
            continue
        yield from wrapped(reason, width)
        # What a figure over several cases lost is what they lost.
        if not (told and cases[0].aggregate) and (text := example(cases[0], run)):
            yield from wrapped(text, width)
            told = True
    if rest := sum(len(cases) for _, cases in entries[_MOST_ENTRIES:]):
        text = f"and {count(rest, 'more case')} that did not pass"
        yield from wrapped(text, width, "")
    if stopped := phrases.not_run_note(run):
        yield from row("NOT RUN", stopped, width, max(column, len("NOT RUN") + 2))


def _entries(run: Run) -> Iterator[tuple[str, list[CaseResult]]]:
    """Yield why cases did not pass that are not waived, with those of one verdict and cause."""
    unmeasured = {
        (case.suite, case.id)
        for case in run.cases
        if case.verdict in ("invalid", "not run")
    }
    causes: dict[tuple[Judgement, str], list[tuple[str, CaseResult]]] = {}
    for case in reasons.deciding(run):
        if phrases.is_waived(case, run):
            continue
        # What would be allowed stands in the failure message.
        reason = reasons.told(case).partition("; allowed: ")[0]
        if case.aggregate and any(
            (case.suite, member) in unmeasured for member in case.members
        ):
            reason = "cases that it is made from were not measured"
        causes.setdefault((case.verdict, _FIGURES.sub("#", reason)), []).append(
            (reason, case)
        )
    for (verdict, _), alike in causes.items():
        of_figures = verdict in ("fail", "inconclusive")
        if len(alike) < (_ALIKE_WITH_FIGURES if of_figures else _ALIKE):
            yield from ((reason, [case]) for reason, case in alike)
            continue
        reason = alike[0][0]
        if any(other != reason for other, _ in alike):
            reason += " (figures of the first)"
        yield reason, [case for _, case in alike]


def example(case: CaseResult, run: Run) -> str:
    """Return an answer that speaks for the case: of its largest group of lost facts, else a wrong one.

    Where the gate that is told is about probabilities, it is the fact that moved these.
    """
    gate = reasons.told_gate(case)
    if gate is not None and (moved := moved_fact(case, gate, run)) is not None:
        return f"such as, {moved_text(moved)}"
    if case.lost:
        (change,) = examples(case.lost, 1)
        gained = f", {len(case.gained)} gained" if case.gained else ""
        return f"{count(len(case.lost), 'fact')} lost{gained}, such as: {change_text(change)}"
    # What answers that decide nothing look like is told by any of them.
    labels = {"fail": ("wrong",), "invalid": ("wrong", "uninformative", "correct")}.get(
        case.verdict, ()
    )
    rows = (row for label in labels for row in case.table.rows if row.label == label)
    shown = next(rows, None)
    if shown is None:
        return ""
    answer = answer_text(shown.answer, _LONGEST_ANSWER)
    expected = _right(expected_text(shown.expected, _LONGEST_ANSWER))
    return f"such as: {one_line(shown.question, _LONGEST_QUESTION)} {answer} {expected}"


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
    value = view.metric(case, name)
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


def change_text(change: Change) -> str:
    """Return how the answer to a question changed: ``Where is Oslo? Norway → Peru``."""
    old, new = (
        answer_text(answer, _LONGEST_ANSWER)
        for answer in (change.old_answer, change.new_answer)
    )
    expected = expected_text(change.expected, _LONGEST_ANSWER)
    right = (
        ""
        if change.expected and expected.casefold() in old.casefold()
        else f" {_right(expected)}"
    )
    return (
        f"{one_line(change.question, _LONGEST_QUESTION)} {old} → {new}{right}".rstrip()
    )


def _right(expected: str) -> str:
    if expected == NOT_KNOWN:
        return ""
    return expected if expected.startswith("(") else f"(right: {expected})"


def waiver_lines(run: Run, width: int) -> Iterator[Line]:
    """Yield the cases with a waiver, and what became of it."""
    names = view.names(run)
    for case in view.ordered(run):
        if case.waiver is not None:
            told = f"{case.verdict}, {phrases.waiver(case, run)}"
            text = f"{one_line(names[case.nodeid])}: {told}"
            yield from row("WAIVER", text, width, len("WAIVER") + 2)
