"""Terminal output: the summary at the end of a run, and the failure message of a case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.printing import cells, fit, format_table, pad, printable, wrap
from pytest_kbrel.records import CaseResult, Change, GateResult, MetricValue, Run, is_published
from pytest_kbrel.reports import phrases, view
from pytest_kbrel.reports.formatting import (
    answer_text,
    count,
    difference,
    expected_text,
    interval,
    number,
    one_line,
    p_value,
    signed,
)
from pytest_kbrel.reports.view import Group, metric

Line = tuple[str, dict[str, bool]]

_WIDEST = 100
SHOWN_FACTS = 3
# The reasons of inconclusive gates take at most so many lines; further gates are counted.
REASON_LINES = 8
# Facts that change together say so much less that a reader must know.
_NOTEWORTHY_EFFECT = 2.0
_PLAIN: dict[str, bool] = {}
_BOLD = {"bold": True}


def terminal_lines(run: Run, *, width: int, color: bool = True, written_to: str = "") -> list[Line]:
    """Return (text, markup) pairs for ``terminalreporter.write_line(text, **markup)``.

    No line is wider than ``width``, nor than 100 columns, but the last: the path of the reports stays whole.
    Without ``color`` the markup is empty: every verdict is also a word.
    """
    width = max(20, min(width, _WIDEST))
    lines = [
        *_identity(run, width),
        *_tables(run, width),
        *_aggregates(run, width),
        *_reasons(run, width),
        *_waivers(run, width),
        *_facts(run, width),
        *_problems(run, width),
        *_headline(run, width),
    ]
    fitted = [(fit(printable(text), width), markup if color else _PLAIN) for text, markup in lines]
    if written_to:
        fitted.append((printable(f"reports written to {one_line(written_to)}"), _PLAIN))
    return fitted


def _identity(run: Run, width: int) -> Iterator[Line]:
    if run.model is None:
        return
    against = f" against baseline {one_line(run.baseline)}" if run.baseline else ""
    parts = (run.model.dtype, run.model.device, phrases.prompt_form(run.model))
    where = ", ".join(one_line(part) for part in parts if part)
    word = view.verdict(run)
    yield f"{one_line(run.model.spec)} ({where}){against}: {word}", VERDICTS[word].markup
    for role, who in view.helper_models(run):
        yield f"{role} {one_line(who)}", _PLAIN
    if is_published(run.baseline):
        yield "the baseline is what a paper prints: differences from it are unpaired", _PLAIN
    for note in phrases.run_notes(run):
        yield from _wrapped(note, width, indent="")
    yield "", _PLAIN


def _tables(run: Run, width: int) -> Iterator[Line]:
    for group in view.groups(run):
        yield group.title, _BOLD
        words = ["waived" if phrases.is_waived(case, run) else case.verdict for case in group.cases]
        for text, case in table_lines(group, words, width - 2):
            yield f"  {text}", _PLAIN if case is None else _markup(case, run)
        for held in group.cases:
            yield from _wrapped(_controls(held, group.metrics), width, indent="  ")
            yield from _wrapped(_integrity(held), width, indent="  ")
        yield from _wrapped(_stopped(group), width, indent="  ")
        yield "", _PLAIN


def _controls(case: CaseResult, metrics: Sequence[str]) -> str:
    """Return the values of the controls of a case's metrics; empty where it has none."""
    lines = []
    for name in metrics:
        kinds = [f"{number(value.value)} {one_line(kind)}" for kind, value in view.controls(case, name)]
        if kinds:
            lines.append(f"{one_line(name)} {', '.join(kinds)}")
    return (
        f"controls of {one_line(view.relation_title(case.slice, case.label))}: {'; '.join(lines)}"
        if lines
        else ""
    )


def _stopped(group: Group) -> str:
    """Return which cases of a table stopped early, and where; empty where none did."""
    labels: dict[str, list[str]] = {}
    for label, case in zip(group.labels, group.cases, strict=True):
        if words := phrases.stopped_early(case):
            labels.setdefault(words, []).append(one_line(label, 200))
    return "; ".join(f"{words}: {', '.join(names)}" for words, names in labels.items())


def _integrity(case: CaseResult) -> str:
    """Return the noteworthy integrity shares of a case; empty where it has none."""
    shares = "; ".join(map(phrases.share_text, phrases.noteworthy(case)))
    return f"responses of {one_line(view.relation_title(case.slice, case.label))}: {shares}" if shares else ""


def _markup(case: CaseResult, run: Run) -> dict[str, bool]:
    if case.verdict == "pass":
        return _PLAIN
    return VERDICTS["inconclusive" if phrases.is_waived(case, run) else case.verdict].markup


def _aggregates(run: Run, width: int) -> Iterator[Line]:
    cases = view.aggregates(run)
    if not cases:
        return
    names = view.names(run)
    yield "Over all slices", _BOLD
    for case in cases:
        markup = _markup(case, run)
        yield f"  {one_line(names[case.nodeid])}  {phrases.verdict_words(case, run)}", markup
        if why := phrases.unmeasured_note(case):
            yield from _wrapped(why, width, markup=markup)
        shown = view.key_metrics(case)
        wide = max((16, *map(len, shown)))
        for value in (value for value in case.metrics if value.name in shown):
            parts = [number(value.value), interval(value.low, value.high)]
            if value.delta is not None:
                parts.append(signed(value.delta))
                # An equals sign says it all where no outcome changed.
                if value.delta or value.delta_low or value.delta_high:
                    parts.append(difference(value.delta_low, value.delta_high))
            elif value.value is None and value.note:
                parts.append(one_line(value.note, 200))
            yield f"    {one_line(value.name):<{wide}} " + " ".join(part for part in parts if part), markup
    yield "", _PLAIN


def _reasons(run: Run, width: int) -> Iterator[Line]:
    """Yield the reasons of inconclusive gates: failures are explained among pytest's own."""
    reasons = phrases.inconclusive_reasons(run)
    shown: list[Line] = []
    for at, (reason, _) in enumerate(reasons):
        lines = _wrapped(reason, width, indent="  ")
        if at and len(shown) + len(lines) > REASON_LINES:
            more = sum(gates for _, gates in reasons[at:])
            shown.append((f"  and {count(more, 'more gate')}; report.html has all reasons", _PLAIN))
            break
        shown += lines
    if shown:
        yield from (("Inconclusive", _BOLD), *shown, ("", _PLAIN))
    if gates := view.unjudged_count(run):
        why = "nothing published to compare with" if run.baseline else "no baseline given (--kb-baseline)"
        yield f"{why}: {count(gates, 'gate')} not judged", _PLAIN


def _waivers(run: Run, width: int) -> Iterator[Line]:
    names = view.names(run)
    cases = [case for case in view.ordered(run) if case.waiver is not None]
    if not cases:
        return
    yield "Waivers", _BOLD
    for case in cases:
        line = f"{one_line(names[case.nodeid])}: {case.verdict}, {phrases.waiver(case, run)}"
        yield from _wrapped(line, width, indent="  ")
    yield "", _PLAIN


def _facts(run: Run, width: int) -> Iterator[Line]:
    """Yield the facts whose anchor probability changed most, lost ones first."""
    moved = view.changed_facts(run)
    if not moved.lost and not moved.gained:
        return
    yield "Lost and gained facts", _BOLD
    for word, changes in (("lost", moved.lost), ("gained", moved.gained)):
        for change in changes[:SHOWN_FACTS]:
            yield from _wrapped(f"{word:<6}  {_change(change)}", width, indent="  ")
        if len(changes) > SHOWN_FACTS:
            yield f"  {word:<6}  {len(changes) - SHOWN_FACTS} more in report.html and report.json", _PLAIN
    yield "", _PLAIN


def _change(change: Change) -> str:
    moved = view.probability(change)
    parts = [
        f"{one_line(change.question, 120)} {expected_text(change.expected, 60)}",
        f"said {answer_text(change.old_answer, 60)} → {answer_text(change.new_answer, 60)}",
        moved and f"anchor {moved}",
        view.origin(change),
    ]
    return "; ".join(part for part in parts if part)


def _wrapped(text: str, width: int, indent: str = "    ", markup: dict[str, bool] = _PLAIN) -> list[Line]:
    return [(line, markup) for line in wrap(text, width, indent)]


def _problems(run: Run, width: int) -> Iterator[Line]:
    for problem in sorted(run.problems):
        yield from _wrapped(f"problem: {one_line(problem, 600)}", width, "", VERDICTS["fail"].markup)
    if note := phrases.partial_note(run):
        yield note, VERDICTS["inconclusive"].markup


def _headline(run: Run, width: int) -> Iterator[Line]:
    if sentence := view.changes_headline(run):
        against = f" against baseline {one_line(run.baseline)}" if run.baseline else ""
        head, *rest = sentence.split("; ")
        yield from _wrapped("; ".join([head + against, *rest]), width, "", _BOLD)
    if sentence := view.not_excluded(run):
        yield from _wrapped(sentence, width, "")
    word = view.verdict(run)
    yield f"{word}: {view.headline(run)}", {**VERDICTS[word].markup, "bold": True}


@dataclass(frozen=True, slots=True)
class _Layout:
    digits: int
    zero: bool
    arrows: bool
    deltas: bool = True
    columns: int = 99
    slice_width: int = 40


_LAYOUTS = (
    _Layout(3, True, True),
    _Layout(3, True, False),
    _Layout(3, False, False),
    _Layout(2, False, False),
    _Layout(2, False, False, slice_width=12),
    _Layout(2, False, False, deltas=False, slice_width=16),
)


def table_lines(group: Group, verdicts: Sequence[str], width: int) -> list[tuple[str, CaseResult | None]]:
    """Return the lines of a table, the heading first, each with the case it is about.

    ``verdicts`` are the words of the last column, one a case.
    """
    width = min(width, _WIDEST)
    narrowing = [
        replace(_LAYOUTS[-1], columns=columns, slice_width=12)
        for columns in range(len(group.metrics) - 1, -1, -1)
    ]
    for layout in (*_LAYOUTS, *narrowing):
        rows = _rows(group, verdicts, layout)
        # The verdicts may reach further than their heading.
        if max(map(cells, rows)) <= width:
            break
    return list(zip((fit(row, width) for row in rows), (None, *group.cases), strict=True))


def _rows(group: Group, verdicts: Sequence[str], layout: _Layout) -> list[str]:
    names = _shown_metrics(group.metrics, layout.columns)
    columns = [
        [group.row, *(fit(one_line(label, 200), layout.slice_width) for label in group.labels)],
        # A paper does not say how many there were.
        *([["n", *(str(case.n) for case in group.cases)]] if any(case.n for case in group.cases) else []),
        *(_metric_column(name, group, layout) for name in names),
        ["verdict", *verdicts],
    ]
    return format_table(list(zip(*columns, strict=True)), left=(0, len(columns) - 1))


def _shown_metrics(names: Sequence[str], most: int) -> Sequence[str]:
    """Return the first ``most`` names; MONITOR's score only with those that belong beside it."""
    if "monitor" not in names:
        return names[:most]
    beside = BESIDE["monitor"]
    order = dict.fromkeys(name for name in (*beside, *names) if name in names)
    chosen = list(order)[:most]
    return [name for name in names if name in chosen]


def _metric_column(name: str, group: Group, layout: _Layout) -> list[str]:
    column = [metric(case, name) for case in group.cases]
    values = [number(value.value if value else None, layout.digits, zero=layout.zero) for value in column]
    if layout.deltas and any(value is not None and value.delta is not None for value in column):
        deltas = [signed(value.delta if value else None, layout.digits, zero=layout.zero) for value in column]
        wide = max(map(cells, deltas))
        values = [
            f"{value} {pad(delta, wide, right=True)}" for value, delta in zip(values, deltas, strict=True)
        ]
    heading = one_line(name, 40)
    if layout.arrows:
        better = next((value.better for value in column if value is not None), "higher")
        heading += "↑" if better == "higher" else "↓"
    return [heading, *values]


SHOWN_LOST = 5
SHOWN_ERRORS = 5
_LONGEST = 160
_LONGEST_PROMPT = 500


def failure_text(result: CaseResult, *, baseline_name: str) -> str:
    """Return the message of a failing item: each gate that did not pass, and the first lost facts."""
    baseline_name = one_line(baseline_name) or "the baseline"
    missed = [gate for gate in result.gates if gate.verdict != "pass"]
    lines = [f"{one_line(view.case_title(result), 300)}: {result.verdict}"]
    if result.gates:
        lines[0] += f", {len(missed)} of {count(len(result.gates), 'gate')} not passed"
    for gate in missed:
        lines += _gate(result, gate, baseline_name)
    lines += [f"  {waiver}" for waiver in phrases.expired_waivers(result)]
    lines += [f"  error: {one_line(error, 500)}" for error in result.errors[:SHOWN_ERRORS]]
    if len(result.errors) > SHOWN_ERRORS:
        lines.append(f"  and {count(len(result.errors) - SHOWN_ERRORS, 'more error')}")
    lines += [f"  responses: {phrases.share_text(share)}" for share in phrases.noteworthy(result)]
    if unmatched := phrases.unmatched(result.unmatched):
        lines.append(f"  compared without {unmatched}")
    if result.prompt:
        lines.append(f"  first prompt  {one_line(result.prompt, _LONGEST_PROMPT)}")
    lines += _lost(result, baseline_name)
    return printable("\n".join(lines))


def _gate(result: CaseResult, gate: GateResult, baseline_name: str) -> list[str]:
    value, rule = metric(result, gate.metric), GATE_RULES[gate.rule]
    lines = [f"  {phrases.gate_name(gate)}: {gate.verdict}"]
    lines.append(f"    measured    {_measured(value, result.n)}")
    lines.append(f"    allowed     {phrases.allowed(gate, baseline_name)}")
    if value is not None and value.delta is not None:
        lines.append(f"    baseline    {number(value.baseline)} ({baseline_name})")
        lines.append(f"    difference  {_paired(value)}")
        if value.noise is not None:
            lines.append(f"    noise       {number(value.noise)} when the baseline's model was asked twice")
        if value.design_effect is not None and value.design_effect > _NOTEWORTHY_EFFECT:
            effect = f"{value.design_effect:.1f}, for facts that share an answer changed together"
            lines.append(f"    design      effect {effect}")
    if rule.explain == "observed" and gate.observed is not None:
        ends = interval(gate.low, gate.high)
        lines.append(f"    {rule.observed:<11} {number(gate.observed)} {ends}".rstrip())
    if gate.p_sidak is not None:
        lines.append(
            f"    corrected   {p_value(gate.p_sidak)} for the gates of the case and the cases of the suite"
        )
    # Of most failed gates the reason is what the lines above say in columns: not the control, nor the paper.
    explained = rule.explain == "reason" or (value is not None and value.unpaired)
    if gate.reason and (explained or gate.verdict != "fail" or "red by never" in gate.reason):
        lines.append(f"    reason      {one_line(gate.reason, 600)}")
    elif others := _beside(result, gate.metric):
        lines.append(f"    beside      {others}")
    if gate.line:
        lines.append(f"    stated in   {one_line(result.suite)}:{gate.line}")
    return lines


def _beside(result: CaseResult, name: str) -> str:
    """Return what is shown beside a figure of MONITOR: ``accuracy 0.586 +0.002, anchor_prob 0.811 =``."""
    values = [metric(result, other) for other in BESIDE.get(name, ())]
    return ", ".join(
        f"{value.name} {number(value.value)} {signed(value.delta)}".rstrip() for value in values if value
    )


def _measured(value: MetricValue | None, facts: int) -> str:
    if value is None:
        return "nothing"
    if value.value is None:
        return f"nothing: {one_line(value.note, 300)}" if value.note else "nothing"
    # Many figures are over some of the facts: those that were kept, or the answers that were correct.
    some = f"{value.n} of " if value.n < facts else ""
    over = f"on {some}{count(facts if some else value.n, 'fact')}"
    parts = [number(value.value), interval(value.low, value.high), over]
    return " ".join(part for part in parts if part)


def _paired(value: MetricValue) -> str:
    parts = [signed(value.delta), difference(value.delta_low, value.delta_high)]
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
    lines = [f"  {count(len(result.lost), 'fact')} lost{gained} against {baseline_name}"]
    for at, change in enumerate(view.examples(result.lost, SHOWN_LOST), start=1):
        lines += _lost_fact(at, change)
    if len(result.lost) > SHOWN_LOST:
        lines.append(f"    and {len(result.lost) - SHOWN_LOST} more")
    return lines


def _lost_fact(at: int, change: Change) -> list[str]:
    origin = view.origin(change)
    lines = [
        f"    {at}. {one_line(change.question, _LONGEST)}" + (f" ({origin})" if origin else ""),
        f"       expected    {expected_text(change.expected, _LONGEST)}",
        f"       old answer  {answer_text(change.old_answer, _LONGEST)}",
        f"       new answer  {answer_text(change.new_answer, _LONGEST)}",
    ]
    if moved := view.probability(change):
        lines.append(f"       anchor      {moved}")
    return lines
