"""Outcome tables to metric values: pairing with the baseline, intervals and differences."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pytest_kbrel import stats
from pytest_kbrel.baselines import Asked, Differing, PublishedCase, PublishedFigure
from pytest_kbrel.gates.figures import Figure
from pytest_kbrel.gates.integrity import is_blank
from pytest_kbrel.metrics.calibration import PROBABILITIES
from pytest_kbrel.records import (
    Judgement,
    Looks,
    MetricValue,
    Outcome,
    Table,
    record,
)

IDENTICAL = "no outcome changed"
# The same model on another processor: texts and verdicts are equal, probabilities this close.
_SAME = 1e-4
# Rounding (another processor, another matrix library) moves a probability by about 1e-7, and would otherwise
# count as a change of every fact. No gate is about the fifth digit of one fact, and all facts together then
# move a mean by no more. Smaller than _SAME, for this also decides what is said where other facts changed.
_ROUNDING = 1e-5
# MONITOR divides by the sum of these, so what is nothing there shrinks with them, as their rounding does.
_DIVISOR = "anchor"
Contrast = Callable[[float], stats.Difference]
# The chance that a 95 % interval misses the truth at one end.
PASS_ALPHA = (1 - stats.LEVEL) / 2
# Why nothing is compared with a baseline: the verdict of gates that would, and the reason.
Obstacle = tuple[Judgement, str]


@record
class Pairing:
    """The rows of a candidate's and a baseline's table that belong together, in the order of fact ids.

    Not compared are ``differing`` (not asked the same way), ``added`` (not in the baseline's table) and
    ``unasked`` facts (not in the candidate's). ``asked`` are the digests of all common facts,
    ``settings`` those that differ: (name, candidate's, baseline's). ``exact``: no difference is rounding.
    """

    candidate: Table
    baseline: Table
    differing: tuple[str, ...]
    added: tuple[str, ...]
    unasked: tuple[str, ...]
    asked: tuple[Asked, ...] = ()
    settings: tuple[Differing, ...] = ()
    exact: bool = False

    @property
    def rows(self) -> list[tuple[Outcome, Outcome]]:
        """The outcomes that are compared, each a candidate's and a baseline's."""
        return list(zip(self.candidate.rows, self.baseline.rows, strict=True))


@record
class Measured:
    """One figure measured; ``difference`` is that from the baseline, where there is one to compare with.

    ``unasked`` counts the facts of the baseline's figure that the candidate was not asked. ``published`` is
    what a paper prints of the figure, where that is the baseline. ``identical``: whatever was measured of
    enough facts is as in the baseline. ``alpha`` is the level at which an alarm is raised. ``looks`` say how
    far a case was asked that may stop early: its intervals are then of the level of its look.
    ``contrast(share)`` compares the candidate with a share of the baseline, paired if it can be. Its estimate
    is candidate - share * baseline where higher is better, baseline - share * candidate where lower is: at
    least 0 when the candidate recovers that share.
    """

    figure: Figure
    value: MetricValue
    difference: stats.Difference | None = None
    unasked: int = 0
    identical: bool = False
    alpha: float = stats.FAMILY_LEVEL
    published: PublishedFigure | None = None
    looks: Looks | None = None
    contrast: Contrast = lambda _: stats.Difference(estimate=stats.Estimate())

    def p_over_looks(self, p: float | None) -> float | None:
        """Return a p-value adjusted for the looks that the case may have."""
        if p is None or self.looks is None:
            return p
        return stats.sequential_p(p, self.looks.of, self.looks.taken)

    @property
    def drop_ends(self) -> tuple[float | None, float | None]:
        """The 95 % interval of the drop, the better end first."""
        low, high = self.value.delta_low, self.value.delta_high
        if self.value.better == "lower":
            return low, high
        return None if high is None else -high, None if low is None else -low

    @property
    def nothing_lost(self) -> bool:
        """Whether none of at least ten facts made the figure worse: a rule, and no proof that none would."""
        return self.may_pass_unlost and (
            self.identical or self.value.paired >= stats.FEWEST_UNLOST
        )

    @property
    def may_pass_unlost(self) -> bool:
        """Whether no fact made the figure worse, so that ten such facts would be enough."""
        if self.looks is not None and self.looks.early:
            # Before the last look only its boundaries may decide.
            return False
        return self.identical or (
            self.difference is not None
            and self.published is None
            and self.value.delta is not None
            and not self.difference.worse
        )


@record
class Measurement:
    """Several figures measured over the same tables. ``paper`` is the one compared with, where it is one.

    ``comparisons`` is the number of cases with relative gates in the suite, and ``obstacle`` why nothing can be
    compared with a baseline. ``changes`` are shares of changed answers, which gates may be about as well;
    ``no_tokens`` is why the most probable tokens are not among them.
    """

    figures: tuple[Measured, ...]
    pairings: tuple[Pairing, ...] = ()
    paper: str = ""
    comparisons: int = 1
    obstacle: Obstacle | None = None
    changes: tuple[Measured, ...] = ()
    no_tokens: str = ""

    @property
    def values(self) -> tuple[MetricValue, ...]:
        """The metric values, in the order of the figures."""
        return tuple(measured.value for measured in self.figures)


def comparison_of(
    figure: Figure, pairings: Sequence[Pairing], looks: Looks | None = None
) -> stats.Comparison:
    """Return what is compared of a figure over some pairings."""
    after = [pairing.candidate for pairing in pairings]
    before = [pairing.baseline for pairing in pairings]
    clusters: dict[str, str] = {}
    for member, _ in figure.columns:
        # A fact that several cases ask about is in one cluster: that of the first which has any for it.
        clusters = {
            row.fact_id: row.cluster for row in after[member].rows if row.cluster
        } | clusters
    return stats.Comparison(
        figure.sample(after),
        figure.sample(before),
        figure.statistic,
        better=figure.better,
        bounds=figure.bounds,
        rate=figure.rate,
        facts=figure.weight(before),
        clusters=clusters,
        case_weights=figure.case_weights(after),
        # Its interval misses the truth at either end with a chance of 2.5 %.
        level=stats.LEVEL
        if looks is None
        else stats.look_level(looks.of, looks.taken, PASS_ALPHA),
    )


def measure_figures(
    figures: Sequence[Figure],
    tables: Sequence[Table],
    pairings: Sequence[Pairing],
    *,
    comparisons: int = 1,
    published: PublishedCase | None = None,
    looks: Looks | None = None,
) -> Measurement:
    """Measure ``figures`` over one table a member; ``pairings`` is empty or has one a member.

    ``comparisons`` is the number of cases that compare. ``published`` is what a paper prints of these
    figures; nothing is paired then. ``looks`` are those of a case that may stop early.
    """
    printed = {} if published is None else {of.name: of for of in published.figures}
    before = [pairing.baseline for pairing in pairings]
    unchanged = list(map(_is_unchanged, pairings))
    measured = []
    for figure in figures:
        own = figure.estimate(tables)
        value = MetricValue(
            name=figure.name,
            better=figure.better,
            value=own.value,
            low=own.low,
            high=own.high,
            n=figure.count(tables),
            note=figure.undefined if own.value is None else own.note,
        )
        one = Measured(
            figure=figure, value=value, alpha=stats.sidak(comparisons), looks=looks
        )
        if figure.name in printed:
            one = _unpaired(one, own, printed[figure.name])
        elif pairings and figure.is_in(before):
            one = _paired(one, pairings, unchanged)
        measured.append(one)
    return Measurement(
        figures=tuple(measured),
        pairings=tuple(pairings),
        comparisons=comparisons,
    )


def pair(
    candidate: Table,
    baseline: Table,
    settings: Sequence[Differing] = (),
    *,
    exact: bool = False,
) -> Pairing:
    """Pair two tables by fact id, leaving out facts of one table only and those asked in another way.

    ``settings`` are those of the two cases that differ. A number of the candidate's that differs from the
    baseline's by rounding only is the baseline's in the pairing: all that is made of it calls it unchanged.
    With ``exact`` none differs by rounding only: numbers that are no probabilities may be of any size.
    """
    if "outdated" in candidate.columns and "outdated" not in baseline.columns:
        # Blessed before any fact of the suite had former objects: those that have are asked in another way.
        rows = (replace(row, values=(*row.values, 0.0)) for row in baseline.rows)
        baseline = Table(columns=(*baseline.columns, "outdated"), rows=tuple(rows))
    ours = {row.fact_id: row for row in candidate.rows}
    theirs = {row.fact_id: row for row in baseline.rows}
    asked = tuple(
        (fact, ours[fact].prompt_digest, theirs[fact].prompt_digest)
        for fact in sorted(ours.keys() & theirs.keys())
    )
    same = [fact for fact, mine, given in asked if mine == given]
    pairs = [(ours[fact], theirs[fact]) for fact in same]
    old = replace(baseline, rows=tuple(_with_known_texts(b, a) for a, b in pairs))
    new = replace(candidate, rows=tuple(_with_known_texts(a, b) for a, b in pairs))
    return Pairing(
        candidate=new if exact else _rounded(new, old),
        baseline=old,
        differing=tuple(fact for fact, mine, given in asked if mine != given),
        added=tuple(sorted(ours.keys() - theirs.keys())),
        unasked=tuple(sorted(theirs.keys() - ours.keys())),
        asked=asked,
        settings=tuple(settings),
        exact=exact,
    )


_WITHHELD = "(withheld, sha256 "


def withhold(row: Outcome) -> Outcome:
    """Return an outcome with digests in place of its answers' texts, for packs; empty ones stay."""

    def text(answer: str) -> str:
        content = f"{row.fact_id}\0{answer}".encode("utf-8", "surrogatepass")
        short = hashlib.sha256(content).hexdigest()[:16]
        return answer if is_blank(answer) else f"{_WITHHELD}{short})"

    others = tuple(replace(one, answer=text(one.answer)) for one in row.others)
    return replace(row, answer=text(row.answer), others=others, top=())


def is_withheld(row: Outcome) -> bool:
    """Return True if a digest stands for one of an outcome's answers."""
    return any(reply.answer.startswith(_WITHHELD) for reply in row.replies)


def _with_known_texts(row: Outcome, other: Outcome) -> Outcome:
    """Return an outcome with the withheld answers that another model gives to the fact as well."""
    if not is_withheld(row):
        return row
    pairs = zip(withhold(other).replies, other.replies, strict=True)
    texts = {hidden.answer: reply.answer for hidden, reply in pairs}
    others = tuple(
        replace(one, answer=texts.get(one.answer, one.answer)) for one in row.others
    )
    return replace(row, answer=texts.get(row.answer, row.answer), others=others)


def _rounded(new: Table, old: Table) -> Table:
    """Return ``new`` with the values of ``old``, row by row, where they differ by rounding only."""
    indices = {name: index for index, name in enumerate(old.columns)}
    order = [indices.get(name) for name in new.columns]
    least = _ROUNDING
    if old.rows and (divisor := indices.get(_DIVISOR)) is not None:
        least *= min(1.0, sum(row.values[divisor] for row in old.rows) / len(old.rows))

    def row(ours: Outcome, theirs: Outcome) -> Outcome:
        before = [None if index is None else theirs.values[index] for index in order]
        values = tuple(
            value if old is None or not abs(value - old) <= least else old
            for value, old in zip(ours.values, before, strict=True)
        )
        return ours if values == ours.values else replace(ours, values=values)

    return replace(new, rows=tuple(map(row, new.rows, old.rows)))


def _compared(
    measured: Measured, before: float | None, difference: stats.Difference, **more: Any
) -> Measured:
    """Return a figure with its difference from the baseline, and the drop that would be found.

    ``more`` are other fields of its value.
    """
    delta, drop = difference.estimate, stats.detectable(difference, 0.0, measured.alpha)
    value = replace(
        measured.value,
        baseline=before,
        delta=delta.value,
        delta_low=delta.low,
        delta_high=delta.high,
        p=difference.p,
        mde=None if drop is None or drop > measured.figure.span else drop,
        **more,
    )
    return replace(measured, value=value, difference=difference)


def _unpaired(
    measured: Measured, own: stats.Estimate, published: PublishedFigure
) -> Measured:
    figure, low, high = measured.figure, published.value, published.value
    if published.n:
        low, high = stats.wilson(published.value * published.n, published.n)
    printed = stats.Estimate(value=published.value, low=low, high=high)
    difference = stats.unpaired_difference(
        own, printed, better=figure.better, bounds=figure.bounds
    )

    def contrast(share: float) -> stats.Difference:
        terms = [(1.0, own), (-share, printed)]
        if figure.better == "lower":
            terms = [(-share, own), (1.0, printed)]
        return stats.unpaired_contrast(terms)

    compared = _compared(measured, published.value, difference, unpaired=True)
    return replace(compared, published=published, contrast=contrast)


def _paired(
    measured: Measured, pairings: Sequence[Pairing], unchanged: Sequence[bool]
) -> Measured:
    figure, value = measured.figure, measured.value
    tables = [pairing.baseline for pairing in pairings]
    before = figure.value(tables)
    if figure.of_rows is not None:
        # Of its distance from the baseline's nothing says how sure it is.
        after = figure.value([pairing.candidate for pairing in pairings])
        delta = None if after is None or before is None else after - before
        paired = sum(len(table.rows) for table in tables)
        value = replace(value, baseline=before, delta=delta, paired=paired)
        return replace(measured, value=value)
    comparison = comparison_of(figure, pairings, measured.looks)
    difference = stats.paired_difference(comparison)
    members = [member for member, _ in figure.columns]
    named = {name for _, names in figure.columns for name in names}
    facts = {row.fact_id for member in members for row in tables[member].rows}
    same = (
        len(facts) >= stats.FEWEST_UNLOST
        and all(unchanged[member] for member in members)
        and named.isdisjoint(PROBABILITIES)
    )
    estimate, clustered = difference.estimate, difference.clustered
    if same and estimate.note == stats.UNCHANGED:
        estimate = replace(estimate, note=IDENTICAL)
        difference = replace(difference, estimate=estimate)
    notes = value.note, _delta_note(figure, estimate, value, before)
    compared = _compared(
        measured,
        before,
        difference,
        paired=estimate.n,
        design_effect=clustered and clustered.design_effect,
        clusters=clustered and clustered.effective,
        note="; ".join(dict.fromkeys(filter(None, notes))),
    )
    unasked = {fact for member in members for fact in pairings[member].unasked}
    return replace(
        compared,
        unasked=len(unasked),
        identical=same,
        contrast=lambda share: stats.paired_difference(
            replace(comparison, share=share)
        ),
    )


def _is_unchanged(pairing: Pairing) -> bool:
    """Return True if no outcome changed.

    The probabilities of answers are no part of it: they move whenever anything about a model does.
    """
    new, old = pairing.candidate, pairing.baseline
    shared = [
        (index, old.columns.index(name))
        for index, name in enumerate(new.columns)
        if name in old.columns and name not in PROBABILITIES
    ]
    most = 0.0 if pairing.exact else _SAME
    return all(
        [of.label for of in ours.replies] == [of.label for of in theirs.replies]
        and all(
            abs(ours.values[here] - theirs.values[there]) <= most
            for here, there in shared
        )
        for ours, theirs in pairing.rows
    )


def _delta_note(
    figure: Figure, delta: stats.Estimate, value: MetricValue, before: float | None
) -> str:
    if delta.value is not None:
        return delta.note
    if value.value is None:
        return ""
    if not delta.n:
        return "no fact in common with the baseline"
    where = "baseline" if before is None else "paired facts"
    return f"{where}: {figure.undefined}"
