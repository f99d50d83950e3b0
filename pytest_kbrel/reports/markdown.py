"""``summary.md``: the run on one screen, for a CI job's page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.printing import printable
from pytest_kbrel.records import CaseResult, Change, MetricValue, Run
from pytest_kbrel.reports import phrases, reasons, view
from pytest_kbrel.reports.bounded import Part, bounded_text, total_size
from pytest_kbrel.reports.changes import changes_headline, examples, origin, probability
from pytest_kbrel.reports.formatting import (
    answer_text,
    bound,
    count,
    expected_text,
    interval,
    number,
    one_line,
    p_value,
    signed,
)

SHOWN_FACTS = 10
_LONGEST = 160
# GitHub takes comments of up to 65,536 characters, and this text is posted as one.
LARGEST = 64_000
_WHERE = " in report.json"

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
    whole, brief = [*_case_blocks(run, SHOWN_FACTS)], [*_case_blocks(run, 0)]
    head, problems, why, *rest = _parts(run)
    detailed = len(whole)
    while True:
        blocks = Part(
            2,
            rows=[*whole[:detailed], *brief[detailed:]],
            noun="case",
            where=_WHERE,
            share=0.4,
        )
        parts = [
            part
            for part in (head, problems, why, blocks, *rest)
            if part.rows or part is head
        ]
        if not detailed or total_size(parts) <= LARGEST:
            return bounded_text(parts, LARGEST)
        # Of so many cases, the worst, the changed facts are shown.
        detailed //= 2


def _parts(run: Run) -> Iterator[Part]:
    """Yield all parts but the blocks of the cases, which stand behind the first three."""
    heading = "| verdict | case | n | metrics |\n|---|---|--:|---|"
    parts = (
        Part(0, "\n".join(_headline(run))),
        Part(1, "### Problems\n", [*_problems(run)], noun="problem", share=0.1),
        Part(1, "### Why\n", [*_why(run)], noun="reason", share=0.1),
        Part(3, heading, [*_table(run)], noun="case", share=0.3),
        Part(
            4,
            "### Correlations over slices\n",
            [*_correlations(run)],
            noun="pair",
            share=0.05,
        ),
        Part(4, "### About this run\n", [*_notes(run)], noun="note", share=0.1),
    )
    yield from (replace(part, end="", where=_WHERE) for part in parts)


def _headline(run: Run) -> Iterator[str]:
    yield from (f"## Knowledge gates: {view.verdict(run)}", "")
    model = markdown_text(view.model_spec(run) or "no model")
    named = (
        f" against baseline **{markdown_text(run.baseline)}**{view.baseline_note(run)}"
    )
    against = named if run.baseline else ""
    against += "".join(
        f", {role} {markdown_text(who)}" for role, who in view.helper_models(run)
    )
    yield from (f"**{model}**{against}: {view.headline(run)}.", "")
    if sentence := changes_headline(run):
        yield from (f"**{markdown_text(sentence)}.**", "")
    if sentence := view.not_excluded(run):
        yield from (f"{markdown_text(sentence)}.", "")


def _why(run: Run) -> Iterator[str]:
    """Yield a sentence for each case that did not pass, those that carry the verdict first."""
    names = view.names(run)
    for case in reasons.deciding(run):
        word, name = phrases.verdict_words(case, run), markdown_text(names[case.nodeid])
        yield f"- **{word}** {name}: {markdown_text(reasons.case_reason(case), 600)}"


def _in_order(run: Run) -> list[CaseResult]:
    """Return the cases as their reasons are told, then the others, those that were not run last."""
    told = reasons.deciding(run)
    ids = {case.nodeid for case in told}
    others = [
        case
        for case in (*view.aggregates(run), *view.slices(run))
        if case.nodeid not in ids
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
    yield from (f"- {markdown_text(note, 600)}" for note in notes)


def _table(run: Run) -> Iterator[str]:
    names = view.names(run)
    for case in _in_order(run):
        words = phrases.verdict_words(case, run)
        word = words if case.verdict == "pass" else f"**{words}**"
        values = [view.metric(case, name) for name in view.key_metrics(case)]
        shown = (
            _figure(value) + _controls(case, value.name)
            for value in values
            if value is not None
        )
        figures = "<br>".join(shown)
        yield f"| {word} | {markdown_text(names[case.nodeid])} | {case.n} | {figures} |"


def _figure(value: MetricValue) -> str:
    delta = f"({signed(value.delta)})" if value.delta is not None else ""
    ends = markdown_text(interval(value.low, value.high))
    return " ".join(
        filter(None, (markdown_text(value.name), number(value.value), ends, delta))
    )


def _controls(case: CaseResult, name: str) -> str:
    kinds = [
        f"{markdown_text(kind)} {number(value.value)}"
        for kind, value in view.controls(case, name)
    ]
    return f" (controls: {', '.join(kinds)})" if kinds else ""


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
        if gate.verdict == "pass":
            continue
        rule = f"{markdown_text(gate.metric)} {markdown_text(gate.rule)} {bound(gate.bound)}"
        sure = (
            f" ({markdown_text(phrases.corrected(gate))})"
            if phrases.corrected(gate)
            else ""
        )
        lines.append(
            f"- {rule}: **{gate.verdict}**: {markdown_text(gate.reason, 600)}{sure}"
        )
    lines += [
        f"- error: {markdown_text(error, 300)}" for error in case.errors[:SHOWN_FACTS]
    ]
    if case.waiver is not None:
        lines.append(f"- {markdown_text(phrases.waiver(case, run), 600)}")
    lines += [
        f"- responses: {markdown_text(phrases.share_text(share))}"
        for share in phrases.noteworthy(case)
    ]
    if unmatched := phrases.unmatched(case.unmatched):
        lines.append(f"- compared without {unmatched}")
    if lines:
        yield from (*lines, "")
    yield from _changes(case.lost, "lost", facts)
    yield from _changes(case.gained, "gained", facts)


def _changes(changes: tuple[Change, ...], what: str, facts: int) -> Iterator[str]:
    """Yield a table of the first changed facts, folded; with no ``facts`` only how many there are."""
    if not changes:
        return
    shown = examples(changes, facts)
    if not shown:
        yield from (f"{count(len(changes), 'fact')} {what}.", "")
        return
    first = f" (the first {len(shown)})" if len(changes) > len(shown) else ""
    yield from (
        f"<details><summary>{count(len(changes), 'fact')} {what}{first}</summary>",
        "",
    )
    columns = {
        "question": [change.question for change in shown],
        "expected": [expected_text(change.expected, _LONGEST) for change in shown],
        "old answer": [answer_text(change.old_answer, _LONGEST) for change in shown],
        "new answer": [answer_text(change.new_answer, _LONGEST) for change in shown],
        "anchor": [probability(change) for change in shown],
        "from": [origin(change) for change in shown],
    }
    # What no fact of the table has needs no column.
    columns = {
        name: texts
        for name, texts in columns.items()
        if name == "question" or any(texts)
    }
    yield f"| {' | '.join(columns)} |"
    yield "|" + "---|" * len(columns)
    for row in zip(*columns.values(), strict=True):
        yield "| " + " | ".join(map(markdown_text, row)) + " |"
    yield from ("", "</details>", "")


def _correlations(run: Run) -> Iterator[str]:
    for pearson, spearman in view.correlation_pairs(run):
        figures = f"{markdown_text(pearson.x)} and {markdown_text(pearson.y)}"
        rows = [
            f"{word} {number(one.r)} ({markdown_text(p_value(one.p))})"
            for word, one in (("Pearson", pearson), ("Spearman", spearman))
        ]
        yield f"- {figures}: {', '.join(rows)}, n = {pearson.n}"


def _problems(run: Run) -> Iterator[str]:
    problems = (
        phrases.partial_note(run),
        phrases.not_run_note(run),
        *sorted(run.problems),
    )
    yield from (f"- {markdown_text(problem, 600)}" for problem in problems if problem)
