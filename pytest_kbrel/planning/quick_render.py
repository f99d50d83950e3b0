"""A quick plan as lines for the terminal: one screen for any number of cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.power import GatePower
from pytest_kbrel.gates.reasons import FEW_CLUSTERS
from pytest_kbrel.models.token_counting import CHARACTERS
from pytest_kbrel.planning.plan import Participant, Plan, PlannedCase
from pytest_kbrel.planning.render import (
    number_text,
    range_text,
    seconds_text,
    slices_with_few_groups,
    wrapped_line,
)
from pytest_kbrel.planning.requests import SAMPLED, Range
from pytest_kbrel.printing import format_table
from pytest_kbrel.reports.formatting import one_line

_WIDTH = 80
_DETAILS = (
    "add -v for each slice, exact tokens, a timed batch and what each gate can find"
)


def quick_plan_lines(plan: Plan, width: int = _WIDTH) -> list[str]:
    """Return the plan on one screen, line by line; no text is wider than 80 columns."""
    width = min(width, _WIDTH)
    exact = all(who.exact for who in plan.participants)
    tokens = "" if exact else f"; a token is taken to be {CHARACTERS} characters"
    lines = [
        *_case_table(plan.cases),
        f"estimated from {SAMPLED} facts of each slice{tokens}",
        "",
    ]
    for participant in plan.participants:
        lines += _participant(participant)
    lines += ["", *_gates(plan.powers), _DETAILS]
    return [short for line in lines for short in wrapped_line(line, width)]


def _case_table(cases: Sequence[PlannedCase]) -> list[str]:
    by_probe: dict[str, list[PlannedCase]] = {}
    for case in cases:
        by_probe.setdefault(case.id.partition("[")[0], []).append(case)
    groups = [*by_probe.items(), *([("all", list(cases))] if len(by_probe) > 1 else [])]
    rows = [["probe", "slices", "facts", "calls", "tokens read"]]
    for name, group in groups:
        sizes = (len(group), sum(case.facts for case in group))
        calls, tokens = _calls(_sum(group, "calls")), _tokens(_sum(group, "read"))
        rows.append([name, *map(number_text, sizes), calls, tokens])
    return format_table(rows)


def _sum(cases: Sequence[PlannedCase], name: str) -> Range:
    ranges: list[Range] = [getattr(case.counts, name) for case in cases]
    return reduce(Range.plus, ranges)


def _calls(calls: Range) -> str:
    """Return a number of calls, to three digits and without its range where a baseline tells it."""
    if calls.about is None or calls.low == calls.high:
        return range_text(calls)
    return f"about {number_text(_rounded(calls.about, 3))}"


def _tokens(tokens: Range) -> str:
    """Return a number of tokens, which is an estimate, to two digits."""
    about = None if tokens.about is None else _rounded(tokens.about)
    return _calls(
        Range(low=_rounded(tokens.low), high=_rounded(tokens.high), about=about)
    )


def _rounded(value: float, digits: int = 2) -> float:
    return float(f"{value:.{digits}g}")


def _participant(who: Participant) -> Iterator[str]:
    times = ", everything twice" if who.passes == 2 else ""
    yield f"{who.role} {one_line(who.text, 60)}: {_calls(who.counts.calls)} calls{times}"
    if who.counts.new != who.counts.calls:
        yield f"  {_calls(who.counts.new)} after deduplication"
    scored = f", {_tokens(who.counts.scored)} scored" if who.counts.scored.high else ""
    written = _tokens(Range(low=who.counts.written.high, high=who.counts.written.high))
    yield f"  tokens: {_tokens(who.counts.read)} read{scored}, at most {written} written"
    if who.thoughts and who.counts.written.high:
        yield f"  thoughts are not counted: at most {who.thoughts:,} tokens before each answer"
    if who.seconds is not None:
        yield f"  time: {seconds_text(who.seconds)} at the rate of its last run, if no answer is cached"
    elif who.served:
        yield "  time: unknown, because a server is not timed"
    else:
        yield "  time: no rate of an earlier run is stored; -v loads it and times a batch"
    if who.cost is not None:
        least, most = who.cost
        apart = " but for thoughts" if who.thoughts else ""
        yield f"  cost: {least:,.4f} for what is read at least, {most:,.4f} at most{apart}"
    elif who.served:
        yield "  cost: unknown without --kb-prices=IN,OUT"


def _gates(powers: Sequence[GatePower]) -> Iterator[str]:
    if not powers:
        return
    relative = [gate for gate in powers if GATE_RULES[gate.rule].relative]
    yield f"gates: {len(powers):,}; {len(relative):,} compare with a baseline"
    if lacking := sum(gate.note == "needs a baseline" for gate in relative):
        yield f"  not judged, because no baseline is given: {lacking:,}"
    if few := len(slices_with_few_groups(relative)):
        yield f"  slices with so few answers that they count as fewer than {FEW_CLUSTERS} groups: {few:,}"
    yield ""
