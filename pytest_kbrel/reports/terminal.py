"""The terminal: the first screen of a run, its full tables, and the failure message of a case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.printing import cells, fit, format_table, pad, printable, wrap
from pytest_kbrel.records import (
    NOT_KNOWN,
    CaseResult,
    GateResult,
    Judgement,
    MovedFact,
    Run,
)
from pytest_kbrel.reports import phrases, reasons
from pytest_kbrel.reports.changes import examples
from pytest_kbrel.reports.formatting import (
    answer_text,
    case_title,
    count,
    end_of,
    expected_text,
    metric,
    metric_title,
    number,
    one_line,
    signed,
)
from pytest_kbrel.reports.rendering import filled
from pytest_kbrel.reports.view import Group, View, better

# pytest prints a message as it is, however wide the terminal is.
_WIDTH = 80


def terminal_lines(
    run: Run,
    *,
    width: int,
    written_to: str = "",
    verbosity: int = 0,
    steps: Sequence[tuple[str, str]] = (),
    is_first: bool = False,
) -> list[Line]:
    """Return (text, markup) pairs for ``terminalreporter.write_line(text, **markup)``.

    They are the first screen: the verdict, the models, facts lost and gained, and the cases that did not
    pass. From a ``verbosity`` of 1 on, the full tables stand before it; below 0 each case is one line.
    ``steps`` are what can be done next: (what, command). ``is_first``: this run is a first baseline.

    No line is wider than ``width``, nor than 100 columns, but commands and the path of the reports, which
    stay whole. Every verdict is also a word.
    """
    width, view = max(20, min(width, WIDEST)), View(run)
    words: dict[str, str] = {name: kind.shown for name, kind in VERDICTS.items()}
    if is_first:
        words["no baseline"] = "not compared yet"
    data = {
        "view": view,
        "width": width,
        "verbosity": verbosity,
        "is_first": is_first,
        "words": words,
        "entries": entries(view),
        "example": example,
        "table_lines": table_lines,
    }
    lines = laid_out("screen.txt.j2", width, data)
    rest = [""] if steps and verbosity >= 0 else []
    if rest:
        wide = max(len(what) for what, _ in steps)
        rest += [f"{what:<{wide}}  {how}" for what, how in steps]
    if written_to:
        rest.append(f"reports written to {one_line(written_to)}")
    return [*lines, *((printable(text), {}) for text in rest)]


def failure_text(result: CaseResult, *, baseline_name: str) -> str:
    """Return the message of a failing item: each gate that did not pass, and the first lost facts.

    No line takes more than 80 columns.
    """
    data = {
        "case": result,
        "title": case_title(result),
        "baseline": one_line(baseline_name) or "the baseline",
        "missed": [gate for gate in result.gates if gate.verdict != "pass"],
        "rules": GATE_RULES,
        "moved_fact": moved_fact,
        "moved_text": moved_text,
    }
    lines = laid_out("failure.txt.j2", _WIDTH, data)
    return "\n".join(text for text, _ in lines)


# How numbers are written, with digits and a zero before them, and how wide labels are: the widest first.
_FORMS = (("0.3", 40), (".3", 40), (".2", 40), (".2", 12))


def table_lines(
    group: Group, verdicts: Sequence[str], width: int
) -> list[tuple[str, CaseResult | None]]:
    """Return the lines of a table, the heading first, each with the case it is about.

    ``verdicts`` are the words of the last column, one a case. Where the table is too wide, numbers have two
    digits, then labels are cut, then metrics left out, the last ones first.
    """
    width, names = min(width, WIDEST), group.metrics
    # MONITOR's figures stand only with those beside it.
    first = BESIDE["monitor"] if "monitor" in names else ()
    order = sorted(names, key=lambda name: name not in first)
    layouts = [(form, label, order) for form, label in _FORMS]
    layouts += [(".2", 18, order[:most]) for most in range(len(order))[::-1]]
    layouts.append((".2", 12, []))
    rows: list[str] = []
    for form, label, shown in layouts:
        columns = [
            [group.row, *(fit(one_line(of, 200), label) for of in group.labels)],
            ["n", *(str(case.n) for case in group.cases)],
            *(_metric_column(name, group, form) for name in names if name in shown),
            ["verdict", *verdicts],
        ]
        # A paper does not say how many there were.
        if not any(case.n for case in group.cases):
            del columns[1]
        left = (0, len(columns) - 1)
        rows = format_table(list(zip(*columns, strict=True)), left=left)
        # The verdicts may reach further than their heading.
        if max(map(cells, rows)) <= width:
            break
    lines = [fit(row, width) for row in rows]
    return list(zip(lines, (None, *group.cases), strict=True))


def _metric_column(name: str, group: Group, form: str) -> list[str]:
    zero, digits = form == "0.3", int(form[-1])
    column = [metric(case, name) for case in group.cases]
    values = [number(of.value if of else None, digits, zero=zero) for of in column]
    moved = [signed(of.delta if of else None, digits, zero=zero) for of in column]
    if wide := max(map(cells, moved)):
        values = [
            f"{value} {pad(delta, wide, right=True)}"
            for value, delta in zip(values, moved, strict=True)
        ]
    arrow = "↓" if better(group.cases, name) == "lower" else "↑"
    return [one_line(name, 40) + (arrow if zero else ""), *values]


Line = tuple[str, dict[str, bool]]
# The widest line, in columns: longer ones are hard to read.
WIDEST = 100
MARKUP: dict[str, dict[str, bool]] = {
    name: verdict.markup for name, verdict in VERDICTS.items()
}


def laid_out(template: str, width: int, data: dict[str, Any]) -> list[Line]:
    """Return the lines of a template of text, broken at ``width`` columns.

    Its lines are ``markup|label|text``. Markup is names of pytest's or a verdict, for the first line of the
    text. All lines of the text begin behind the label; without one (blanks) those after the first are
    indented further. A label without text has no line, and an empty line of the template is one of ours.
    """
    lines: list[Line] = []
    text = filled(template, data)
    for described in re.sub("\n{3,}", "\n\n", text).strip("\n").split("\n"):
        if not described.strip():
            lines.append(("", {}))
            continue
        markup, label, text = described.split("|", 2)
        if label.strip():
            # wrap() indents further lines by two more.
            broken = wrap(text, width - len(label) + 2, "  ")
            broken = [" " * len(label) + line.strip() for line in broken]
            broken[:1] = [label + line[len(label) :] for line in broken[:1]]
        else:
            broken = wrap(text, width, label)
        names = dict[str, bool]()
        for word in filter(None, markup.split(",")):
            names |= MARKUP.get(word, {word: True})
        for at, line in enumerate(broken):
            is_plain = at and label.strip()
            lines.append((fit(printable(line), width), {} if is_plain else names))
    return lines


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
        outdated = f"; outdated: {change.outdated}" if change.outdated else ""
        return (
            f"{count(len(case.lost), 'fact')} lost{gained}, such as: {said}{outdated}"
        )
    # What answers that decide nothing look like is told by any of them.
    labels = {
        "fail": ("wrong", "outdated"),
        "invalid": ("wrong", "uninformative", "correct"),
    }
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
    prompt = end_of(moved.prompt, _LONGEST_PROMPT)
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
