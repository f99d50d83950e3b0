"""Changes between a baseline and a candidate, fact by fact: facts lost and gained, and the churn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_kbrel import stats
from pytest_kbrel.catalogue.metrics import CHANGE_METRICS
from pytest_kbrel.gates.figures import Figure, good_share, is_good
from pytest_kbrel.gates.measurement import Measured, Pairing, pair
from pytest_kbrel.records import Case, Change, Churn, MetricValue, Outcome, Reply, Table

_KEPT, _ANCHOR = "kept", "anchor"
# The quantiles of the change in anchor probability that reports show.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def fact_changes(
    case: Case | None, table: Table, baseline: Table
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return the facts lost (good before, not now) and gained, in the order of fact ids.

    "Good" is the label ``correct``, and ``uninformative`` where no answer exists; of several wordings the
    share that is. Facts that were asked differently are left out. Relations and buckets are known where the
    ``case`` is. The probabilities are means over the tokens of MONITOR's primary anchor (0..1);
    ``None`` in other probes' tables, and where a variant of MONITOR left the fact out.
    """
    relations = {fact.id: fact.relation for fact in case.facts} if case is not None else {}
    buckets = dict(case.buckets) if case is not None else {}
    lost: list[Change] = []
    gained: list[Change] = []
    pairing = pair(table, baseline)
    for new, old in zip(pairing.candidate.rows, pairing.baseline.rows, strict=True):
        before, after = good_share(old, new.expected), good_share(new, new.expected)
        if before != after:
            was, now = _first_changed(old, new, is_lost=before > after)
            change = Change(
                fact_id=new.fact_id,
                question=now.question or new.question,
                expected=new.expected,
                old_answer=was.answer,
                new_answer=now.answer,
                relation=relations.get(new.fact_id, ""),
                bucket=buckets.get(new.fact_id, ""),
                old_probability=_anchor(pairing.baseline.columns, old),
                new_probability=_anchor(pairing.candidate.columns, new),
            )
            (lost if before > after else gained).append(change)
    return tuple(lost), tuple(gained)


def _first_changed(old: Outcome, new: Outcome, *, is_lost: bool) -> tuple[Reply, Reply]:
    """Return the two answers to the first wording that was lost, or gained."""
    return next(
        (was, now)
        for was, now in zip(old.replies, new.replies, strict=True)
        if is_good(was, new.expected) == is_lost != is_good(now, new.expected)
    )


def _anchor(columns: tuple[str, ...], row: Outcome) -> float | None:
    values = dict(zip(columns, row.values, strict=True))
    return values.get(_ANCHOR) if values.get(_KEPT) else None


def churn_of(pairings: Sequence[Pairing]) -> Churn | None:
    """Return how many facts of all pairings have another answer, or another label; ``None`` without facts.

    A fact that several cases ask about counts in each, and in each of its wordings. Answers are compared as
    texts.
    """
    rows = [
        (new, old, pairing)
        for pairing in pairings
        for new, old in zip(pairing.candidate.rows, pairing.baseline.rows, strict=True)
    ]
    replies = [both for new, old, _ in rows for both in zip(new.replies, old.replies, strict=True)]
    if not rows:
        return None
    moves = [
        after - before
        for new, old, pairing in rows
        if (after := _anchor(pairing.candidate.columns, new)) is not None
        and (before := _anchor(pairing.baseline.columns, old)) is not None
    ]
    return Churn(
        facts=len(replies),
        texts=sum(now.answer != was.answer for now, was in replies),
        labels=sum(now.label != was.label for now, was in replies),
        anchor_moves=tuple(zip(QUANTILES, map(float, np.quantile(moves, QUANTILES)), strict=True))
        if moves
        else (),
    )


def change_figures(churn: Churn | None, pairings: Sequence[Pairing]) -> tuple[Measured, ...]:
    """Return the churn as figures that gates may be about: shares of the facts, with Wilson's interval.

    The wordings of a fact are no facts of their own: the interval is that of so many facts.
    """
    if churn is None:
        return ()
    facts = sum(len(pairing.baseline.rows) for pairing in pairings)
    return tuple(
        Measured(
            figure=Figure(name=name, better="lower", columns=(), statistic=_none, rate=True),
            value=_share(name, count * facts / churn.facts, facts),
        )
        for name, count in zip(CHANGE_METRICS, (churn.texts, churn.labels), strict=True)
    )


def _share(name: str, count: float, facts: int) -> MetricValue:
    low, high = stats.wilson(count, facts)
    return MetricValue(name=name, better="lower", value=count / facts, low=low, high=high, n=facts)


def _none(parts: stats.Parts) -> stats.Array:
    raise NotImplementedError("a share of changed answers is counted, not computed from columns")
