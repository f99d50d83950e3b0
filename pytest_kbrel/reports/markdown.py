"""``summary.md``: the run on one screen, for a CI job's page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_kbrel.records import CaseResult, Change, MetricValue, Run
from pytest_kbrel.reports import selection
from pytest_kbrel.reports.attributions import attribution_lines
from pytest_kbrel.reports.text import (
    bound,
    count,
    interval,
    number,
    one_line,
    p_value,
    signed,
    spoken,
    wanted,
)

SHOWN_FACTS = 10
_LONGEST = 160
# GitHub refuses step summaries above 1 MiB as a whole.
_LARGEST = 900_000

_ACTIVE = re.compile(r"[\\`*_\[\]|~$]|(?<=:)//|(?<=www)\.|^(?:[#>+-]|\d+[.)])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})


def markdown_text(text: str, limit: int = _LONGEST) -> str:
    """Return ``text`` so that Markdown shows it as it is: no markup, HTML, link or table cell in it."""
    escaped = _ACTIVE.sub(
        lambda found: "".join(f"\\{char}" if not char.isdigit() else char for char in found[0]),
        one_line(text, limit),
    )
    return escaped.translate(_ENTITIES)


def summary_markdown(run: Run) -> str:
    """Return the summary of ``run``: verdict, table of cases, lost and gained facts, problems."""
    head = "\n".join([*_headline(run), *_table(run)])
    tail = "\n".join([*_correlations(run), *_problems(run)])
    kept: list[str] = []
    room = _LARGEST - len(head.encode("utf-8", "replace")) - len(tail.encode("utf-8", "replace"))
    for block in _case_blocks(run):
        room -= len(block.encode("utf-8", "replace"))
        if room < 0:
            kept.append("More cases are in report.html.\n")
            break
        kept.append(block)
    return "\n".join([head, *kept, tail]).rstrip() + "\n"


def _headline(run: Run) -> Iterator[str]:
    yield f"## Knowledge gates: {selection.verdict(run)}"
    yield ""
    model = markdown_text(run.model.spec) if run.model else "no model"
    named = f" against baseline **{markdown_text(run.baseline)}**{selection.against(run)}"
    against = named if run.baseline else ""
    if judge := selection.judged_by(run):
        against += f", judged by {markdown_text(judge)}"
    yield f"**{model}**{against}: {selection.headline(run)}."
    yield ""
    lost, gained = selection.changed(run)
    if lost or gained:
        worst = selection.worst(run)
        where = f" Worst: {markdown_text(selection.names(run)[worst.nodeid])}." if worst else ""
        yield f"{count(lost, 'fact')} lost, {gained} gained.{where}"
        yield ""


def _table(run: Run) -> Iterator[str]:
    if not run.cases:
        return
    names = selection.names(run)
    yield "| verdict | case | n | metrics |"
    yield "|---|---|--:|---|"
    for case in (*selection.slices(run), *selection.aggregates(run)):
        word = case.verdict if case.verdict == "pass" else f"**{case.verdict}**"
        found = [selection.metric(case, name) for name in selection.key_metrics(case)]
        shown = (_figure(value) + _controls(case, value.name) for value in found if value is not None)
        figures = "<br>".join(shown)
        yield f"| {word} | {markdown_text(names[case.nodeid])} | {case.n} | {figures} |"
    yield ""


def _figure(value: MetricValue) -> str:
    parts = [
        markdown_text(value.name),
        number(value.value),
        markdown_text(interval(value.low, value.high)),
        f"({signed(value.delta)})" if value.delta is not None else "",
    ]
    return " ".join(part for part in parts if part)


def _controls(case: CaseResult, name: str) -> str:
    kinds = [f"{markdown_text(kind)} {number(value.value)}" for kind, value in selection.controls(case, name)]
    return f" (controls: {', '.join(kinds)})" if kinds else ""


def _case_blocks(run: Run) -> Iterator[str]:
    names = selection.names(run)
    passed = [case for case in selection.ordered(run) if case.verdict == "pass"]
    for case in (*selection.unsettled(run), *passed):
        lines = list(_case(case))
        if lines:
            yield "\n".join([f"### {markdown_text(names[case.nodeid])}: {case.verdict}", "", *lines])


def _case(case: CaseResult) -> Iterator[str]:
    reasons = [gate for gate in case.gates if gate.verdict != "pass"]
    for gate in reasons:
        rule = f"{markdown_text(gate.metric)} {markdown_text(gate.rule)} {bound(gate.bound)}"
        yield f"- {rule}: **{gate.verdict}**: {markdown_text(gate.reason, 600)}"
    for error in case.errors[:SHOWN_FACTS]:
        yield f"- error: {markdown_text(error, 300)}"
    if reasons or case.errors:
        yield ""
    yield from _changes(case.lost, "lost")
    yield from _changes(case.gained, "gained")
    told = [f"- {markdown_text(line, 400)}" for line in attribution_lines(case)]
    if told:
        yield from ("What moved the answers about the worst facts:", "", *told, "")


def _changes(changes: tuple[Change, ...], what: str) -> Iterator[str]:
    if not changes:
        return
    first = f" (the first {SHOWN_FACTS})" if len(changes) > SHOWN_FACTS else ""
    yield f"{count(len(changes), 'fact')} {what}{first}:"
    yield ""
    yield "| question | expected | old answer | new answer |"
    yield "|---|---|---|---|"
    for change in changes[:SHOWN_FACTS]:
        answers = (
            wanted(change.expected, _LONGEST),
            *(spoken(text, _LONGEST) for text in (change.old_answer, change.new_answer)),
        )
        yield "| " + " | ".join(markdown_text(text) for text in (change.question, *answers)) + " |"
    yield ""


def _correlations(run: Run) -> Iterator[str]:
    pairs = selection.correlated(run)
    if not pairs:
        return
    yield "### Correlations over slices"
    yield ""
    for pearson, spearman in pairs:
        figures = f"{markdown_text(pearson.x)} and {markdown_text(pearson.y)}"
        told = [
            f"{word} {number(one.r)} ({markdown_text(p_value(one.p))})"
            for word, one in (("Pearson", pearson), ("Spearman", spearman))
        ]
        yield f"- {figures}: {', '.join(told)}, n = {pearson.n}"
    yield ""


def _problems(run: Run) -> Iterator[str]:
    if run.complete and not run.problems:
        return
    yield "### Problems"
    yield ""
    if not run.complete:
        yield "- Partial run: not every case of its suites was selected and soundly decided."
    for problem in sorted(run.problems):
        yield f"- {markdown_text(problem, 600)}"
