"""The pieces of the page: escaped text, verdict words, interval bars, cells of figures."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from pytest_kbrel.records import CaseResult, GateResult, Judgement, MetricValue
from pytest_kbrel.reports import notes
from pytest_kbrel.reports.failure import allowed
from pytest_kbrel.reports.selection import Group, metric
from pytest_kbrel.reports.text import (
    bound,
    count,
    difference,
    interval,
    number,
    one_line,
    p_value,
    signed,
)

_LONGEST = 160
_LONGEST_PROMPT = 4000


def text(words: str, limit: int = _LONGEST) -> str:
    """Return words for the page: on one line, cut, escaped."""
    return html.escape(one_line(words, limit), quote=True)


def said(answer: str) -> str:
    """Return what somebody said, set apart so that its writing direction stays its own."""
    return f"<bdi>{text(answer)}</bdi>"


def folded_prompt(prompt: str, title: str) -> str:
    """Return a prompt with its line breaks, to be unfolded by its title; nothing where there is none."""
    if not prompt:
        return ""
    lines = "\n".join(text(line, _LONGEST_PROMPT) for line in prompt[:_LONGEST_PROMPT].split("\n"))
    cut = "\n…" if len(prompt) > _LONGEST_PROMPT else ""
    return f'<details><summary class="small">{text(title)}</summary><pre>{lines}{cut}</pre></details>'


def within(parts: Iterable[str], room: int, most: int = 1_000_000) -> list[str]:
    """Return the first parts, at most ``most``, that take at most ``room`` bytes together: at least one."""
    kept: list[str] = []
    for part in parts:
        room -= len(part.encode("utf-8", "replace"))
        if kept and (room < 0 or len(kept) == most):
            break
        kept.append(part)
    return kept


def left_out(n: int, noun: str) -> str:
    """Return the note that so many are not on the page; nothing where all are."""
    return f'<p class="soft small">{count(n, f"more {noun}")} in report.json.</p>' if n else ""


def word(verdict: Judgement) -> str:
    """Return a verdict as a coloured word."""
    return f'<span class="word {verdict.replace(" ", "-")}">{verdict}</span>'


def word_of(case: CaseResult) -> str:
    """Return a case's verdict as a coloured word, without colour where nothing was judged."""
    if notes.is_measured(case):
        return f'<span class="word plain">{notes.MEASURED}</span>'
    return word(case.verdict)


def domain(values: Iterable[MetricValue | None]) -> tuple[float, float]:
    """Return the scale that bars of these values share: 0 to 1, and further only where values are."""
    ends = [end for v in values if v for end in (v.value, v.low, v.high, v.baseline) if end is not None]
    lowest, highest = min([0.0, *ends]), max([1.0, *ends])
    return (min(lowest, -1.0) if lowest < 0 else 0.0), highest


def bar(value: MetricValue, scale: tuple[float, float]) -> str:
    """Return an interval bar. It repeats what the numbers beside it say, so readers of the page skip it."""
    if value.value is None:
        return ""
    start, end = scale

    def at(point: float) -> float:
        return 100 * (point - start) / (end - start)

    parts = ['<rect class="track" y="3" width="100" height="3"/>']
    if value.low is not None and value.high is not None:
        left, right = at(value.low), at(value.high)
        parts.append(
            f'<rect class="range" x="{left:.1f}" y="1" width="{max(right - left, 0.5):.1f}" height="7"/>'
        )
    if value.baseline is not None:
        parts.append(f'<rect class="base" x="{at(value.baseline) - 0.6:.1f}" width="1.2" height="9"/>')
    parts.append(f'<rect class="tick" x="{at(value.value) - 1:.1f}" width="2" height="9"/>')
    drawn = "".join(parts)
    return f'<svg class="bar" viewBox="0 0 100 9" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


def delta(value: MetricValue, *, with_interval: bool = False) -> str:
    """Return the difference to the baseline; coloured where its interval leaves out zero."""
    if value.delta is None:
        return ""
    tone = ""
    if value.delta_low is not None and value.delta_high is not None:
        up, down = value.delta_low > 0, value.delta_high < 0
        if up or down:
            tone = " better" if up == (value.better == "higher") else " worse"
    shown = signed(value.delta) if value.delta else "no change"
    if with_interval:
        shown += f" {difference(value.delta_low, value.delta_high)}"
    return f'<span class="delta{tone}">{shown.rstrip()}</span>'


def figure(value: MetricValue, scale: tuple[float, float], *, with_interval: bool = False) -> str:
    """Return value, interval, bar and difference, the latter's interval on demand."""
    if value.value is None:
        return f'<span class="soft small">{text(value.note) or "undefined"}</span>'
    shown = f'<span class="v">{number(value.value)}</span>'
    ends = interval(value.low, value.high)
    if ends:
        shown += f' <span class="ci">{ends}</span>'
    return f"{shown} {bar(value, scale)}{delta(value, with_interval=with_interval)}"


def arrow(better: str) -> str:
    """Return the direction that is better, for the eye and for a screen reader."""
    sign = "↑" if better == "higher" else "↓"
    return f'<abbr title="{better} is better">{sign}</abbr>'


def probe_table(group: Group, room: int) -> str:
    """Return the table of a group, a column a key metric, in about ``room`` bytes."""
    columns = {name: [metric(case, name) for case in group.cases] for name in group.metrics}
    scales = {name: domain(values) for name, values in columns.items()}
    better = {name: next(v.better for v in values if v) for name, values in columns.items()}
    head = "".join(f'<th scope="col">{text(name)} {arrow(better[name])}</th>' for name in columns)
    every = (
        f'<tr><th scope="row">{text(label)}</th><td class="num" data-of="n">{case.n}</td>'
        + "".join(f'<td data-of="{text(name)}">{_cell(case, name, scales[name])}</td>' for name in columns)
        + f'<td class="verdict">{word(case.verdict)}{_waived(case)}</td></tr>'
        for case, label in zip(group.cases, group.labels, strict=True)
    )
    rows = within(every, room)
    return (
        f'<div class="panel"><table class="stack"><thead><tr><th scope="col">{group.row}</th>'
        f'<th scope="col" class="num">n</th>{head}<th scope="col">verdict</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{left_out(len(group.cases) - len(rows), group.row)}"
    )


def _waived(case: CaseResult) -> str:
    return ' <span class="soft small">waived</span>' if case.waived else ""


def _cell(case: CaseResult, name: str, scale: tuple[float, float]) -> str:
    value = metric(case, name)
    if value is None:
        return ""
    missed = [gate.verdict for gate in case.gates if gate.metric == name and gate.verdict != "pass"]
    return figure(value, scale) + (f" {word(missed[0])}" if missed else "")


def gate_item(case: CaseResult, gate: GateResult, baseline: str) -> str:
    """Return one gate as a list item: verdict, rule, what is allowed, reason, place, how sure it is."""
    sure = "; ".join(part for part in (notes.observed(gate), notes.corrected(gate)) if part)
    sure = f'<br><span class="soft small">{html.escape(sure)}</span>' if sure else ""
    place = f' <span class="soft small">{text(case.suite)}:{gate.line}</span>' if gate.line else ""
    return (
        f"<li>{word(gate.verdict)} <code>{text(gate.metric)} {gate.rule} {bound(gate.bound)}</code> "
        f'<span class="soft">{text(allowed(gate, baseline))}</span>{place}<br>'
        f"{text(gate.reason, 600)}{sure}</li>"
    )


def metric_table(values: Sequence[MetricValue]) -> str:
    """Return all figures of one case."""
    noisy = any(value.noise is not None for value in values)
    rows = "".join(
        f'<tr><th scope="row">{text(value.name)}</th><td>{number(value.value)}</td>'
        f"<td>{interval(value.low, value.high)}</td><td>{number(value.baseline)}</td>"
        f"<td>{delta(value, with_interval=True)}{' unpaired' if value.unpaired else ''}</td>"
        f"<td>{html.escape(p_value(value.p))}</td>{f'<td>{number(value.noise)}</td>' if noisy else ''}</tr>"
        for value in values
    )
    names = ["metric", "value", "95 % interval", "baseline", "difference", "one-sided"]
    head = "".join(f'<th scope="col">{name}</th>' for name in (*names, *(["noise floor"] if noisy else ())))
    return (
        f'<div class="wide"><table class="small"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
