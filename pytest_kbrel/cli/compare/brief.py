"""``kbrel compare`` on one screen: a line a case and model, those that did not pass first."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_kbrel.cli.compare.render import coefficients
from pytest_kbrel.printing import cells, fit, pad, wrap
from pytest_kbrel.reports import comparison as side_by_side
from pytest_kbrel.reports import reasons
from pytest_kbrel.reports.cases import case_title
from pytest_kbrel.reports.comparison import Comparison, Side, severity
from pytest_kbrel.reports.formatting import count, one_line
from pytest_kbrel.reports.terminal import table_lines
from pytest_kbrel.reports.view import Group

# A terminal has at least so many lines, one of which is the next prompt's.
LEAST_LINES = 24
# So many models are listed, and so many correlations. Of fewer models no order is significant.
_MOST_MODELS, _MOST_CORRELATIONS, _FEWEST_CORRELATED = 8, 3, 5
# Notes on models have so many lines, and so many models the reason of their worst failure.
_MOST_NOTES, _MOST_REASONS, _LONGEST_REASON = 6, 3, 150
# What a model's number and name take at least.
_LEAST_NAME = 16
Line = tuple[Group, str, Side]


def brief_lines(comparison: Comparison, width: int, height: int) -> list[str]:
    """Return the comparison in at most ``height`` lines (no fewer than :data:`LEAST_LINES`) of ``width``.

    Models whose figures are another one's have no lines of their own. What does not fit is counted.
    """
    head = list(_models(comparison, width))
    # Where verdicts are known, these tell more.
    related = [] if comparison.is_paired else list(_correlations(comparison, width))
    # The next prompt has a line, and so have the end and what stands between the parts.
    room = max(height, LEAST_LINES) - 3 - len(head) - len(related)
    shown = _fitting(_lines(comparison, _listed(comparison)), room)
    printed = {(nodeid, side.number) for _, nodeid, side in shown}
    own = [side for side in comparison.sides if not side.same_as]
    left = [
        (nodeid, side)
        for _, nodeid, side in _lines(comparison, own)
        if (nodeid, side.number) not in printed
    ]
    body = _tables(comparison, shown, width)
    return [
        fit(line, width) for line in (*head, "", *body, *related, _rest(left, width))
    ]


def _models(comparison: Comparison, width: int) -> Iterator[str]:
    """Yield a line a model; of many the first one and those with the worst gates. Twins share one line."""
    own = [side for side in comparison.sides if not side.same_as]
    shown = _listed(comparison)
    words = [_about(comparison, side) for side in shown]
    if max(map(cells, words)) > width - _LEAST_NAME:
        words = [_about(comparison, side, brief=True) for side in shown]
    # The outcome is not cut, and the name gets what is left.
    left = max(_LEAST_NAME - 7, width - 7 - max(map(cells, words)))
    names = [_name(side) for side in shown]
    if max(map(cells, names)) > left:
        names = [one_line(side.name) for side in shown]
    wide = min(left, max(map(cells, names)))
    notes: set[str] = set()
    reasons_left = _MOST_REASONS
    for side, name, about in zip(shown, names, words, strict=True):
        yield f"{side.number:>3}  {pad(_tail(name, wide), wide)}  {about}".rstrip()
        note = _differences(side)
        # Each is told once, and of many models not all: the cases need room.
        if note and note not in notes and len(notes) < _MOST_NOTES:
            notes.add(note)
            yield note
        if reasons_left and (reason := _worst_failure(side)):
            reasons_left -= 1
            yield from wrap(reason, width, "     ")
    if more := len(own) - len(shown):
        gates = ", none with a worse gate" if comparison.is_paired else ""
        yield f"     and {count(more, 'more model')}{gates}"
    if twins := [
        f"{side.number} as {side.same_as}" for side in comparison.sides if side.same_as
    ]:
        yield f"     the same in all figures: {', '.join(twins)}"


def _differences(side: Side) -> str:
    """Return how else a candidate differs: that its weights do is why it is compared."""
    differences = [
        one_line(text)
        for text in (side.run.differences if side.run is not None else ())
        if not text.startswith("weights_digest")
    ]
    return f"     differs: {'; '.join(differences)}" if differences else ""


def _worst_failure(side: Side) -> str:
    """Return why the worst failed case of a candidate failed; empty where none did."""
    worst = next(iter(reasons.deciding(side.run)), None) if side.run else None
    if worst is None or worst.verdict != "fail":
        return ""
    reason = f"{case_title(worst)}: {reasons.case_reason(worst)}"
    return one_line(reason, _LONGEST_REASON)


def _listed(comparison: Comparison) -> list[Side]:
    """Return the models that have a line: the first one, and those with the worst gates."""
    first, *others = (side for side in comparison.sides if not side.same_as)
    others.sort(key=lambda side: severity(side_by_side.worst_gate(side)))
    return sorted((first, *others[: _MOST_MODELS - 1]), key=lambda side: side.number)


def _name(side: Side) -> str:
    name, spec = one_line(side.name), one_line(side.spec)
    return f"{name} ({spec})" if spec and spec != name else name


def _tail(text: str, width: int) -> str:
    """Return the end of a text that is too long: paths differ there."""
    while cells(text) > width:
        text = f"…{text[2:]}"
    return text


def _about(comparison: Comparison, side: Side, *, brief: bool = False) -> str:
    if side.run is None and comparison.is_paired and side.number == 1:
        return "baseline"
    if side.run is None:
        of_all = {other.unpaired for other in comparison.sides} == {side.unpaired}
        return one_line(
            "; ".join(filter(None, (side.settings, "" if of_all else side.unpaired))),
            60,
        )
    gates = side_by_side.gate_counts(side, passed=not brief)
    parts = (
        gates.removeprefix("gates: ") if brief else gates,
        side_by_side.change_counts(side),
    )
    return "; ".join(filter(None, parts))


def _lines(comparison: Comparison, sides: Sequence[Side]) -> list[Line]:
    """Return a line for each case and model of these that has one, the worst first.

    Of one verdict, the worst cases of all models come first.
    """
    if any(side.run is not None for side in sides):
        sides = [side for side in sides if side.run is not None]
    ranked: list[tuple[int, float, Line]] = []
    ranks = {
        side.number: {of.nodeid: at for at, of in enumerate(reasons.deciding(side.run))}
        for side in sides
        if side.run is not None
    }
    for group in side_by_side.groups(comparison):
        for case in sorted(group.cases, key=lambda of: reasons.natural(of.nodeid)):
            for side in sides:
                own = side.results.get(case.nodeid)
                if own is None or not (side.run or own.metrics):
                    continue
                at = ranks.get(side.number, {}).get(own.nodeid, math.inf)
                word = severity(side_by_side.word(side, case.nodeid))
                ranked.append((word, at, (group, case.nodeid, side)))
    return [line for *_, line in sorted(ranked, key=lambda one: one[:2])]


def _fitting(lines: Sequence[Line], room: int) -> Sequence[Line]:
    """Return the first lines that fit with the headings of their tables."""
    tables: set[str] = set()
    for at, (group, _, _) in enumerate(lines):
        tables.add(group.title)
        if at + 1 + len(tables) > room:
            return lines[: max(at, 1)]
    return lines


def _tables(comparison: Comparison, lines: Sequence[Line], width: int) -> Iterator[str]:
    for group in side_by_side.groups(comparison):
        shown = [
            (nodeid, side) for of, nodeid, side in lines if of.title == group.title
        ]
        shown.sort(
            key=lambda one: (
                severity(side_by_side.word(one[1], one[0])),
                reasons.natural(one[0]),
            )
        )
        if not shown:
            continue
        labels = {case.nodeid: label for case, label in group.labelled}
        names = [f"{side.number} {labels[nodeid]}" for nodeid, side in shown]
        table = dataclasses.replace(
            group,
            row=group.title,
            cases=tuple(side.results[nodeid] for nodeid, side in shown),
            labels=tuple(names),
        )
        words = [side_by_side.word(side, nodeid) for nodeid, side in shown]
        needed = [
            gate.metric
            for case in table.cases
            for gate in case.gates
            if gate.verdict == "fail"
        ]
        yield from (text for text, _ in table_lines(table, words, width, needed=needed))


def _correlations(comparison: Comparison, width: int) -> Iterator[str]:
    """Yield the correlations over all slices, where there are models enough for one to be significant."""
    strong = [
        one
        for one in comparison.scatters
        if one.pearson.r is not None
        and one.pearson.n >= _FEWEST_CORRELATED
        and one.whole
    ]
    if strong:
        yield ""
    for one in strong[:_MOST_CORRELATIONS]:
        names = f"{one_line(one.within)} {one.pearson.x}, {one.pearson.y}"
        yield from wrap(f"{names}: {coefficients(one)}", width, "")


def _rest(left: Sequence[tuple[str, Side]], width: int) -> str:
    """Return the last line: what is not shown, by its verdicts where they fit, and where to see it."""
    ways = "-v has all, --html FILE a page"
    if not left:
        return ways
    words = Counter(side_by_side.word(side, nodeid) for nodeid, side in left)
    counts = [f"{words[word]} {word}" for word in sorted(words, key=severity) if word]
    more = f"and {count(len(left), 'more line')}"
    full = f"{more} ({', '.join(counts)}); {ways}"
    return full if counts and cells(full) <= width else f"{more}; {ways}"
