"""Changes between a baseline and a candidate, fact by fact: facts lost and gained, churn and divergence.

And of MONITOR the facts that moved its figures most, each in the frame or context in which that is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pytest_kbrel import stats
from pytest_kbrel.baselines import BaselineCase
from pytest_kbrel.gates.figures import (
    figures_of,
    good_share,
    is_good,
    pooled,
    values_of,
)
from pytest_kbrel.gates.integrity import is_blank
from pytest_kbrel.gates.measurement import Measured, Pairing
from pytest_kbrel.metrics.base import rate, ratio
from pytest_kbrel.records import (
    Case,
    CaseResult,
    Change,
    Churn,
    Divergence,
    MetricValue,
    MovedCells,
    MovedFact,
    Outcome,
    Table,
    TopTokens,
    record,
)

_KEPT, _ANCHOR = "kept", "anchor"
# The quantiles of the change in anchor probability that reports show.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

# The figures that come from probabilities. The column in which a fact of MONITOR is seen depends on the fact.
_COLUMNS = {"monitor": "", "pfd": "pfd", "ird": "ird", "anchor_prob": "anchor"}


def fact_changes(
    case: Case | None, pairing: Pairing
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return the facts lost (good before, not now) and gained, in the order of fact ids.

    "Good" is the label ``correct``, and ``uninformative`` where no answer exists; of several wordings the
    share that is. Facts that were asked differently are left out. Relations, with their labels, and buckets
    are known where the ``case`` is. The probabilities are means over the tokens of MONITOR's primary anchor
    (0..1); ``None`` in other probes' tables, and where a variant of MONITOR left the fact out.
    """
    facts, named, buckets = (
        ((), (), ()) if case is None else (case.facts, case.relations, case.buckets)
    )
    relations = {fact.id: fact.relation for fact in facts}
    labels = {one.id: one.shown_label for one in named}
    bucket_of = dict(buckets)
    lost: list[Change] = []
    gained: list[Change] = []
    for new, old in pairing.rows:
        before, after = good_share(old, new.expected), good_share(new, new.expected)
        if before != after:
            # Of several wordings the first that was lost, or gained.
            was, now = next(
                both
                for both in zip(old.replies, new.replies, strict=True)
                if is_good(both[before < after], new.expected)
                and not is_good(both[before > after], new.expected)
            )
            change = Change(
                fact_id=new.fact_id,
                question=now.question or new.question,
                expected=new.expected,
                old_answer=was.answer,
                new_answer=now.answer,
                outdated=now.rule if now.label == "outdated" else "",
                relation=relations.get(new.fact_id, ""),
                label=labels.get(relations.get(new.fact_id, ""), ""),
                bucket=bucket_of.get(new.fact_id, ""),
                old_probability=_anchor(pairing.baseline, old),
                new_probability=_anchor(pairing.candidate, new),
            )
            (lost if before > after else gained).append(change)
    return tuple(lost), tuple(gained)


def _anchor(table: Table, row: Outcome) -> float | None:
    values = values_of(table, row)
    return values.get(_ANCHOR) if values.get(_KEPT) else None


def churn_of(
    pairings: Sequence[Pairing], *, another_tokenizer: bool = False
) -> Churn | None:
    """Return how many facts of all pairings have another answer, or another label; ``None`` without facts.

    A fact that several cases ask about counts in each, and in each of its wordings. Answers are compared as
    texts, and where both runs recorded them, those to the first wording by their most probable tokens: not
    with ``another_tokenizer``, whose ids are others.
    """
    replies = [
        both
        for pairing in pairings
        for new, old in pairing.rows
        for both in zip(new.replies, old.replies, strict=True)
    ]
    if not replies:
        return None
    moves = [
        after - before
        for pairing in pairings
        for new, old in pairing.rows
        if (after := _anchor(pairing.candidate, new)) is not None
        and (before := _anchor(pairing.baseline, old)) is not None
    ]
    return Churn(
        facts=len(replies),
        texts=sum(now.answer != was.answer for now, was in replies),
        # A missing reply is no "unsure" that stayed.
        labels=sum(
            now.label != was.label or is_blank(now.answer) > is_blank(was.answer)
            for now, was in replies
        ),
        anchor_moves=tuple(
            zip(QUANTILES, map(float, np.quantile(moves, QUANTILES)), strict=True)
        )
        if moves
        else (),
        divergence=None if another_tokenizer else _divergence(pairings),
    )


def _divergence(pairings: Sequence[Pairing]) -> Divergence | None:
    """Return how far the most probable tokens moved; ``None`` where no fact has any in both runs."""
    cases = [
        {
            new.fact_id: moved
            for new, old in pairing.rows
            if (moved := agreement(old.top, new.top)) is not None
        }
        for pairing in pairings
    ]
    compared = [moved for case in cases for moved in case.values()]
    if not compared:
        return None
    rows = stats.sample(
        [
            [(one.kl, one.agreed, one.positions) for one in case.values()]
            for case in cases
        ],
        [tuple(case) for case in cases],
        [3] * len(cases),
    )
    kl = stats.estimate(rows, _mean_kl, bounds=(0.0, math.inf))
    top1 = stats.estimate(rows, _agreed, bounds=(0.0, 1.0))
    assert kl.value is not None
    assert top1.value is not None
    return Divergence(
        facts=len(compared),
        positions=sum(one.positions for one in compared),
        kl=kl.value,
        top1_agreement=top1.value,
        kl_low=kl.low,
        kl_high=kl.high,
        top1_low=top1.low,
        top1_high=top1.high,
    )


def _mean_kl(parts: stats.Parts) -> stats.Array:
    totals, n = pooled(parts)
    return ratio(totals[..., 0], n)


def _agreed(parts: stats.Parts) -> stats.Array:
    totals, _ = pooled(parts)
    return ratio(totals[..., 1], totals[..., 2])


def change_figures(
    churn: Churn | None, pairings: Sequence[Pairing]
) -> tuple[Measured, ...]:
    """Return the churn as figures that gates may be about: shares of the facts, with Wilson's interval.

    The wordings of a fact are no facts of their own: the interval is that of so many facts. The divergence is
    among them where there is one.
    """
    if churn is None:
        return ()
    facts = sum(len(pairing.baseline.rows) for pairing in pairings)
    figures = []
    for name, changed in (("churn", churn.texts), ("flips", churn.labels)):
        count = changed * facts / churn.facts
        figures.append(_figure(name, facts, count / facts, *stats.wilson(count, facts)))
    if (moved := churn.divergence) is not None:
        kl = moved.kl, moved.kl_low, moved.kl_high
        top1 = moved.top1_agreement, moved.top1_low, moved.top1_high
        figures.append(_figure("kl", moved.facts, *kl))
        figures.append(_figure("top1_agreement", moved.facts, *top1))
    return tuple(figures)


def _figure(
    name: str, n: int, share: float, low: float | None, high: float | None
) -> Measured:
    # They are counted fact by fact, not computed from columns.
    (figure,) = figures_of([rate(name)])
    value = MetricValue(
        name=name, better=figure.better, value=share, low=low, high=high, n=n
    )
    return Measured(figure=figure, value=value)


def without_tokens(pairings: Sequence[Pairing], *, another_tokenizer: bool) -> str:
    """Return why the most probable tokens of two runs cannot be compared; empty where they are."""
    if another_tokenizer:
        return "candidate and baseline have different tokenizers, whose token ids mean different tokens"
    rows = {
        "this run": [row for pairing in pairings for row in pairing.candidate.rows],
        "the baseline": [row for pairing in pairings for row in pairing.baseline.rows],
    }
    lacking = [
        name for name, of in rows.items() if of and not any(row.top for row in of)
    ]
    if not lacking:
        return ""
    verb = "have" if len(lacking) > 1 else "has"
    return (
        f"{' and '.join(lacking)} {verb} no most probable tokens of these answers; allowed: runs with "
        "--kb-top-k=K of models that give them (hf/, vllm/)"
    )


def with_moved_facts(
    result: CaseResult,
    cells: Sequence[MovedCells],
    baseline: BaselineCase | None,
    prompt: Callable[[str, str], str],
) -> CaseResult:
    """Return a decided case of MONITOR with the fact that moved each of its figures most.

    Against a blessed run it is the fact that made the figure worse most; without one, the fact that is worst.
    Facts that were not compared are left out. ``prompt(fact_id, cell)`` is what a fact was asked in a cell.
    """
    seen = {of.fact_id: of for of in cells}
    now = _values(result.table)
    old = {} if baseline is None else _values(baseline.table)
    of_case = result.unmatched
    alone = {*of_case.added, *of_case.waived, *of_case.unanswered}
    facts = [
        fact
        for fact in now
        if fact in seen and fact not in alone and (not old or fact in old)
    ]
    if not facts:
        return result
    terms, anchors = (
        sum((old or now)[fact][column] for fact in facts)
        for column in ("term", "anchor")
    )
    monitor = terms / anchors if anchors else 0.0
    expected = {row.fact_id: row.expected for row in result.table.rows}

    def change(fact: str, column: str) -> float:
        return now[fact][column] - (old[fact][column] if old else 0.0)

    def harm(fact: str, metric: str) -> float:
        """Return by how much the fact makes the figure worse, but for a factor that all facts share."""
        if metric == "monitor":
            return change(fact, "term") - monitor * change(fact, "anchor")
        return (
            -change(fact, "anchor") if metric == "anchor_prob" else change(fact, metric)
        )

    moved = []
    for metric, name in _COLUMNS.items():
        fact = max(facts, key=lambda one: (harm(one, metric), one))
        column = name or max(("pfd", "ird"), key=lambda one: change(fact, one))
        of = seen[fact]
        cell = {"pfd": of.frame, "ird": of.context, "anchor": of.anchor}[column]
        moved.append(
            MovedFact(
                metric=metric,
                fact_id=fact,
                prompt=prompt(fact, cell.cell),
                place=cell,
                expected=expected[fact],
                column=column,
                now=now[fact][column],
                before=old[fact][column] if old else None,
                anchor=of.anchor.probability,
            )
        )
    return replace(result, moved=tuple(moved))


def _values(table: Table) -> dict[str, dict[str, float]]:
    """Return the values of the facts that MONITOR counts, by fact."""
    rows = {row.fact_id: values_of(table, row) for row in table.rows}
    return {
        fact: values
        for fact, values in rows.items()
        if values.get("kept") and "term" in values
    }


# Log-probabilities have three digits: what they leave for the rest is not known more exactly.
_RESOLUTION = 5e-4
# No token of an answer is impossible: servers state -9999 and the like for the logarithm of such a one.
_LEAST = 1e-300


@record
class Agreement:
    """Comparison of two answers: ``agreed`` of the ``positions`` with the same first token, mean ``kl``."""

    positions: int
    agreed: int
    kl: float


def agreement(
    before: Sequence[TopTokens], after: Sequence[TopTokens]
) -> Agreement | None:
    """Compare two answers to one prompt position by position; ``None`` where one has no top tokens.

    Of each position some tokens are known; all others are one token here, the rest. Two distributions so
    made coarser are no farther apart than the whole ones (Kullback and Leibler 1951, theorem 4.1): ``kl`` is a
    lower bound.

    Behind the first position where other tokens were written, the distributions follow different texts and
    are not compared. ``kl`` is the mean of :func:`kl_bound` over the positions.
    """
    divergences, agreed = [], 0
    for old, new in zip(before, after, strict=False):
        if not old or not new:
            break
        divergences.append(kl_bound(old, new))
        if old[0][0] != new[0][0]:
            break
        agreed += 1
    if not divergences:
        return None
    mean = math.fsum(divergences) / len(divergences)
    return Agreement(positions=len(divergences), agreed=agreed, kl=mean)


def kl_bound(before: TopTokens, after: TopTokens) -> float:
    """Return a lower bound of KL(before || after) of one position, in nats; 0 where the two are equal.

    The tokens of ``before`` that ``after`` has not are taken together: there each of them is at most as
    probable as the least probable token of ``after``, and all of them as what its tokens leave.
    """
    old, old_rest = _distribution(before)
    new, new_rest = _distribution(after)
    shared = old.keys() & new.keys()
    kl = math.fsum(
        old[token] * math.log(old[token] / new[token]) for token in sorted(shared)
    )
    missing = math.fsum(old[token] for token in sorted(old.keys() - shared))
    others = new_rest + math.fsum(new[token] for token in sorted(new.keys() - shared))
    if missing:
        most = min((len(old) - len(shared)) * min(new.values()), new_rest)
        # Without that limit the bound is lowest where both parts grow or shrink alike.
        theirs = min(others * missing / (missing + old_rest), most)
        kl += missing * math.log(missing / theirs)
        others -= theirs
    return max(kl + old_rest * math.log(old_rest / others), 0.0)


def _distribution(tokens: TopTokens) -> tuple[dict[int, float], float]:
    """Return the probabilities of the tokens and of the rest, which is never nothing; all add up to 1."""
    known = {token: max(math.exp(nats), _LEAST) for token, nats in tokens}
    total = math.fsum(known.values())
    rest = max(1 - total, _RESOLUTION)
    whole = total + rest
    return {token: value / whole for token, value in known.items()}, rest / whole
