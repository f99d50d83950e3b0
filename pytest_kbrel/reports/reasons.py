"""Reasons of a verdict: a sentence for each gate that did not pass, and which cases carried the verdict."""

from __future__ import annotations

import re

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.records import CaseResult, GateResult, Run
from pytest_kbrel.reports import phrases
from pytest_kbrel.reports.formatting import (
    bound,
    count,
    interval,
    is_blessed,
    metric,
    metric_title,
    number,
    one_line,
)

_LONGEST = 300
# Sums of floats do not end on the last digit.
_SLACK = 1e-9
_DIGITS = re.compile(r"([0-9]{1,18})")

Natural = tuple[tuple[int, int, str], ...]


def gate_reason(case: CaseResult, gate: GateResult) -> str:
    """Return one short sentence on what was observed and allowed: ``UR 0.945 to 0.205, allowed 0.05``.

    Where nothing was observed, it is the gate's own reason. A gate that failed though less was observed than
    is allowed says what is sure: ``UR 0.867 to 0.000, allowed 0.9, surely above 0.45``.
    """
    value, rule, name = (
        metric(case, gate.metric),
        GATE_RULES[gate.rule],
        metric_title(gate.metric),
    )
    if value is None or value.value is None or gate.observed is None:
        return f"{name}: {one_line(gate.reason, _LONGEST)}"
    limit = bound(gate.bound)
    if not rule.relative or value.baseline is None:
        return f"{name} {phrases.observed(gate)}, allowed {phrases.allowed(gate, '')}"
    moved = f"{name} {number(value.baseline)} to {number(value.value)}"
    if rule.ratio:
        moved, limit = (
            f"{moved}, {number(gate.observed)} of it recovered",
            f"at least {limit}",
        )
    # An interval with one end is left out.
    if gate.verdict == "inconclusive" and (gate.low is None) == (gate.high is None):
        ends = interval(gate.low, gate.high)
        seen = f"{rule.observed} {ends}" if ends else phrases.no_interval(value)
        moved = f"{moved}, {seen}"
    if gate.verdict == "fail" and gate.beyond is not None and _excess(gate) <= _SLACK:
        limit += f", surely {phrases.side(gate)} {bound(gate.beyond)}"
    return f"{moved}, allowed {limit}"


def case_reason(case: CaseResult) -> str:
    """Return in one sentence why a case has its verdict; empty where it passed.

    The gate that carries the verdict is told, and how many more have the same one.
    """
    if case.verdict == "pass":
        return ""
    # Where the responses are not sound, all gates are unjudged for the reason that the errors say.
    if case.verdict == "invalid" and case.errors:
        return one_line(case.errors[0], _LONGEST)
    gates = _carrying(case)
    if not gates:
        told = (*phrases.expired_waivers(case), *case.errors, *case.notes)
        why = (*told, "no gate was judged")
        return phrases.unmeasured_note(case) or one_line(why[0], _LONGEST)
    more = f"; also {count(len(gates) - 1, 'more gate')}" if gates[1:] else ""
    return gate_reason(case, gates[0]) + more


def told(case: CaseResult) -> str:
    """Return :func:`case_reason` with what is seen beside the figure, and how many facts would decide."""
    gate, parts = told_gate(case), [case_reason(case)]
    if gate is not None:
        parts.append(phrases.beside(case, gate.metric))
        parts.append(needed(gate) if case.verdict == "inconclusive" else "")
    return "; ".join(filter(None, parts))


def _carrying(case: CaseResult) -> list[GateResult]:
    """Return the gates with the verdict of a case, the furthest off first."""
    gates = [gate for gate in case.gates if gate.verdict == case.verdict]
    return sorted(gates, key=lambda gate: -_excess(gate))


def told_gate(case: CaseResult) -> GateResult | None:
    """Return the gate that :func:`case_reason` tells: the furthest off of those with its verdict."""
    return next(iter(_carrying(case)), None)


def needed(gate: GateResult) -> str:
    """Return how many facts would decide a gate; empty where that is not known."""
    if gate.facts_needed is None:
        return ""
    if not gate.facts_needed:
        return "no number of facts below a million would decide"
    return f"about {gate.facts_needed:,} facts would decide"


def deciding(run: Run) -> tuple[CaseResult, ...]:
    """Return the cases that did not pass, in the order in which a reader should look at them.

    Where no blessed run was asked for, a case without one is settled, and so is one that a shard leaves to
    the run that joins all. Those that a waiver excuses follow the others. Of one verdict, a slice precedes
    figures over several, and the case that missed its bound by more precedes the others.
    """
    settled = {"pass", "not run", "" if is_blessed(run) else "no baseline"}
    settled.add("inconclusive" if run.shard else "")
    unsettled = (case for case in run.cases if case.verdict not in settled)
    return tuple(
        sorted(unsettled, key=lambda case: (phrases.is_waived(case, run), *_rank(case)))
    )


def failed_first(case: CaseResult) -> tuple[int, Natural]:
    """Return a key that sorts cases by verdict, the worst first, then by name, P2 before P10."""
    return (SEVERITY.index(case.verdict), natural(case.nodeid))


def natural(text: str) -> Natural:
    """Return a key that sorts names with their numbers by value."""
    parts = _DIGITS.split(text)
    # Every second part is one of digits.
    return tuple(
        (0, int(part), "") if at % 2 else (1, 0, part.casefold())
        for at, part in enumerate(parts)
    )


def _rank(case: CaseResult) -> tuple[object, ...]:
    gate = told_gate(case)
    missed = _excess(gate) if gate is not None else 0.0
    return (SEVERITY.index(case.verdict), case.aggregate, -missed, natural(case.nodeid))


def _excess(gate: GateResult) -> float:
    """Return how far the observed value lies beyond the bound."""
    if gate.observed is None:
        return 0.0
    rule = GATE_RULES[gate.rule]
    upwards = rule.allows_more > 0 if rule.relative else rule.limit == "at most"
    return gate.observed - gate.bound if upwards else gate.bound - gate.observed
