"""One case's outcomes to its verdict: integrity first, then every gate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pytest_kbrel import stats
from pytest_kbrel.baselines import BaselineCase, PublishedCase
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.judging import Obstacle, decide
from pytest_kbrel.gates.measuring import Measurement, Pairing, changes, measure_figures, pair
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Case, CaseResult, Gate, GateResult, Judgement, Table

SEVERITY: tuple[Judgement, ...] = (
    "invalid",
    "fail",
    "not comparable",
    "no baseline",
    "inconclusive",
    "pass",
)
# At most so many of a case's answers may be empty, and so many cut short.
MOST_UNFIT = 0.5
# What a judge leaves undecided is missing from hallucination and wrong rate alike.
MOST_UNREAD = 0.1
_SHOWN = 3
# Rules of outcomes that a model as judge decided, or left undecided.
_JUDGED, _UNPARSABLE = "judge", "unparsable"


def decide_case(
    case: Case,
    table: Table,
    errors: Sequence[str],
    *,
    baseline: BaselineCase | PublishedCase | None,
    baseline_asked: bool,
    comparisons: int,
    duration: float = 0.0,
    requests: int = 0,
    incomparable: Sequence[str] = (),
    paper: str = "",
) -> CaseResult:
    """Measure one case and judge its gates.

    ``errors`` are the responses that could not be used, ``baseline`` the same case of the blessed run,
    ``comparisons`` the number of relative gates in the whole session, ``incomparable`` what the two models'
    fingerprints must share and do not, ``paper`` the paper whose figures the baseline is. Responses that are
    no ground for a measurement make the case ``invalid``; nothing is then measured.
    """
    broken = integrity(table, errors)
    if broken:
        return CaseResult(
            id=case.id,
            suite=case.suite,
            probe=case.probe,
            slice=case.slice,
            verdict="invalid",
            n=len(table.rows),
            duration=duration,
            metrics=(),
            gates=unjudged(case.gates, broken[0]),
            errors=broken,
            requests=requests,
            truncated=_truncated(table),
            # NaN has no wire form, and the message counts these rows.
            table=Table(columns=table.columns, rows=tuple(r for r in table.rows if not _is_nan(r.values))),
        )
    alpha = stats.sidak(comparisons)
    run, published = split(baseline)
    pairings = () if run is None else (pair(table, run.table),)
    figures = figures_of(metrics_for(case.probe, case.slice, table.columns))
    measurement = measure_figures(figures, (table,), pairings, alpha=alpha, published=published, paper=paper)
    missing = () if baseline is not None else (case.id,)
    results = decide(
        case.gates,
        measurement,
        obstacle=obstacle_of(
            [case.id], measurement, missing, asked=baseline_asked, incomparable=incomparable, paper=paper
        ),
        alpha_per_comparison=alpha,
    )
    lost, gained = ((), ()) if run is None else changes(table, run.table)
    return CaseResult(
        id=case.id,
        suite=case.suite,
        probe=case.probe,
        slice=case.slice,
        verdict=verdict_of(results, baseline_asked=baseline_asked and not paper),
        n=len(table.rows),
        duration=duration,
        metrics=measurement.values,
        gates=results,
        lost=lost,
        gained=gained,
        requests=requests,
        truncated=_truncated(table),
        table=table,
    )


def verdict_of(results: Iterable[GateResult], *, baseline_asked: bool) -> Judgement:
    """Return a case's verdict, its worst gate's.

    When no baseline was asked for, relative gates stay unjudged and the others decide; ``no baseline`` is
    then the verdict of a case that has relative gates only, and no failure. When one was asked for, ``no
    baseline`` means that it lacks the case, which is a failure. The figures of a paper count as not asked
    for: what it did not measure stays unjudged. A case without gates passes.
    """
    found = {result.verdict for result in results}
    if not baseline_asked and found != {"no baseline"}:
        found.discard("no baseline")
    return next((verdict for verdict in SEVERITY if verdict in found), "pass")


def split(
    baseline: BaselineCase | PublishedCase | None,
) -> tuple[BaselineCase | None, PublishedCase | None]:
    """Return the case as one of a run and as one of a paper: at least one of the two is ``None``."""
    if isinstance(baseline, PublishedCase):
        return None, baseline
    return baseline, None


def unjudged(gates: Iterable[Gate], reason: str) -> tuple[GateResult, ...]:
    """Return all gates as invalid, for ``reason``."""
    return tuple(
        GateResult(
            metric=gate.metric,
            rule=gate.rule,
            bound=gate.bound,
            verdict="invalid",
            reason=f"not judged: {reason}",
            line=gate.line,
        )
        for gate in gates
    )


def obstacle_of(
    cases: Sequence[str],
    measurement: Measurement,
    missing: Sequence[str],
    *,
    asked: bool,
    incomparable: Sequence[str],
    paper: str = "",
) -> Obstacle | None:
    """Return what stands in the way of comparing with the baseline, ``None`` when nothing does.

    ``cases`` are the ids of the cases measured, ``missing`` those of them that the baseline does not have.
    """
    if not asked:
        return "no baseline", "no baseline was given to compare with; allowed: --kb-baseline=NAME or PATH"
    if missing and paper:
        return "no baseline", f"{paper} has no figures of {', '.join(missing)}"
    if missing:
        return "no baseline", f"the baseline has no case {', '.join(missing)}: bless a run of all suites anew"
    if incomparable:
        return "not comparable", (
            f"candidate and baseline differ in {'; '.join(incomparable)}; "
            "allowed: a baseline that shares these with the candidate"
        )
    if paper:
        return None
    for case, pairing in zip(cases, measurement.pairings, strict=True):
        if (why := _not_comparable(pairing)) is not None:
            return "not comparable", (
                f"{case}: {why}; allowed: what the baseline was asked, or bless a run that was asked this"
            )
    return None


def _not_comparable(pairing: Pairing) -> str | None:
    differing, added = pairing.differing, pairing.added
    facts = len(pairing.candidate.rows) + len(differing) + len(added)
    found = []
    if differing:
        found.append(
            f"{len(differing)} of {_count(facts, 'fact')} were not asked the same way as in the baseline "
            f"(prompts, settings, accepted answers or draws; first: {differing[0]})"
        )
    if added:
        found.append(f"{len(added)} of {_count(facts, 'fact')} are not in the baseline (first: {added[0]})")
    return "; ".join(found) or None


def integrity(table: Table, errors: Sequence[str]) -> tuple[str, ...]:
    """Return what forbids a measurement, in words: nothing when the responses are sound.

    An unusable response, no fact at all, a fact twice, a value that is no number, or more than half of the
    answers empty or cut short or of the choices not made, or more than a tenth of a judge's replies
    unreadable.
    """
    found = []
    if errors:
        shown = "; ".join(errors[:_SHOWN])
        more = f"; and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
        found.append(f"{_count(len(errors), 'fact')} without usable responses: {shown}{more}; allowed: none")
    rows = table.rows
    if not rows:
        return (*found, "no fact was measured: zero outcomes are no measurement; allowed: at least one fact")
    twice = len(rows) - len({row.fact_id for row in rows})
    if twice:
        found.append(f"{_count(twice, 'fact')} measured more than once: fact ids must differ")
    nans = [row.fact_id for row in rows if _is_nan(row.values)]
    if nans:
        found.append(
            f"values that are no number for {len(nans)} of {len(rows)} facts (first: {nans[0]}); "
            "allowed: none"
        )
    empty = sum(not row.answer.strip() for row in rows)
    if empty > MOST_UNFIT * len(rows):
        found.append(
            f"{empty} of {len(rows)} answers are empty; allowed: at most {MOST_UNFIT:.0%}: "
            "the model answers nothing, or its prompts or stop strings do not suit it"
        )
    truncated = _truncated(table)
    if truncated > MOST_UNFIT * len(rows):
        found.append(
            f"{truncated} of {len(rows)} answers are cut short; allowed: at most {MOST_UNFIT:.0%}: raise "
            "max_new_tokens in the suite, unless the model does not stop (its end token or prompts do not "
            "suit it)"
        )
    asked = [row.rule for row in rows if row.rule in (_JUDGED, _UNPARSABLE)]
    if (unread := asked.count(_UNPARSABLE)) > MOST_UNREAD * len(asked):
        found.append(
            f"{unread} of {_count(len(asked), 'reply', 'replies')} of the judge cannot be read; allowed: at "
            f"most {MOST_UNREAD:.0%}: this model cannot judge, or its chat template is missing"
        )
    found += _unread_choices(table)
    return tuple(found)


def _unread_choices(table: Table) -> list[str]:
    names = ("choices", "choices_unread")
    if not set(names) <= set(table.columns):
        return []
    asked, unread = (sum(row.values[table.columns.index(name)] for row in table.rows) for name in names)
    if unread <= MOST_UNFIT * asked:
        return []
    return [
        f"{unread:.0f} of {asked:.0f} replies to multiple-choice questions pick no option; allowed: at most "
        f"{MOST_UNFIT:.0%}: nothing then tells whether the model keeps to its answers"
    ]


def _truncated(table: Table) -> int:
    return sum(row.truncated for row in table.rows)


def _is_nan(values: Iterable[float]) -> bool:
    return not all(map(math.isfinite, values))


def _count(n: int, noun: str, plural: str = "") -> str:
    return f"{n} {noun if n == 1 else plural or noun + 's'}"
