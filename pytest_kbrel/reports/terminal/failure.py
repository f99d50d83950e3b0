"""The failure message of a case, as pytest prints it and JUnit files have it."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.printing import printable, wrap
from pytest_kbrel.records import CaseResult, GateResult, MetricValue
from pytest_kbrel.reports import phrases, view
from pytest_kbrel.reports.changes import examples, fact_cells
from pytest_kbrel.reports.formatting import (
    count,
    number,
    one_line,
    p_value,
    with_interval,
)
from pytest_kbrel.reports.terminal.cases import moved_fact, moved_text
from pytest_kbrel.reports.terminal.lines import row
from pytest_kbrel.reports.view import metric

# So many lost facts, and so many errors are shown.
_SHOWN = 5
# The columns of a line, and that in which the text behind a gate's labels begins.
_WIDTH, _COLUMN = 80, 16
_LONGEST = 160
_LONGEST_PROMPT = 500
# Facts that change together say so much less that a reader must know.
_NOTEWORTHY_EFFECT = 2.0


def failure_text(result: CaseResult, *, baseline_name: str) -> str:
    """Return the message of a failing item: each gate that did not pass, and the first lost facts.

    No line takes more than 80 columns, since pytest prints a message as it is.
    """
    baseline_name = one_line(baseline_name) or "the baseline"
    missed = [gate for gate in result.gates if gate.verdict != "pass"]
    head = f"{one_line(view.case_title(result), 300)}: {result.verdict}"
    if result.gates:
        head += f", {len(missed)} of {count(len(result.gates), 'gate')} not passed"
    lines = wrap(head, _WIDTH, "")
    # Where the responses are not sound, all gates are unjudged for the reason that the errors say.
    for gate in () if result.verdict == "invalid" and result.errors else missed:
        lines.append(f"  {phrases.gate_name(gate)}: {gate.verdict}")
        for label, text in _explained(result, gate, baseline_name):
            lines += _row(f"    {label}", text, _COLUMN)
    notes = [
        *phrases.expired_waivers(result),
        *phrases.case_notes(result, _SHOWN),
    ]
    if result.prompt:
        notes.append(f"first prompt  {one_line(result.prompt, _LONGEST_PROMPT)}")
    lines += [line for note in notes for line in wrap(note, _WIDTH, "  ")]
    lines += _lost(result, baseline_name)
    return printable("\n".join(lines))


def _row(label: str, text: str, column: int) -> list[str]:
    """Return ``text`` behind a label, in lines that all begin at ``column``."""
    return [line for line, _ in row(label, text, _WIDTH, column)]


def _explained(
    result: CaseResult, gate: GateResult, baseline_name: str
) -> Iterator[tuple[str, str]]:
    """Yield what is known of a gate: (label, text) each."""
    value, rule = metric(result, gate.metric), GATE_RULES[gate.rule]
    yield "measured", _measured(value, result.n)
    yield "allowed", phrases.allowed(gate, baseline_name)
    if value is not None and value.delta is not None:
        yield "baseline", f"{number(value.baseline)} ({baseline_name})"
        yield "difference", _paired(value)
        if value.design_effect is not None and value.design_effect > _NOTEWORTHY_EFFECT:
            effect = f"{value.design_effect:.1f}, for facts that share an answer changed together"
            yield "design", f"effect {effect}"
    if rule.explain == "observed" and gate.observed is not None:
        yield rule.observed, with_interval(gate.observed, gate.low, gate.high)
    if gate.p_sidak is not None:
        yield (
            "corrected",
            f"{p_value(gate.p_sidak)} for the gates of the case and the cases of the suite",
        )
    # Of most failed gates the reason is what the lines above say in columns: not the control, nor the paper.
    explained = rule.explain == "reason" or (value is not None and value.unpaired)
    if gate.reason and (explained or gate.verdict != "fail"):
        yield "reason", one_line(gate.reason, 600)
    elif others := phrases.beside(result, gate.metric):
        yield "beside", others
    if (
        gate.verdict in ("fail", "inconclusive")
        and (moved := moved_fact(result, gate)) is not None
    ):
        yield "seen", moved_text(moved)
    if gate.line:
        yield "stated in", f"{one_line(result.suite)}:{gate.line}"


def _measured(value: MetricValue | None, facts: int) -> str:
    if value is None:
        return "nothing"
    if value.value is None:
        return f"nothing: {one_line(value.note, 300)}" if value.note else "nothing"
    # Many figures are over some of the facts: those that were kept, or the answers that were correct.
    some = f"{value.n} of " if value.n < facts else ""
    over = f"on {some}{count(facts if some else value.n, 'fact')}"
    return f"{with_interval(value.value, value.low, value.high)} {over}"


def _paired(value: MetricValue) -> str:
    parts = [phrases.moved(value)]
    if value.paired:
        parts.append(f"over {count(value.paired, 'paired fact')}")
    if value.unpaired:
        parts.append("unpaired, from a published figure")
    if value.p is not None:
        parts.append(f"({p_value(value.p)})")
    return " ".join(part for part in parts if part)


def _lost(result: CaseResult, baseline_name: str) -> list[str]:
    if not result.lost:
        return []
    gained = f", {len(result.gained)} gained" if result.gained else ""
    lines = [
        f"  {count(len(result.lost), 'fact')} lost{gained} against {baseline_name}"
    ]
    for at, change in enumerate(examples(result.lost, _SHOWN), start=1):
        cells = fact_cells(change)
        question, where = cells.pop("question"), cells.pop("from")
        lines += _row(f"    {at}.", question + (f" ({where})" if where else ""), 7)
        for label, text in cells.items():
            lines += _row(f"       {label}", text, 19) if text else []
    if len(result.lost) > _SHOWN:
        lines.append(f"    and {len(result.lost) - _SHOWN} more")
    return lines
