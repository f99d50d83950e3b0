"""A plan as lines for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import groupby

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.power import CORRELATION, DISCORDANT, GatePower
from pytest_kbrel.planning.plan import Participant, Plan, PlannedCase
from pytest_kbrel.planning.requests import Range
from pytest_kbrel.printing import format_table
from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.stats import sidak

_WAYS = {
    "packed": "in packed rows behind shared prefixes",
    "prefix": "behind shared prefixes",
    "plain": "each question whole",
}


def plan_lines(plan: Plan) -> list[str]:
    """Return the whole plan, line by line."""
    lines: list[str] = []
    for suite, cases in groupby(plan.cases, key=lambda case: case.suite):
        lines += [suite, *_case_table(list(cases)), ""]
    for participant in plan.participants:
        lines += [*_participant(participant), ""]
    lines += _time(plan)
    lines += _cost(plan)
    lines += ["", *_gates(plan)]
    return lines


def range_text(value: Range, digits: int = 0) -> str:
    """Return a range in words: "300", "300 to 6,300", or "about 5,100 (300 to 6,300)"."""
    low, high = _number(value.low, digits), _number(value.high, digits)
    between = low if low == high else f"{low} to {high}"
    if value.about is None or low == high:
        return between
    return f"about {_number(value.about, digits)} ({between})"


def _number(value: float, digits: int = 0) -> str:
    return f"{value:,.{digits}f}"


def _seconds(value: Range) -> str:
    if value.high >= 5400:
        return f"{range_text(value.times(1 / 3600), 1)} hours"
    if value.high >= 180:
        return f"{range_text(value.times(1 / 60), 1)} minutes"
    return f"{range_text(value, 1)} s"


def _case_table(cases: Sequence[PlannedCase]) -> list[str]:
    rows = [["slice", "facts", "calls", "different", "prompt tokens"]]
    for case in cases:
        of = case.counts
        rows.append(
            [one_line(case.id, 60), _number(case.facts), *map(range_text, (of.calls, of.new, of.read))]
        )
    if len(cases) > 1:
        totals = [
            reduce(Range.plus, [getattr(case.counts, name) for case in cases])
            for name in ("calls", "new", "read")
        ]
        rows.append(["all", _number(sum(case.facts for case in cases)), *map(range_text, totals)])
    return format_table(rows)


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
        yield f"time: {_seconds(total)} in one process, by the tokens that a model reads in a second"
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


def _gates(plan: Plan) -> Iterator[str]:
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
        rows = [["gate", "n", "allowed", "found from"]]
        rows += [[*named, _number(n), allowed, smallest] for named, n, allowed, smallest in _alike(relative)]
        yield from format_table(rows)
    never = [gate for gate in plan.powers if gate.never]
    if never:
        yield ""
        yield f"gates that can never fail in this run ({len(never)}):"
        for why, gates in _by(never, lambda gate: gate.never):
            yield f"  {why}:"
            for name, group in _by(gates, lambda gate: f"{gate.metric} {_allowed(gate)}"):
                yield f"    {name} in {_cases(group)}"


def _by(gates: Sequence[GatePower], key: Callable[[GatePower], str]) -> Iterator[tuple[str, list[GatePower]]]:
    groups: dict[str, list[GatePower]] = {}
    for gate in gates:
        groups.setdefault(key(gate), []).append(gate)
    yield from groups.items()


def _alike(gates: Sequence[GatePower]) -> Iterator[tuple[list[str], int, str, str]]:
    """Yield gates that differ in their slice only as one row."""
    rows: dict[tuple[str, str, int, str, str], list[GatePower]] = {}
    for gate in gates:
        key = (gate.case.partition("[")[0], gate.metric, gate.n, _allowed(gate), _smallest(gate))
        rows.setdefault(key, []).append(gate)
    for (_, metric, n, allowed, smallest), group in rows.items():
        yield [f"{metric} in {_cases(group)}"], n, allowed, smallest


def _cases(gates: Sequence[GatePower]) -> str:
    first = one_line(gates[0].case.partition("::")[2], 60)
    return first if len(gates) == 1 else f"{first} and {len(gates) - 1} more"


def _allowed(gate: GatePower) -> str:
    return f"{gate.rule} {gate.bound:g}"


def _smallest(gate: GatePower) -> str:
    if gate.mde is None:
        return gate.note or "none"
    return f"{gate.mde:.3f}" + (f" ({gate.note})" if gate.note else "")
