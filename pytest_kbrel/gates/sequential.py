"""Decisions before all facts are asked: the looks at a case, and whether it is decided at one.

Group-sequential: the largest number of facts is fixed beforehand, a case is judged at equal shares of it, and
it stops at the first look at which all its comparisons with the baseline pass or fail by the boundaries of
that look (:mod:`pytest_kbrel.stats.sequential`). They keep the error rates over all looks together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from pytest_kbrel import stats
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.records import Case, CaseResult, GateResult, Looks, reason

# More looks save hardly any questions, and a look needs some facts to tell anything.
MOST_LOOKS = 10
FACTS_PER_LOOK = 10


def planned_looks(case: Case, facts: int) -> tuple[Looks, ...]:
    """Return the looks at a case, at equal shares of ``facts``; one where nothing of it is compared."""
    compared = any(GATE_RULES[gate.rule].relative for gate in case.gates)
    looks = max(min(MOST_LOOKS, facts // FACTS_PER_LOOK), 1) if compared else 1
    return tuple(
        Looks(taken=number, of=looks, asked=-(-facts * number // looks), facts=facts)
        for number in range(1, looks + 1)
    )


def all_decided(gates: Iterable[GateResult]) -> bool:
    """Return True if every gate that compares with the baseline passes or fails, and there is one."""
    verdicts = {gate.verdict for gate in gates if GATE_RULES[gate.rule].relative}
    return bool(verdicts) and verdicts <= {"pass", "fail"}


def is_decided(result: CaseResult) -> bool:
    """Return True if every gate of a case that compares with the baseline passes or fails, and it has one."""
    return all_decided(result.gates)


def with_looks_told(result: CaseResult) -> CaseResult:
    """Return a case that stopped before its last look, with gates whose reasons say so."""
    looks = result.looks
    if looks is None or not looks.early:
        return result
    told = reason(
        "looks",
        how="decided" if is_decided(result) else "undecided",
        asked=looks.asked,
        facts=looks.facts,
        taken=looks.taken,
        of=looks.of,
        level=min(100 * stats.look_level(looks.of, looks.taken), 99.99),
    )
    gates = (
        gate.because(told)
        if GATE_RULES[gate.rule].relative and gate.observed is not None
        else gate
        for gate in result.gates
    )
    return dataclasses.replace(result, gates=tuple(gates))
