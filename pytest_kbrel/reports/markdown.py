"""``summary.md``: the run on one screen, for a CI job's page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.printing import printable
from pytest_kbrel.records import CaseResult, Change, MetricValue, Run
from pytest_kbrel.reports import phrases, reasons, view
from pytest_kbrel.reports.bounded import Part, bounded_text, total_size
from pytest_kbrel.reports.changes import (
    changes_headline,
    examples,
    fact_cells,
    fact_columns,
)
from pytest_kbrel.reports.formatting import (
    count,
    one_line,
    signed,
    with_interval,
)

SHOWN_FACTS = 10
_LONGEST, _LONGEST_NOTE = 160, 600
# GitHub takes comments of up to 65,536 characters, and this text is posted as one.
LARGEST = 64_000
_WHERE = " in report.json"

# What makes text of a kind of Markdown: it may be told how long the text may be.
Escape = Callable[..., str]
_ACTIVE = re.compile(r"[\\`*_\[\]|~$]|(?<=:)//|(?<=www)\.|^(?:[#>+-]|\d+[.)])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})


def markdown_text(text: str, limit: int = _LONGEST) -> str:
    """Return ``text`` so that Markdown shows it as it is: no markup, HTML, link or table cell in it."""
    escaped = _ACTIVE.sub(
        lambda match: "".join(
            f"\\{char}" if not char.isdigit() else char for char in match[0]
        ),
        printable(one_line(text, limit)),
    )
    return escaped.translate(_ENTITIES)


def summary_markdown(run: Run) -> str:
    """Return the summary of ``run``: verdict, problems, reasons, lost and gained facts, tables, notes.

    It has at most :data:`LARGEST` characters. Where that is not enough, the changed facts of some cases are
    left out first, then rows of tables and lists, which are counted.
    """
    head = [f"## Knowledge gates: {view.verdict(run)}", *headlines(run, markdown_text)]
    heading = "| verdict | case | n | metrics |\n|---|---|--:|---|"
    told = why(reasons.deciding(run), run, markdown_text)
    pairs = (
        f"{one.x} and {one.y}: {phrases.correlation_text(one, other)}"
        for one, other in view.correlation_pairs(run)
    )
    listed = [f"- {markdown_text(pair)}" for pair in pairs]
    whole, brief = [*_case_blocks(run, SHOWN_FACTS)], [*_case_blocks(run, 0)]
    first = [
        Part(0, "\n\n".join(head) + "\n", end=""),
        _part(1, "### Problems\n", problems(run, markdown_text), "problem", 0.1),
        _part(1, "### Why\n", told, "reason", 0.1),
    ]
    last = [
        _part(3, heading, _table(run), "case", 0.3),
        _part(4, "### Correlations over slices\n", listed, "pair", 0.05),
        _part(4, "### About this run\n", _notes(run), "note", 0.1),
    ]
    detailed = len(whole)
    while True:
        rows = [*whole[:detailed], *brief[detailed:]]
        blocks = Part(2, rows=rows, noun="case", where=_WHERE, share=0.4)
        parts = [
            part for part in (*first, blocks, *last) if part.rows or part.rank == 0
        ]
        if not detailed or total_size(parts) <= LARGEST:
            return bounded_text(parts, LARGEST)
        # Of so many cases, the worst, the changed facts are shown.
        detailed //= 2


def _part(rank: int, head: str, rows: Iterable[str], noun: str, share: float) -> Part:
    return Part(rank, head, [*rows], "", noun, _WHERE, share)


def headlines(run: Run, text: Escape) -> Iterator[str]:
    """Yield what stands first of a run: the models, the facts lost and gained, what was not ruled out."""
    against = (
        f" against baseline **{text(run.baseline)}**{view.baseline_note(run)}"
        if run.baseline
        else " without a baseline"
    )
    helpers = "".join(f", {role} {text(who)}" for role, who in view.helper_models(run))
    model = text(view.model_name(run) or "no model")
    yield f"**{model}**{against}{helpers}: {view.headline(run)}."
    if sentence := changes_headline(run):
        yield f"**{text(sentence, _LONGEST_NOTE)}.**"
    if sentence := view.not_excluded(run):
        yield f"{text(sentence, _LONGEST_NOTE)}."


def problems(run: Run, text: Escape) -> Iterator[str]:
    """Yield why a run is partial or unsound, a line each."""
    notes = phrases.partial_note(run), phrases.not_run_note(run)
    for note in (*filter(None, notes), *sorted(run.problems)):
        yield f"- {text(note, _LONGEST_NOTE)}"


def why(cases: Iterable[CaseResult], run: Run, text: Escape) -> Iterator[str]:
    """Yield why each case did not pass: the gate that carries it, and waivers that expired."""
    names = view.names(run)
    for case in cases:
        told = dict.fromkeys([reasons.told(case), *phrases.expired_waivers(case)])
        shown = "<br>".join(text(reason, _LONGEST_NOTE) for reason in told)
        word, name = phrases.verdict_words(case, run), text(names[case.nodeid])
        yield f"- **{word}** {name}: {shown}"


def _in_order(run: Run) -> list[CaseResult]:
    """Return the cases as their reasons are told, then the others, those that were not run last."""
    told = reasons.deciding(run)
    others = [
        case for case in (*view.aggregates(run), *view.slices(run)) if case not in told
    ]
    others.sort(
        key=lambda case: (case.verdict == "not run", SEVERITY.index(case.verdict))
    )
    return [*told, *others]


def _notes(run: Run) -> Iterator[str]:
    notes = list(phrases.run_notes(run))
    # Without a baseline nobody expects gates to be judged.
    if run.baseline and (gates := view.unjudged_count(run)):
        notes.append(
            f"nothing published to compare with: {count(gates, 'gate')} not judged"
        )
    yield from (f"- {markdown_text(note, _LONGEST_NOTE)}" for note in notes)


def _table(run: Run) -> Iterator[str]:
    names = view.names(run)
    for case in _in_order(run):
        words = phrases.verdict_words(case, run)
        word = words if case.verdict == "pass" else f"**{words}**"
        figures = "<br>".join(_figure(case, one) for one in view.key_figures(case))
        name = markdown_text(names[case.nodeid])
        yield f"| {word} | {name} | {case.n} | {figures} |"


def _figure(case: CaseResult, value: MetricValue) -> str:
    figure = f"{value.name} {with_interval(value.value, value.low, value.high)}"
    if value.delta is not None:
        figure += f" ({signed(value.delta)})"
    if controls := phrases.controls(case, value.name):
        figure += f" (controls: {controls})"
    return markdown_text(figure)


def _case_blocks(run: Run, facts: int) -> Iterator[str]:
    names = view.names(run)
    # Where no blessed run was asked for, a case without one needs no eyes.
    silent = {"not run"} if view.is_blessed(run) else {"not run", "no baseline"}
    for case in _in_order(run):
        # All that were not run have one and the same reason: it stands among the problems.
        lines = list(_case(case, run, facts)) if case.verdict not in silent else []
        if lines:
            word = phrases.verdict_words(case, run)
            yield "\n".join(
                [f"### {markdown_text(names[case.nodeid])}: {word}", "", *lines]
            )


def _case(case: CaseResult, run: Run, facts: int) -> Iterator[str]:
    lines = []
    for gate in case.gates:
        if gate.verdict != "pass":
            name, reason = phrases.gate_name(gate), gate.reason
            if corrected := phrases.corrected(gate):
                reason += f" ({corrected})"
            lines.append(
                f"- {markdown_text(name)}: **{gate.verdict}**: {markdown_text(reason, _LONGEST_NOTE)}"
            )
    notes = [*phrases.case_notes(case, SHOWN_FACTS), phrases.waiver(case, run)]
    lines += [f"- {markdown_text(note, _LONGEST_NOTE)}" for note in notes if note]
    if lines:
        yield from (*lines, "")
    yield from _changes(case.lost, "lost", facts)
    yield from _changes(case.gained, "gained", facts)


def _changes(changes: tuple[Change, ...], what: str, facts: int) -> Iterator[str]:
    """Yield a table of the first changed facts, folded; with no ``facts`` only how many there are."""
    if not changes:
        return
    shown = examples(changes, facts)
    title = f"{count(len(changes), 'fact')} {what}"
    if not shown:
        yield from (f"{title}.", "")
        return
    first = f" (the first {len(shown)})" if len(changes) > len(shown) else ""
    head, rows = fact_table(shown, markdown_text)
    yield f"<details><summary>{title}{first}</summary>\n{head}"
    yield from (*rows, "", "</details>", "")


def fact_table(changes: Sequence[Change], text: Escape) -> tuple[str, list[str]]:
    """Return the head of a table of facts and its rows."""
    columns = fact_columns(changes)
    cells = [[fact_cells(change)[name] for name in columns] for change in changes]
    rows = [f"| {' | '.join(map(text, row))} |" for row in cells]
    return f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", rows
