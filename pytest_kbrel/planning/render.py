"""A plan as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.evaluation.stub_run import SAMPLED
from pytest_kbrel.models.token_counting import CHARACTERS
from pytest_kbrel.planning.gate_power import DISCORDANT, GatePower
from pytest_kbrel.planning.plan import Plan, PlannedModel, Range
from pytest_kbrel.printing import format_table
from pytest_kbrel.records import Case
from pytest_kbrel.reports.cases import case_title
from pytest_kbrel.reports.formatting import count, one_line
from pytest_kbrel.stats import sidak

_DETAILS = "add -v for each slice, exact tokens and what each gate can find"


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the plan, line by line; a sampled one is on one screen for any number of cases."""
    if plan.sampled:
        probes: dict[str, list[Case]] = {}
        for case in plan.cases:
            probes.setdefault(case.probe, []).append(case)
        groups = [(f"{probe} ({len(of):,})", of) for probe, of in probes.items()]
        yield from _case_table("probe (slices)", groups, plan.models[0])
        exact = all(model.counter.exact for model in plan.models)
        tokens = "" if exact else f"; a token is taken to be {CHARACTERS} characters"
        yield f"estimated from {SAMPLED} facts of each slice{tokens}"
        yield ""
    else:
        for suite, cases in groupby(plan.cases, key=lambda case: case.suite):
            yield suite
            groups = [(case_title(case), [case]) for case in cases]
            yield from _case_table("slice", groups, plan.models[0])
            yield ""
    for model in plan.models:
        yield from _model(model, plan)
    yield ""
    yield from _gates(plan)


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}"


def _range(values: Range, digits: int = 0) -> str:
    """Return a range in words: "300" or "300 to 6,300"."""
    low, high = _number(min(values), digits), _number(max(values), digits)
    return low if low == high else f"{low} to {high}"


def _seconds(values: Range) -> str:
    """Return a range of seconds in words, in minutes or hours where these are many."""
    if max(values) >= 5400:
        return f"{_range(values / 3600, 1)} hours"
    if max(values) >= 180:
        return f"{_range(values / 60, 1)} minutes"
    return f"{_range(values, 1)} s"


def _case_table(
    title: str, groups: list[tuple[str, list[Case]]], model: PlannedModel
) -> list[str]:
    if len(groups) > 1:
        groups = [*groups, ("all", [case for _, group in groups for case in group])]
    rows = [(title, "facts", "calls", "tokens read")]
    for name, cases in groups:
        facts, counts = sum(len(case.facts) for case in cases), model.counts(cases)
        cells = _number(facts), _range(counts.calls), _range(counts.read)
        rows.append((one_line(name, 60), *cells))
    return format_table(rows)


def _model(model: PlannedModel, plan: Plan) -> Iterator[str]:
    counts = model.counts(plan.cases)
    times = ", everything twice" if model.passes == 2 else ""
    yield f"{model.role} {one_line(model.text, 60)}: {_range(counts.calls)} calls{times}"
    exact = model.counter.exact or plan.sampled
    how = "" if exact else f", {CHARACTERS} characters a token"
    scored = f", {_range(counts.scored)} scored" if counts.scored.any() else ""
    written = f"at most {_number(max(counts.written))} written"
    yield f"  tokens: {_range(counts.read)} read{scored}, {written}{how}"
    thoughts = model.counter.thoughts
    if thoughts and counts.written.any():
        yield f"  thoughts are not counted: at most {thoughts:,} tokens before each answer"
    seconds, cost = model.seconds(counts), model.cost(counts)
    if model.is_served:
        yield "  time: unknown, because a server is not timed"
    elif seconds is None:
        yield "  time: unknown, because no run of it has stored a rate"
    else:
        yield f"  time: {_seconds(seconds)} at the rate of its last run, if no answer is cached"
    if cost is not None:
        apart = " but for thoughts" if thoughts else ""
        yield f"  cost: {cost[0]:,.4f} for what is read at least, {cost[1]:,.4f} at most{apart}"
    elif model.is_served:
        yield "  cost: unknown without --kb-prices=IN,OUT"


def _gates(plan: Plan) -> Iterator[str]:
    relative = [gate for gate in plan.powers if GATE_RULES[gate.rule].relative]
    if plan.powers:
        yield f"gates: {len(plan.powers):,}; {len(relative):,} compare with a baseline"
    if relative and not plan.has_baseline:
        yield f"  not judged, because no baseline is given: {len(relative):,}"
    if plan.sampled:
        yield from ("", _DETAILS)
        return
    for suite, family in plan.families:
        if family:
            significance = f"a drop is significant at p < {sidak(family):.2g}"
            yield f"cases compared with a baseline: {family} of {suite}; {significance}"
    planned = [gate for gate in relative if gate.is_planned]
    if planned:
        yield f"smallest drops found with 80 % power, if {DISCORDANT:.0%} of the facts change:"
        titles = {f"{case.suite}::{case.id}": case_title(case) for case in plan.cases}
        yield from format_table([_HEADER, *_rows(planned, titles)])
    if others := len(relative) - len(planned):
        yield f"not planned, because what they compare is no rate of facts: {count(others, 'gate')}"


_HEADER = ("gate", "n", "allowed", "found from")


def _rows(
    gates: Sequence[GatePower], titles: dict[str, str]
) -> Iterator[tuple[str, ...]]:
    # Gates that differ in their slice only are one row.
    alike: dict[tuple[str, ...], list[GatePower]] = {}
    for gate in gates:
        drop = "no drop, of so few" if gate.drop is None else f"{gate.drop:.3f}"
        shown = (_number(gate.n), f"{gate.rule} {gate.bound:g}", drop)
        key = gate.case.partition("[")[0], gate.metric, *shown
        alike.setdefault(key, []).append(gate)
    for (_, metric, *cells), group in alike.items():
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        case = group[0].case
        title = one_line(titles.get(case, case.partition("::")[2]), 60)
        yield f"{metric} in {title}{more}", *cells
