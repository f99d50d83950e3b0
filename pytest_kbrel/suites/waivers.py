"""Waivers of suite files: known losses that a named owner accepts until a day."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pytest_kbrel.bounds import shown
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.located import Node, unknown
from pytest_kbrel.records import AggregateCase, Case, Waiver

WAIVER_KEYS = ("fact", "slice", "owner", "reason", "expires")
_ALWAYS = WAIVER_KEYS[2:]


def read_waivers(node: Node) -> tuple[Waiver, ...]:
    """Read the list under ``waivers``; :func:`with_waivers` checks that these facts and slices exist."""
    waivers: dict[tuple[str, str], Waiver] = {}
    for item in node.items("waivers", "waivers"):
        keys = item.keys("a waiver", WAIVER_KEYS, required=_ALWAYS)
        named = [key for key in WAIVER_KEYS[:2] if key in keys]
        if len(named) != 1:
            listed = ", ".join(keys)
            raise item.error(
                f"a waiver is of one 'fact' or one 'slice', found: {listed}; needed: one of both"
            )
        (kind,) = named
        what = keys[kind].node.text(f"{kind} of a waiver")
        if (kind, what) in waivers:
            first = waivers[kind, what].line
            raise item.error(f"{kind} {shown(what)} stands twice in waivers; the first is on line {first}")
        waivers[kind, what] = Waiver(
            owner=keys["owner"].node.text("owner of a waiver"),
            reason=keys["reason"].node.text("reason of a waiver"),
            expires=keys["expires"].node.date("expires of a waiver").isoformat(),
            fact=what if kind == "fact" else "",
            case=what if kind == "slice" else "",
            line=item.line,
        )
    return tuple(waivers.values())


def with_waivers(
    waivers: Iterable[Waiver],
    cases: Sequence[Case],
    aggregates: Sequence[AggregateCase],
    *,
    path: Path,
    today: datetime.date,
    facts: Callable[[], set[str]],
) -> tuple[tuple[Case, ...], tuple[AggregateCase, ...]]:
    """Return the cases with their waivers: their own, and those of the facts they ask.

    ``facts`` gives the ids of all facts that the suite may ask, also of those that a limit leaves out today.
    Raises ``SuiteError`` on a waiver of what the suite does not have.
    """
    dated = [
        dataclasses.replace(waiver, expired=today > datetime.date.fromisoformat(waiver.expires))
        for waiver in waivers
    ]
    _check(dated, [*(case.id for case in cases), *(case.id for case in aggregates)], path, facts)
    if not dated:
        return tuple(cases), tuple(aggregates)
    made = []
    for case in cases:
        ids = {fact.id for fact in case.facts}
        own = tuple(waiver for waiver in dated if waiver.case == case.id or waiver.fact in ids)
        made.append(dataclasses.replace(case, waivers=own))
    return tuple(made), tuple(
        dataclasses.replace(of, waivers=tuple(waiver for waiver in dated if waiver.case == of.id))
        for of in aggregates
    )


def _check(waivers: Iterable[Waiver], ids: Sequence[str], path: Path, facts: Callable[[], set[str]]) -> None:
    fact_ids: set[str] | None = None
    for waiver in waivers:
        if waiver.case and waiver.case not in ids:
            raise SuiteError(unknown("slice", waiver.case, ids, where="waivers"), path, waiver.line)
        if waiver.fact:
            fact_ids = facts() if fact_ids is None else fact_ids
            if waiver.fact not in fact_ids:
                raise SuiteError(
                    f"unknown fact {shown(waiver.fact)} in waivers; allowed: the id of one of the suite's "
                    f"{len(fact_ids)} facts{nearest(waiver.fact, sorted(fact_ids))}",
                    path,
                    waiver.line,
                )
