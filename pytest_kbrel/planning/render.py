"""A plan as lines for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.power import (
    CORRELATION,
    DISCORDANT,
    WORDING_CORRELATION,
    GatePower,
)
from pytest_kbrel.models.token_counting import CHARACTERS
from pytest_kbrel.planning.plan import Participant, Plan, Range, RequestCounts
from pytest_kbrel.planning.requests import SAMPLED
from pytest_kbrel.printing import cells, format_table, wrap
from pytest_kbrel.records import Case
from pytest_kbrel.reports.cases import case_title
from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.stats import sidak

# The width of a file.
UNLIMITED = sys.maxsize
# One screen: a sampled plan is no wider.
_SCREEN = 80
_DETAILS = "add -v for each slice, exact tokens and what each gate can find"


def plan_lines(plan: Plan, width: int) -> list[str]:
    """Return the plan, line by line, each of at most ``width`` columns as far as that is possible.

    A sampled one is on one screen for any number of cases.
    """
    lines: list[str] = []
    if plan.sampled:
        width = min(width, _SCREEN)
        header = ["probe (slices)", "facts", "calls", "tokens read"]
        probes: dict[str, list[_Planned]] = {}
        for planned in plan.cases:
            probes.setdefault(planned[0].probe, []).append(planned)
        groups = [(f"{probe} ({len(of):,})", of) for probe, of in probes.items()]
        lines += _case_table(header, groups, width)
        exact = all(who.exact for who in plan.participants)
        tokens = "" if exact else f"; a token is taken to be {CHARACTERS} characters"
        lines += [f"estimated from {SAMPLED} facts of each slice{tokens}", ""]
    else:
        header = ["slice", "facts", "calls", "tokens read", "different"]
        for suite, cases in groupby(plan.cases, key=lambda planned: planned[0].suite):
            groups = [(case_title(planned[0]), [planned]) for planned in cases]
            lines += [suite, *_case_table(header, groups, width), ""]
    for participant in plan.participants:
        lines += _participant(participant, plan.sampled)
    lines.append("")
    lines += [*_gates_summed(plan), _DETAILS] if plan.sampled else _gates(plan, width)
    return [short for line in lines for short in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    """Return a line that is too long in several, which keep its indent."""
    if cells(line) <= width:
        return [line]
    return wrap(line.lstrip(), width, line[: len(line) - len(line.lstrip())])


def _table(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the lines of a table; where it is too wide, the first cell of each row has a line of its own."""
    lines = format_table(rows)
    if max(map(cells, lines)) <= width:
        return lines
    rest = format_table([row[1:] for row in rows], left=())
    return [
        line
        for row, numbers in zip(rows, rest, strict=True)
        for line in (row[0], f"    {numbers}")
    ]


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}"


def _range(value: Range, digits: int = 0) -> str:
    """Return a range in words: "300" or "300 to 6,300"."""
    low, high = _number(value.low, digits), _number(value.high, digits)
    return low if low == high else f"{low} to {high}"


def _seconds(value: Range) -> str:
    """Return a range of seconds in words, in minutes or hours where these are many."""
    if value.high >= 5400:
        return f"{_range(value.times(1 / 3600), 1)} hours"
    if value.high >= 180:
        return f"{_range(value.times(1 / 60), 1)} minutes"
    return f"{_range(value, 1)} s"


_Planned = tuple[Case, RequestCounts]
_Groups = list[tuple[str, list[_Planned]]]


def _case_table(header: list[str], groups: _Groups, width: int) -> list[str]:
    if len(groups) > 1:
        groups = [*groups, ("all", [case for _, group in groups for case in group])]
    rows = [header]
    for name, cases in groups:
        facts = sum(len(case.facts) for case, _ in cases)
        counts = [(of.calls, of.read, of.new) for _, of in cases]
        columns = zip(*counts, strict=True)
        totals = [_range(reduce(Range.plus, ranges)) for ranges in columns]
        rows.append([one_line(name, 60), _number(facts), *totals][: len(header)])
    return _table(rows, width)


def _participant(who: Participant, sampled: bool) -> Iterator[str]:
    counts = who.counts
    times = ", everything twice" if who.passes == 2 else ""
    yield f"{who.role} {one_line(who.text, 60)}: {_range(counts.calls)} calls{times}"
    if counts.new != counts.calls:
        yield f"  {_range(counts.new)} after deduplication"
    how = "" if who.exact or sampled else f", {CHARACTERS} characters a token"
    scored = f", {_range(counts.scored)} scored" if counts.scored.high else ""
    written = f"at most {_number(counts.written.high)} written"
    yield f"  tokens: {_range(counts.read)} read{scored}, {written}{how}"
    if who.thoughts and counts.written.high:
        yield f"  thoughts are not counted: at most {who.thoughts:,} tokens before each answer"
    if who.served:
        yield "  time: unknown, because a server is not timed"
    elif who.seconds is None:
        yield "  time: unknown, because no run of it has stored a rate"
    else:
        yield f"  time: {_seconds(who.seconds)} at the rate of its last run, if no answer is cached"
    if who.cost is not None:
        least, most = who.cost
        apart = " but for thoughts" if who.thoughts else ""
        yield f"  cost: {least:,.4f} for what is read at least, {most:,.4f} at most{apart}"
    elif who.served:
        yield "  cost: unknown without --kb-prices=IN,OUT"


def _relative(plan: Plan) -> list[GatePower]:
    return [gate for gate in plan.powers if GATE_RULES[gate.rule].relative]


def _gates_summed(plan: Plan) -> Iterator[str]:
    if not plan.powers:
        return
    relative = _relative(plan)
    yield f"gates: {len(plan.powers):,}; {len(relative):,} compare with a baseline"
    if lacking := sum(gate.note == "needs a baseline" for gate in relative):
        yield f"  not judged, because no baseline is given: {lacking:,}"
    yield ""


def _gates(plan: Plan, width: int) -> Iterator[str]:
    relative = _relative(plan)
    if not relative:
        return
    for suite, family in plan.families:
        if not family:
            continue
        significance = f"a drop is significant at p < {sidak(family):.2g}"
        yield f"cases compared with a baseline: {family} of {suite}; {significance}"
    yield (
        f"smallest drops found with 80 % power, if {DISCORDANT:.0%} of the facts change (rates), or with "
        f"a correlation of {CORRELATION} (other figures):"
    )
    if any(gate.wordings > 1 for gate in relative):
        yield (
            f"where facts are asked in several wordings, the changes of these have a correlation of "
            f"{WORDING_CORRELATION}:"
        )
    titles = {
        f"{case.suite}::{case.id}": one_line(case_title(case), 60)
        for case, _ in plan.cases
    }

    def title(gate: GatePower) -> str:
        return titles.get(gate.case, one_line(gate.case.partition("::")[2], 60))

    # Gates that differ in their slice only are one row.
    alike: dict[tuple[str, ...], list[GatePower]] = {}
    for gate in relative:
        shown = (_number(gate.n), f"{gate.rule} {gate.bound:g}", _smallest(gate))
        key = gate.case.partition("[")[0], gate.metric, *shown
        alike.setdefault(key, []).append(gate)
    rows = [["gate", "n", "allowed", "found from"]]
    for (_, metric, *cells_), group in alike.items():
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        rows.append([f"{metric} in {title(group[0])}{more}", *cells_])
    yield from _table(rows, width)


def _smallest(gate: GatePower) -> str:
    if gate.mde is None:
        return gate.note or "none"
    return f"{gate.mde:.3f}" + (f" ({gate.note})" if gate.note else "")
