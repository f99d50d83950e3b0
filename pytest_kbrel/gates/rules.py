"""Gates and measured figures: the verdicts, and the sentences that give their reasons.

A gate that compares with a baseline has two numbers. *Pass* claims that the change is within the larger one
(``within``): such a claim holds for all slices together when it holds for each (intersection-union test), so
its 95 % interval needs no correction. *Fail* is an alarm that the change exceeds the smaller one
(``beyond``): it is raised at a level that is corrected for the other gates of the case (Simes and Hommel) and
for the cases of the suite (Šidák). More facts make both surer, and neither can become wrong by them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from pytest_kbrel import stats
from pytest_kbrel.catalogue.metrics import CHANGE_METRICS, DIVERGENCE_METRICS
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.errors import nearest
from pytest_kbrel.gates.integrity import count
from pytest_kbrel.gates.measurement import PASS_ALPHA, Measured, Measurement
from pytest_kbrel.gates.reasons import (
    beside,
    between,
    describe_open_end,
    few_clusters,
    interval,
    left_out,
    moved,
    needed,
    number,
    power,
)
from pytest_kbrel.records import Gate, GateResult, Judgement, Rule, record

CONTROL = "_control"

# Values within this of a bound meet it: sums of floats do not end on the printed digit.
_SLACK = 1e-9
Obstacle = tuple[Judgement, str]


def decide(
    gates: Sequence[Gate],
    measurement: Measurement,
    *,
    obstacle: Obstacle | None = None,
    comparisons: int = 1,
) -> tuple[GateResult, ...]:
    """Judge the gates of one case.

    ``obstacle`` is why nothing can be compared with a baseline, as verdict and reason: relative gates then
    get that. ``comparisons`` is the number of cases with relative gates in the suite, this one included.
    """
    figures = {
        of.figure.name: of for of in (*measurement.figures, *measurement.changes)
    }
    results: dict[int, GateResult] = {}
    changes: dict[int, _Change] = {}
    for index, gate in enumerate(gates):
        measured = figures.get(gate.metric)
        early = _obstacle(gate, measured, figures, measurement, obstacle)
        if early is not None:
            results[index] = gate_result(gate, *early)
            continue
        assert measured is not None
        if GATE_RULES[gate.rule].relative:
            change = CHANGES[gate.rule](gate, measured, measurement)
            few = few_clusters(measured)
            changes[index] = dataclasses.replace(
                change,
                p=None if few else measured.p_over_looks(change.p),
                passes=change.passes and (not few or measured.nothing_lost),
            )
        else:
            results[index] = JUDGES[gate.rule](gate, measured, measurement)
    adjusted = _adjusted(changes)
    for index, change in changes.items():
        gate, p = gates[index], adjusted.get(index)
        corrected = None if p is None else stats.sidak_p(p, comparisons)
        results[index] = _compared(
            gate, figures[gate.metric], change, corrected, comparisons
        )
    return tuple(_with_beside(results[index], figures) for index in range(len(gates)))


def gate_result(
    gate: Gate | GateResult, verdict: Judgement, reason: str, **figures: float | None
) -> GateResult:
    """Return what became of a gate; ``figures`` are other fields of it."""
    rule = GATE_RULES[gate.rule]
    return GateResult(
        metric=gate.metric,
        rule=gate.rule,
        bound=gate.bound,
        verdict=verdict,
        reason=reason,
        line=gate.line,
        beyond=rule.beyond(gate) if rule.relative else None,
        **figures,
    )


def _with_beside(result: GateResult, figures: Mapping[str, Measured]) -> GateResult:
    if result.observed is None:
        return result
    reason = result.reason + beside(result.metric, figures)
    return dataclasses.replace(result, reason=reason)


def _adjusted(changes: Mapping[int, _Change]) -> dict[int, float]:
    """Return the p-values of a case's gates, corrected for one another after Hommel.

    The case as a whole is tested by Simes' p-value, which may reject where no gate does by itself: the gate
    with the smallest p-value stands for them then.
    """
    ps = {index: change.p for index, change in changes.items() if change.p is not None}
    adjusted = dict(zip(ps, stats.hommel(list(ps.values())), strict=True))
    open_gates = [index for index in ps if not changes[index].passes]
    if open_gates:
        first = min(open_gates, key=lambda index: ps[index])
        adjusted[first] = min(adjusted[first], stats.simes(list(ps.values())))
    return adjusted


def _obstacle(
    gate: Gate,
    measured: Measured | None,
    figures: Mapping[str, Measured],
    measurement: Measurement,
    obstacle: Obstacle | None,
) -> Obstacle | None:
    """Return why a gate cannot be judged, as verdict and reason; ``None`` where it can be."""
    metric, relative = gate.metric, GATE_RULES[gate.rule].relative
    is_change = measured is None and metric in CHANGE_METRICS
    if obstacle is not None and (is_change or (relative and measured is not None)):
        return obstacle
    if is_change and metric in DIVERGENCE_METRICS and measurement.no_tokens:
        why = f"{metric} cannot be measured: {measurement.no_tokens}"
        return "not comparable", why
    if is_change:
        why = f"{metric} needs a baseline that was measured fact by fact"
        return "no baseline", why
    if measured is None:
        hint = nearest(metric, figures)
        why = f"no metric {metric!r} was measured{hint}; there are {', '.join(figures)}"
        return "invalid", why
    if relative and measurement.paper and measured.published is None:
        return "no baseline", f"{measurement.paper} prints no {metric} of this case"
    value, allowed = measured.value, _allowed(gate)
    if value.value is None:
        # Without a wrong answer there is no consistency of wrong answers: nothing bad was found, or shown absent.
        # What the baseline did not have either was not lost.
        lost = not relative or measured.difference is None or value.baseline is not None
        is_open = measured.figure.vacuous or not lost
        verdict: Judgement = "inconclusive" if is_open else "fail"
        return verdict, f"{metric} is undefined: {value.note}; {allowed}"
    if relative and measured.difference is None:
        why = f"the baseline has not measured what {metric} needs: bless all suites anew; {allowed}"
        return "not comparable", why
    if relative and value.delta is None:
        why = f"{metric} cannot be compared: {value.note}; {allowed}"
        return "inconclusive", why
    return None


def _absolute(gate: Gate, measured: Measured, measurement: Measurement) -> GateResult:
    value, allowed = measured.value, _allowed(gate)
    assert value.value is not None
    at_most = GATE_RULES[gate.rule].limit == "at most"
    met = (
        value.value <= gate.bound + _SLACK
        if at_most
        else value.value >= gate.bound - _SLACK
    )
    note = f" ({value.note})" if value.low is None and value.note else ""
    reason = f"{gate.metric} is {number(value.value)}{between(value)} over {count(value.n, 'fact')}{note}; {allowed}"
    return gate_result(
        gate,
        "pass" if met else "fail",
        reason,
        observed=value.value,
        low=value.low,
        high=value.high,
    )


def _above_control(
    gate: Gate, measured: Measured, measurement: Measurement
) -> GateResult:
    """Judge how far the value stands above the best of its controls: what it costs no knowledge to reach."""
    value, allowed = measured.value, _allowed(gate)
    assert value.value is not None
    controls = [
        other
        for other in measurement.values
        if other.name.startswith(gate.metric + CONTROL)
    ]
    defined = [control for control in controls if control.value is not None]
    if not defined:
        why = (
            controls[0].note
            if controls
            else f"{gate.metric} was measured without a control"
        )
        reason = f"{gate.metric} has no control to compare with: {why}; {allowed}"
        return gate_result(gate, "inconclusive", reason)
    sign = 1 if value.better == "higher" else -1
    control = max(defined, key=lambda of: sign * (of.value or 0.0))
    assert control.value is not None
    above = sign * (value.value - control.value)
    where = "above" if sign > 0 else "below"
    figures = [f"{number(of.value or 0.0)}{between(of)}" for of in (value, control)]
    reason = (
        f"{gate.metric} is {figures[0]} over {count(value.n, 'fact')}, {number(above)} {where} its control "
        f"{control.name}, {figures[1]}; {allowed}"
    )
    verdict: Judgement = "pass" if above >= gate.bound - _SLACK else "fail"
    return gate_result(gate, verdict, reason, observed=above)


def _allowed(gate: Gate) -> str:
    """Return what a gate allows: its bound, or the numbers of a rule that compares with a baseline."""
    rule = GATE_RULES[gate.rule]
    if not rule.relative:
        return " ".join(filter(None, ("allowed:", rule.limit, number(gate.bound))))
    beyond = number(rule.beyond(gate))
    return f"allowed: within {number(gate.bound)}, beyond {beyond}"


@record
class _Change:
    """A change against the baseline, as a rule sees it.

    ``observed`` with its 95 % interval is in the rule's own terms (a drop, or a share recovered). ``p`` is that of "no more than the gate's beyond",
    ``passes`` whether the gate is met, ``open_end`` returns what would decide it.
    """

    observed: float | None
    ends: tuple[float | None, float | None]
    p: float | None
    passes: bool
    reason: str
    open_end: Callable[[], str]


def _compared(
    gate: Gate,
    measured: Measured,
    change: _Change,
    corrected: float | None,
    comparisons: int,
) -> GateResult:
    """Judge a change: pass, fail or inconclusive, in this order; ``corrected`` is its p over all cases."""
    assert measured.difference is not None
    rule = GATE_RULES[gate.rule]
    verdict: Judgement = "inconclusive"
    reason = change.reason
    if change.passes:
        verdict = "pass"
    elif corrected is not None and corrected < stats.FAMILY_LEVEL:
        verdict = "fail"
    else:
        p = measured.p_over_looks(measured.value.p)
        if (
            change.p is not None
            and p is not None
            and stats.sidak_p(p, comparisons) < stats.FAMILY_LEVEL
        ):
            beyond = rule.not_shown.format(beyond=number(rule.beyond(gate)))
            reason += f"; worse than the baseline; {beyond} is not shown"
        reason += few_clusters(measured) or change.open_end()
    return gate_result(
        gate,
        verdict,
        reason,
        observed=change.observed,
        low=change.ends[0],
        high=change.ends[1],
        p=change.p,
        p_sidak=corrected,
        unchanged=stats.null_end(measured.difference, comparisons),
    )


def _dropped(gate: Gate, measured: Measured, measurement: Measurement) -> _Change:
    """Return the change as the rule ``max_drop`` sees it."""
    assert measured.difference is not None
    delta = measured.value.delta
    assert delta is not None
    # 0 - 0 is 0, and -0 would stand in the report.
    drop = 0.0 - delta if measured.value.better == "higher" else delta
    beyond = GATE_RULES[gate.rule].beyond(gate)
    ends = _drop_ends(measured)
    worst = ends[1]
    return _Change(
        observed=drop,
        ends=ends,
        p=measured.difference.p_of(beyond),
        passes=measured.nothing_lost
        or (worst is not None and worst <= gate.bound + _SLACK),
        reason=f"{moved(measured)}{left_out(measured, measurement)}; " + _allowed(gate),
        open_end=lambda: describe_open_end(
            measured,
            beyond=beyond,
            clear=gate.bound - drop,
        ),
    )


def _recovery(gate: Gate, measured: Measured, measurement: Measurement) -> _Change:
    """Return the change as the rule ``recovery`` sees it."""
    value, allowed = measured.value, _allowed(gate)
    assert value.baseline is not None
    assert value.delta is not None
    over, under = value.baseline + value.delta, value.baseline
    if value.better == "lower":
        over, under = under, over
    if min(over, under) < 0 or (value.better == "higher" and value.baseline == 0):
        why = f"{gate.metric} has no ratio to a baseline of {number(value.baseline)}"
        return _Change(
            observed=None,
            ends=(None, None),
            p=None,
            passes=False,
            reason=f"{why}; {allowed}",
            open_end=str,
        )
    # Where lower is better, 0 is perfect: 0 after 0 is all of it, more than 0 after 0 is none of it.
    share = 1.0 if over == under else math.inf if under == 0 else over / under
    # From 0, or to it, every share or none is as likely.
    shown_ends = over and under
    low, high = recovered(measured, share) if shown_ends else (None, None)
    shown = "" if low is None and high is None else f" {interval(low, high)}"
    recovery = f"{number(share)}{shown}" if math.isfinite(share) else "all"
    reason = f"{gate.metric} recovered {recovery} of the baseline: {moved(measured)}"
    beyond = GATE_RULES[gate.rule].beyond(gate)
    within = measured.contrast(gate.bound).estimate
    # Where nothing changed, the score test of a bound of 1 divides 0 by 0 and tells nothing.
    is_recovered = within.low is not None and within.low >= -_SLACK and within.se != 0
    worst = _drop_ends(measured)[1]

    def open_end() -> str:
        # More facts of ours make the paper's own figure no more certain.
        if (
            share < gate.bound
            or measured.may_pass_unlost
            or within.value is None
            or not within.se
            or measured.published is not None
        ):
            return describe_open_end(measured, beyond=(1 - beyond) * under)
        facts = stats.facts_needed(within.value, within.se, within.n, PASS_ALPHA)
        return power(measured, (1 - beyond) * under) + needed(facts)

    return _Change(
        observed=share if math.isfinite(share) else None,
        ends=(low, high),
        p=measured.contrast(beyond).p_of(0.0),
        passes=is_recovered
        or measured.nothing_lost
        or (worst is not None and worst <= 0),
        reason=f"{reason}{left_out(measured, measurement)}; {allowed}",
        open_end=open_end,
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


def _drop_ends(measured: Measured) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the drop, the better end first."""
    low, high = measured.value.delta_low, measured.value.delta_high
    if measured.value.better == "lower":
        return low, high
    return None if high is None else -high, None if low is None else -low


# One for each rule of the catalogue that is about the value itself; what they judge has a value.
JUDGES: Mapping[Rule, Callable[[Gate, Measured, Measurement], GateResult]] = {
    "min": _absolute,
    "max": _absolute,
    "above_control": _above_control,
}
# One for each rule that compares with a baseline; what they are given has a difference.
CHANGES: Mapping[Rule, Callable[[Gate, Measured, Measurement], _Change]] = {
    "max_drop": _dropped,
    "recovery": _recovery,
}
