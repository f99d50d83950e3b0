"""Gates and measured figures: the verdicts, with their reasons.

A gate that compares with a baseline has two numbers. *Pass* claims that the change is within the larger one
(``within``): such a claim holds for all slices together when it holds for each (intersection-union test), so
its 95 % interval needs no correction. *Fail* is an alarm that the change exceeds the smaller one
(``beyond``): it is raised at a level that is corrected for the other gates of the case (Simes and Hommel) and
for the cases of the suite (Šidák). More facts make both surer, and neither can become wrong by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_kbrel import stats
from pytest_kbrel.catalogue.metrics import (
    BASELINE_METRICS,
    CHANGE_METRICS,
    DIVERGENCE_METRICS,
)
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.errors import count, nearest
from pytest_kbrel.gates.measurement import (
    PASS_ALPHA,
    Measured,
    Measurement,
)
from pytest_kbrel.records import (
    Gate,
    GateResult,
    Judgement,
    Reason,
    Rule,
    reason,
    record,
)

CONTROL = "_control"

# With fewer groups of equal size than this the test by clusters can hardly reject anything, and the one by facts
# alarms about models that change answer by answer and became no worse.
FEW_CLUSTERS = 8

# Values within this of a bound meet it: sums of floats do not end on the printed digit.
_SLACK = 1e-9


def decide(gates: Sequence[Gate], measurement: Measurement) -> tuple[GateResult, ...]:
    """Judge the gates of one case."""
    figures = {
        of.figure.name: of for of in (*measurement.figures, *measurement.changes)
    }
    judged = [_judged(gate, figures, measurement) for gate in gates]
    adjusted = iter(_adjusted([of for of in judged if isinstance(of, _Change)]))
    return tuple(
        _compared(gate, of, next(adjusted), measurement.comparisons)
        if isinstance(of, _Change)
        else of
        for gate, of in zip(gates, judged, strict=True)
    )


def _judged(
    gate: Gate, figures: Mapping[str, Measured], measurement: Measurement
) -> GateResult | _Change:
    """Judge a gate, or return its change against the baseline: those of a case are judged together."""
    if (early := _obstacle(gate, figures, measurement)) is None:
        return JUDGES[gate.rule](gate, figures[gate.metric], measurement)
    verdict, *reasons = early
    return gate_result(gate, verdict, *reasons)


def gate_result(
    gate: Gate,
    verdict: Judgement,
    *reasons: Reason | str,
    **figures: float | None,
) -> GateResult:
    """Return what became of a gate; ``figures`` are other fields of it."""
    rule = GATE_RULES[gate.rule]
    return GateResult(
        metric=gate.metric,
        rule=gate.rule,
        bound=gate.bound,
        verdict=verdict,
        reasons=tuple(
            reason("told", text=of) if isinstance(of, str) else of for of in reasons
        ),
        line=gate.line,
        beyond=rule.beyond(gate) if rule.relative else None,
        **figures,
    )


def _adjusted(changes: Sequence[_Change]) -> list[float | None]:
    """Return the p-values of a case's changes, corrected for one another after Hommel.

    The case as a whole is tested by Simes' p-value, which may reject where no gate does by itself: the gate
    with the smallest p-value stands for them then.
    """
    ps = {at: change.p for at, change in enumerate(changes) if change.p is not None}
    adjusted = dict(zip(ps, stats.hommel([*ps.values()]), strict=True))
    if open_changes := [at for at in ps if not changes[at].passes]:
        first = min(open_changes, key=ps.__getitem__)
        adjusted[first] = min(adjusted[first], stats.simes([*ps.values()]))
    return [*map(adjusted.get, range(len(changes)))]


def _obstacle(
    gate: Gate, figures: Mapping[str, Measured], measurement: Measurement
) -> tuple[Judgement, *tuple[Reason | str, ...]] | None:
    """Return why a gate cannot be judged, as verdict and reasons; ``None`` where it can be."""
    metric, relative = gate.metric, GATE_RULES[gate.rule].relative
    measured = figures.get(metric)
    is_change = metric in BASELINE_METRICS and (
        measured is None or metric not in CHANGE_METRICS
    )
    if measurement.obstacle and (is_change or (relative and measured is not None)):
        return measurement.obstacle
    if is_change and metric in DIVERGENCE_METRICS and measurement.no_tokens:
        why = f"{metric} cannot be measured: {measurement.no_tokens}"
        return "not comparable", why
    if is_change and measured is None:
        why = f"{metric} needs a baseline that was measured fact by fact"
        return "no baseline", why
    if measured is None:
        hint = nearest(metric, figures)
        why = f"no metric {metric!r} was measured{hint}; there are {', '.join(figures)}"
        return "invalid", why
    if relative and measurement.paper and measured.published is None:
        return "no baseline", f"{measurement.paper} prints no {metric} of this case"
    value = measured.value
    if value.value is None:
        # Without a wrong answer there is no consistency of wrong answers: nothing bad was found, or shown absent.
        # What the baseline did not have either was not lost.
        lost = not relative or measured.difference is None or value.baseline is not None
        undefined = reason("undefined", metric=metric, note=value.note)
        is_open = measured.figure.vacuous or not lost
        return "inconclusive" if is_open else "fail", undefined, allowed(gate)
    if relative and measured.difference is None:
        return "not comparable", reason("not_blessed", metric=metric), allowed(gate)
    if relative and value.delta is None:
        unknown = reason("not_compared", metric=metric, note=value.note)
        return "inconclusive", unknown, allowed(gate)
    return None


def _absolute(gate: Gate, measured: Measured, measurement: Measurement) -> GateResult:
    value = measured.value
    assert value.value is not None
    sign = 1 if GATE_RULES[gate.rule].limit == "at least" else -1
    met = sign * (value.value - gate.bound) >= -_SLACK
    note = f" ({value.note})" if value.low is None and value.note else ""
    why = reason("value", note=note, **_shown(measured))
    return gate_result(
        gate,
        "pass" if met else "fail",
        why,
        allowed(gate),
        observed=value.value,
        low=value.low,
        high=value.high,
    )


def _shown(measured: Measured) -> dict[str, str | float]:
    value = measured.value
    assert value.value is not None
    return {
        "metric": value.name,
        "value": value.value,
        "within": interval(value.low, value.high),
        "over": count(value.n, "fact"),
    }


def _above_control(
    gate: Gate, measured: Measured, measurement: Measurement
) -> GateResult:
    """Judge how far the value stands above the best of its controls: what it costs no knowledge to reach."""
    value = measured.value
    assert value.value is not None
    sign = 1 if value.better == "higher" else -1
    controls = [
        other
        for other in measurement.values
        if other.name.startswith(gate.metric + CONTROL)
    ]
    defined = [(sign * of.value, of) for of in controls if of.value is not None]
    if not defined:
        note = f"{gate.metric} was measured without a control"
        note = controls[0].note if controls else note
        why = reason("no_control", metric=gate.metric, note=note)
        return gate_result(gate, "inconclusive", why, allowed(gate))
    most, control = max(defined, key=lambda of: of[0])
    above = sign * value.value - most
    why = reason(
        "control",
        above=above,
        where="above" if sign > 0 else "below",
        control=control.name,
        best=sign * most,
        best_within=interval(control.low, control.high),
        **_shown(measured),
    )
    verdict: Judgement = "pass" if above >= gate.bound - _SLACK else "fail"
    return gate_result(gate, verdict, why, allowed(gate), observed=above)


@record
class _Change:
    """A change against the baseline, as a rule sees it.

    ``observed`` with its 95 % interval is in the rule's own terms (a drop, or a share recovered). ``p`` is
    that of "no more than the gate's beyond", ``passes`` whether the gate is met, ``open_end`` returns what
    would decide it.
    """

    measured: Measured
    reasons: tuple[Reason, ...]
    observed: float | None = None
    ends: tuple[float | None, float | None] = (None, None)
    p: float | None = None
    passes: bool = False
    open_end: Callable[[], Iterable[Reason]] = tuple


def _compared(
    gate: Gate, change: _Change, p: float | None, comparisons: int
) -> GateResult:
    """Judge a change: pass, fail or inconclusive, in this order; ``p`` is corrected for the gates of the case."""
    measured = change.measured
    assert measured.difference is not None
    corrected = None if p is None else stats.sidak_p(p, comparisons)
    verdict: Judgement = "inconclusive"
    reasons = [*change.reasons, allowed(gate)]
    few = few_clusters(measured)
    if change.passes:
        verdict = "pass"
    elif corrected is not None and corrected < stats.FAMILY_LEVEL:
        verdict = "fail"
    else:
        alone = measured.p_over_looks(measured.value.p)
        if (
            change.p is not None
            and alone is not None
            and stats.sidak_p(alone, comparisons) < stats.FAMILY_LEVEL
        ):
            rule = GATE_RULES[gate.rule]
            beyond = rule.not_shown.format(beyond=f"{rule.beyond(gate):.3f}")
            reasons.append(reason("worse", beyond=beyond))
        reasons += change.open_end() if few is None else [few]
    return gate_result(
        gate,
        verdict,
        *reasons,
        observed=change.observed,
        low=change.ends[0],
        high=change.ends[1],
        p=change.p,
        p_sidak=corrected,
        unchanged=stats.null_end(measured.difference, comparisons),
    )


def _change(
    measured: Measured, p: float | None, *, passes: bool, **more: Any
) -> _Change:
    """Return a change of which nothing is decided where its facts are too few groups."""
    few = few_clusters(measured) is not None
    return _Change(
        measured=measured,
        p=None if few else measured.p_over_looks(p),
        passes=measured.nothing_lost or (passes and not few),
        **more,
    )


def _dropped(gate: Gate, measured: Measured, measurement: Measurement) -> _Change:
    """Return the change as the rule ``max_drop`` sees it."""
    assert measured.difference is not None
    delta = measured.value.delta
    assert delta is not None
    # 0 - 0 is 0, and -0 would stand in the report.
    drop = 0.0 - delta if measured.value.better == "higher" else delta
    beyond = GATE_RULES[gate.rule].beyond(gate)
    worst = measured.drop_ends[1]
    return _change(
        measured,
        measured.difference.p_of(beyond),
        passes=worst is not None and worst <= gate.bound + _SLACK,
        observed=drop,
        ends=measured.drop_ends,
        reasons=tuple(moved(measured, measurement)),
        open_end=lambda: open_end(measured, beyond, gate.bound - drop),
    )


def _recovery(gate: Gate, measured: Measured, measurement: Measurement) -> _Change:
    """Return the change as the rule ``recovery`` sees it."""
    value = measured.value
    assert value.baseline is not None
    assert value.delta is not None
    over, under = value.baseline + value.delta, value.baseline
    if value.better == "lower":
        over, under = under, over
    if min(over, under) < 0 or (value.better == "higher" and value.baseline == 0):
        why = reason("no_ratio", metric=gate.metric, before=value.baseline)
        return _Change(measured=measured, reasons=(why,))
    # Where lower is better, 0 is perfect: 0 after 0 is all of it, more than 0 after 0 is none of it.
    share = 1.0 if over == under else math.inf if under == 0 else over / under
    # From 0, or to it, every share or none is as likely.
    low, high = recovered(measured, share) if over and under else (None, None)
    is_finite = math.isfinite(share)
    beyond = GATE_RULES[gate.rule].beyond(gate)
    within = measured.contrast(gate.bound).estimate
    # Where nothing changed, the score test of a bound of 1 divides 0 by 0 and tells nothing.
    is_recovered = within.low is not None and within.low >= -_SLACK and within.se != 0
    worst = measured.drop_ends[1]

    def end() -> Iterable[Reason]:
        # More facts of ours make the paper's own figure no more certain.
        if (
            share < gate.bound
            or measured.may_pass_unlost
            or within.value is None
            or not within.se
            or measured.published is not None
        ):
            return open_end(measured, (1 - beyond) * under)
        facts = stats.facts_needed(within.value, within.se, within.n, PASS_ALPHA)
        return *power(measured, (1 - beyond) * under), needed(facts)

    why = reason(
        "recovered",
        metric=gate.metric,
        share=f"{share:.3f}" if is_finite else "all",
        within=interval(low, high) if is_finite else "",
    )
    return _change(
        measured,
        measured.contrast(beyond).p_of(0.0),
        passes=is_recovered or (worst is not None and worst <= 0),
        observed=share if is_finite else None,
        ends=(low, high),
        reasons=(why, *moved(measured, measurement)),
        open_end=end,
    )


def recovered(measured: Measured, share: float) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval of ``share``, the ratio above 0 as the rule ``recovery`` takes it.

    It holds the shares that the gate's own test would not rule out, so that a gate passes where its bound is
    at most the lower end. ``None`` for an end that is infinite, or that the facts do not give.
    """

    def above(of: float) -> float | None:
        return measured.contrast(of).estimate.low

    def below(of: float) -> float | None:
        high = measured.contrast(1 / of).estimate.high
        return None if high is None else -high * of

    low = stats.ratio_low(above, share)
    inverse = stats.ratio_low(below, 1 / share)
    return low, 1 / inverse if inverse else None


def allowed(gate: Gate) -> Reason:
    """Return what a gate allows: its bound, or the numbers of a rule that compares with a baseline."""
    rule = GATE_RULES[gate.rule]
    if not rule.relative:
        return reason("limit", limit=rule.limit, bound=gate.bound)
    return reason("tolerance", bound=gate.bound, beyond=rule.beyond(gate))


def moved(measured: Measured, measurement: Measurement) -> Iterator[Reason]:
    """Yield how the figure moved against the baseline, how surely, and over which facts."""
    value, difference = measured.value, measured.difference
    assert value.delta is not None
    assert value.baseline is not None
    assert difference is not None
    over = f"paired over {count(value.paired, 'fact')}"
    if measured.published is not None:
        over = f"unpaired, against a published figure: {measured.published.source}"
    elif measured.unasked:
        over += f" of the baseline's {value.paired + measured.unasked}"
    details, note = [over], difference.estimate.note
    if value.delta and value.p is not None:
        # Beside it stands the p of the gate, which is of a drop beyond what the gate states.
        shown = "< 0.0001" if value.p < 0.0001 else f"{value.p:.4f}"
        details.append(f"p of no drop {shown}")
    if note:
        details.insert(len(details) if value.delta else 0, note)
    yield reason(
        "changed" if value.delta else "same",
        metric=value.name,
        verb="fell" if value.delta < 0 else "rose",
        by=abs(value.delta),
        within=interval(value.delta_low, value.delta_high),
        before=value.baseline,
        now=value.baseline + value.delta,
        details=", ".join(details),
    )
    members = [member for member, _ in measured.figure.columns]
    pairings = measurement.pairings
    added = {fact for member in members if pairings for fact in pairings[member].added}
    if added:
        yield reason("left_out", facts=count(len(added), "fact"))


def open_end(
    measured: Measured, beyond: float, clear: float | None = None
) -> Iterator[Reason]:
    """Yield what is missing for a judgement, and how many facts would bring it.

    ``beyond`` is the drop above which an alarm is raised once it is sure. ``clear`` is how far the drop
    stands from its tolerance; a drop that is at or over it can only come to an alarm.
    """
    assert measured.difference is not None
    difference = measured.difference
    yield from power(measured, beyond)
    if measured.may_pass_unlost:
        yield needed(stats.FEWEST_UNLOST)
    # More facts of ours make the paper's own figure no more certain.
    elif difference.estimate.se and measured.published is None:
        if clear is not None and clear > 0:
            yield needed(stats.facts_to_clear(difference, clear))
        else:
            yield needed(stats.facts_to_alarm(difference, beyond, measured.alpha))


def few_clusters(measured: Measured) -> Reason | None:
    """Return that too few answers share the facts to decide; ``None`` where there are enough."""
    clustered = measured.difference and measured.difference.clustered
    if not clustered or clustered.effective >= FEW_CLUSTERS:
        return None
    return reason("few_groups", groups=clustered.effective, least=FEW_CLUSTERS)


def power(measured: Measured, beyond: float) -> Iterator[Reason]:
    """Yield which drop would be found as one beyond ``beyond``, if any; nothing where that is not known."""
    assert measured.difference is not None
    mde = stats.detectable(measured.difference, beyond, measured.alpha)
    change = "drop" if measured.value.better == "higher" else "rise"
    if mde is not None and mde > measured.figure.span:
        yield reason("no_power", change=change)
    elif mde is not None:
        yield reason("power", change=change, effect=mde)


def needed(facts: int | None) -> Reason:
    """Return how many facts would decide; ``None``: no number that could be asked."""
    return (
        reason("endless", needed=0) if facts is None else reason("needed", needed=facts)
    )


def interval(low: float | None, high: float | None) -> str:
    """Return an interval behind its figure, a missing end as infinite; empty where it has none."""
    ends = (
        "-inf" if low is None else f"{low:.3f}",
        "inf" if high is None else f"{high:.3f}",
    )
    return "" if low is high is None else f" [{ends[0]}, {ends[1]}]"


# One for each rule of the catalogue. What is about the value itself is given a figure that has one, what
# compares with a baseline a figure with a difference.
JUDGES: Mapping[Rule, Callable[[Gate, Measured, Measurement], GateResult | _Change]] = {
    "min": _absolute,
    "max": _absolute,
    "above_control": _above_control,
    "max_drop": _dropped,
    "recovery": _recovery,
}
