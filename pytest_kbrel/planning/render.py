"""A plan as lines for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.power import (
    CORRELATION,
    DISCORDANT,
    WORDING_CORRELATION,
    GatePower,
)
from pytest_kbrel.gates.reasons import FEW_CLUSTERS
from pytest_kbrel.planning.plan import Participant, Plan, PlannedCase
from pytest_kbrel.planning.requests import Range
from pytest_kbrel.printing import cells, format_table, wrap
from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.stats import sidak

# The width of a file.
UNLIMITED = sys.maxsize
# Of the gates that an unchanged model most often fails, so many are named.
_SHOWN = 3
_WAYS = {
    "packed": "in packed rows behind shared prefixes",
    "prefix": "behind shared prefixes",
    "plain": "each question whole",
}


def plan_lines(plan: Plan, width: int = UNLIMITED) -> list[str]:
    """Return the whole plan, line by line, each of at most ``width`` columns as far as that is possible."""
    titles = {
        f"{case.suite}::{case.id}": f"{case.suite}::{case.title}" for case in plan.cases
    }
    powers = (
        replace(gate, case=titles.get(gate.case, gate.case)) for gate in plan.powers
    )
    plan = replace(plan, powers=tuple(powers))
    lines: list[str] = []
    for suite, cases in groupby(plan.cases, key=lambda case: case.suite):
        lines += [suite, *_case_table(list(cases), width), ""]
    for participant in plan.participants:
        lines += [*_participant(participant), ""]
    lines += _time(plan)
    lines += _cost(plan)
    lines += ["", *_gates(plan, width)]
    return [short for line in lines for short in wrapped_line(line, width)]


def wrapped_line(line: str, width: int) -> list[str]:
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


def _about_text(value: Range) -> str:
    """Return a range in words; where it is known about which number it is, that one alone."""
    if value.about is None or value.low == value.high:
        return range_text(value)
    return f"about {number_text(value.about)}"


def range_text(value: Range, digits: int = 0) -> str:
    """Return a range in words: "300", "300 to 6,300", or "about 5,100 (300 to 6,300)"."""
    low, high = number_text(value.low, digits), number_text(value.high, digits)
    between = low if low == high else f"{low} to {high}"
    if value.about is None or low == high:
        return between
    return f"about {number_text(value.about, digits)} ({between})"


def number_text(value: float, digits: int = 0) -> str:
    """Return a number with commas between thousands."""
    return f"{value:,.{digits}f}"


def seconds_text(value: Range) -> str:
    """Return a range of seconds in words, in minutes or hours where these are many."""
    if value.high >= 5400:
        return f"{range_text(value.times(1 / 3600), 1)} hours"
    if value.high >= 180:
        return f"{range_text(value.times(1 / 60), 1)} minutes"
    return f"{range_text(value, 1)} s"


def _case_table(cases: Sequence[PlannedCase], width: int) -> list[str]:
    lines = _table(_case_rows(cases, range_text), UNLIMITED)
    if max(map(cells, lines)) > width:
        # The lines about the models have the ends of the ranges.
        lines = _table(_case_rows(cases, _about_text), width)
    return lines


def _case_rows(
    cases: Sequence[PlannedCase], text: Callable[[Range], str]
) -> list[list[str]]:
    rows = [["slice", "facts", "calls", "different", "prompt tokens"]]
    for case in cases:
        of = case.counts
        rows.append(
            [
                one_line(case.title, 60),
                number_text(case.facts),
                *map(text, (of.calls, of.new, of.read)),
            ]
        )
    if len(cases) > 1:
        totals = [
            reduce(Range.plus, [getattr(case.counts, name) for case in cases])
            for name in ("calls", "new", "read")
        ]
        rows.append(
            ["all", number_text(sum(case.facts for case in cases)), *map(text, totals)]
        )
    return rows


def _participant(who: Participant) -> Iterator[str]:
    counts = who.counts
    times = ", everything twice" if who.passes == 2 else ""
    yield f"{who.role} {who.text}: {range_text(counts.calls)} calls{times}"
    yield f"  after deduplication {range_text(counts.new)}: an equal question is asked once"
    if who.cached is not None:
        cached, new = range_text(who.cached), range_text(counts.new)
        yield f"  {cached} of {new} calls kept from earlier runs, which are not asked again"
    how = "by its own tokenizer" if who.exact else "estimated, 4 characters a token"
    scored = f", and {range_text(counts.scored)} scored" if counts.scored.high else ""
    yield f"  tokens read {range_text(counts.read)}{scored} ({how})"
    if who.fed is not None and who.fed.tokens.high:
        saving = counts.read.plus(counts.scored).high / who.fed.tokens.high
        ways = " and ".join(dict.fromkeys(_WAYS[way] for way in who.fed.sharing_modes))
        yield f"  tokens fed {range_text(who.fed.tokens)}: {saving:.1f} times fewer, {ways}"
        yield f"  different tokens {range_text(who.fed.different)}: no fewer could be fed"
    wrote = ""
    if who.wrote is not None:
        wrote = f", {range_text(who.wrote)} if answers are as long as those seen"
    yield f"  tokens written at most {range_text(counts.written)}{wrote}"
    if who.thoughts and counts.written.high:
        yield f"  thoughts are not counted: at most {who.thoughts:,} tokens before each answer, if it thinks"


def _time(plan: Plan) -> Iterator[str]:
    total = Range(low=plan.probe_seconds, high=plan.probe_seconds)
    measured = []
    unknown = []
    for who in plan.participants:
        if who.costs is None or who.seconds is None:
            unknown.append(who.text)
            continue
        of = who.costs
        total = total.plus(who.seconds).plus(Range(low=of.loading, high=of.loading))
        basis = "asked nothing"
        if of.answers:
            basis = f"timed on a batch of {of.answers} questions ({of.seconds:.1f} s)"
        elif of.rates:
            basis = "is taken to be as fast as in its last run"
        measured.append(f"{who.text} was loaded in {of.loading:.1f} s and {basis}")
    if measured:
        yield f"time: {seconds_text(total)} in one process, by the tokens that a model reads in a second"
        yield from (f"  {line}" for line in measured)
    for text in unknown:
        yield f"time of {text}: unknown; a server is not timed, since its answers may cost money"


def _cost(plan: Plan) -> Iterator[str]:
    for who in plan.participants:
        if who.cost is not None:
            least, most = who.cost
            apart = " but for thoughts" if who.thoughts else ""
            yield (
                f"cost of {who.text}: {least:,.4f} for what is read at least, {most:,.4f} with all that "
                f"may be read and written{apart}, in the currency of the prices"
            )
        elif who.served:
            yield f"cost of {who.text}: unknown without --kb-prices=IN,OUT"


def _gates(plan: Plan, width: int) -> Iterator[str]:
    relative = [gate for gate in plan.powers if GATE_RULES[gate.rule].relative]
    if relative:
        for suite, family in plan.families:
            yield (
                f"cases compared with a baseline: {family} of {suite}; a drop is significant at "
                f"p < {sidak(family):.2g}"
            )
        yield (
            f"smallest drops found with 80 % power, if {DISCORDANT:.0%} of the facts change (rates), or with "
            f"a correlation of {CORRELATION} (other figures):"
        )
        if any(gate.wordings > 1 for gate in relative):
            yield (
                f"where facts are asked in several wordings, the changes of these have a correlation of "
                f"{WORDING_CORRELATION}:"
            )
        rows = [["gate", "n", "allowed", "found from"]]
        rows += _alike(relative)
        yield from _table(rows, width)
        yield from _few_groups(relative)


def _alike(gates: Sequence[GatePower]) -> Iterator[list[str]]:
    """Yield gates that differ in their slice only as one row."""
    rows: dict[tuple[str, ...], list[GatePower]] = {}
    for gate in gates:
        cells = (number_text(gate.n), _allowed(gate), _smallest(gate))
        rows.setdefault((gate.case.partition("[")[0], gate.metric, *cells), []).append(
            gate
        )
    for (_, metric, *shown), group in rows.items():
        yield [f"{metric} in {_cases(group)}", *shown]


def slices_with_few_groups(gates: Sequence[GatePower]) -> dict[str, GatePower]:
    """Return a gate of each slice whose facts count as too few groups, by node id."""
    return {
        gate.case: gate
        for gate in gates
        if gate.groups is not None and gate.groups < FEW_CLUSTERS
    }


def _few_groups(gates: Sequence[GatePower]) -> Iterator[str]:
    """Yield the slices whose facts share so few answers that hardly anything is decided."""
    few = slices_with_few_groups(gates)
    if few:
        yield ""
        yield f"slices whose facts share so few answers that they count as fewer than {FEW_CLUSTERS} groups:"
        for gate in few.values():
            yield f"  {_cases([gate])}: {number_text(gate.n)} facts count as {gate.groups:.1f}"
        yield "  allowed: more different answers, or 'cluster: fact' if the gate is about these facts alone"


def _cases(gates: Sequence[GatePower]) -> str:
    first = one_line(gates[0].case.partition("::")[2], 60)
    return first if len(gates) == 1 else f"{first} and {len(gates) - 1} more"


def _allowed(gate: GatePower) -> str:
    return f"{gate.rule} {gate.bound:g}"


def _smallest(gate: GatePower) -> str:
    if gate.mde is None:
        return gate.note or "none"
    return f"{gate.mde:.3f}" + (f" ({gate.note})" if gate.note else "")
