"""One gate, one measured figure: the verdict and the sentence that gives its reason.

*Fail* is an alarm: it is raised at a level corrected for the number of comparisons in the session. *Pass*
claims that the drop is within the tolerance wherever it is given; such a claim holds for all slices together
when it holds for each (intersection-union test), so its 95 % interval needs no correction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_kbrel import stats
from pytest_kbrel.errors import nearest
from pytest_kbrel.gates.measuring import Measured, Measurement
from pytest_kbrel.records import Gate, GateResult, Judgement, MetricValue

RELATIVE = ("max_drop", "recovery")
CONTROL = "_control"
# Values within this of a bound meet it: sums of floats do not end on the printed digit.
_SLACK = 1e-9

Obstacle = tuple[Judgement, str]


def decide(
    gates: Sequence[Gate],
    measurement: Measurement,
    *,
    obstacle: Obstacle | None = None,
    alpha_per_comparison: float = stats.FAMILY_LEVEL,
) -> tuple[GateResult, ...]:
    """Judge each gate.

    ``obstacle`` is why nothing can be compared with a baseline, as verdict and reason: relative gates then
    get that. ``alpha_per_comparison`` is the one-sided level at which a drop is significant.
    """
    figures = {measured.figure.name: measured for measured in measurement.figures}
    results = []
    for gate in gates:
        measured = figures.get(gate.metric)
        if measured is None:
            hint = nearest(gate.metric, figures)
            verdict: Judgement = "invalid"
            reason = f"no metric {gate.metric!r} was measured{hint}; there are {', '.join(figures)}"
        elif gate.rule == "above_control":
            controls = [of for name, of in figures.items() if name.startswith(gate.metric + CONTROL)]
            verdict, reason = _above_control(gate, measured, controls)
        elif gate.rule not in RELATIVE:
            verdict, reason = _absolute(gate, measured)
        elif obstacle is not None:
            verdict, reason = obstacle
        elif measurement.paper and measured.published is None:
            verdict, reason = "no baseline", f"{measurement.paper} prints no {gate.metric} of this case"
        elif gate.rule == "max_drop":
            verdict, reason = _max_drop(gate, measured, alpha_per_comparison)
        else:
            verdict, reason = _recovery(gate, measured, measurement, alpha_per_comparison)
        results.append(
            GateResult(
                metric=gate.metric,
                rule=gate.rule,
                bound=gate.bound,
                verdict=verdict,
                reason=reason,
                line=gate.line,
            )
        )
    return tuple(results)


def _absolute(gate: Gate, measured: Measured) -> tuple[Judgement, str]:
    value = measured.value
    allowed = f"allowed: at {'least' if gate.rule == 'min' else 'most'} {_number(gate.bound)}"
    if value.value is None:
        return _undefined(measured), f"{gate.metric} is undefined: {value.note}; {allowed}"
    met = value.value >= gate.bound - _SLACK if gate.rule == "min" else value.value <= gate.bound + _SLACK
    interval = _between(value)
    note = f" ({value.note})" if value.low is None and value.note else ""
    reason = f"{gate.metric} is {_number(value.value)}{interval} over {_facts(value.n)}{note}; {allowed}"
    return "pass" if met else "fail", reason


def _above_control(gate: Gate, measured: Measured, controls: Sequence[Measured]) -> tuple[Judgement, str]:
    """Judge how far the value stands above the best of its controls: what it costs no knowledge to reach."""
    allowed = f"allowed: at least {_number(gate.bound)}"
    value = measured.value
    if value.value is None:
        return _undefined(measured), f"{gate.metric} is undefined: {value.note}; {allowed}"
    found = [control.value for control in controls if control.value.value is not None]
    if not found:
        why = controls[0].value.note if controls else f"{gate.metric} was measured without a control"
        return "inconclusive", f"{gate.metric} has no control to compare with: {why}; {allowed}"
    sign = 1 if value.better == "higher" else -1
    control = max(found, key=lambda of: sign * (of.value or 0.0))
    assert control.value is not None
    above = sign * (value.value - control.value)
    where = "above" if sign > 0 else "below"
    told = [f"{_number(of.value or 0.0)}{_between(of)}" for of in (value, control)]
    reason = (
        f"{gate.metric} is {told[0]} over {_facts(value.n)}, {_number(above)} {where} its control "
        f"{control.name}, {told[1]}; {allowed}"
    )
    return "pass" if above >= gate.bound - _SLACK else "fail", reason


def _undefined(measured: Measured) -> Judgement:
    # Without a wrong answer there is no consistency of wrong answers: nothing bad was found, or shown absent.
    return "inconclusive" if measured.figure.vacuous else "fail"


def _max_drop(gate: Gate, measured: Measured, alpha: float) -> tuple[Judgement, str]:
    allowed = f"allowed: {_number(gate.bound)}"
    if (early := _incomparable(gate, measured, allowed)) is not None:
        return early
    value, drop = measured.value, _drop(measured)
    reason = f"{_moved(measured)}; {allowed}"
    exceeds = drop > gate.bound + _SLACK
    if exceeds and value.p is not None and value.p < alpha:
        return "fail", reason
    if _worst_drop(measured) <= gate.bound + _SLACK:
        return "pass", reason
    return "inconclusive", reason + _open(measured, drop if exceeds else gate.bound - drop, exceeds, alpha)


def _recovery(
    gate: Gate, measured: Measured, measurement: Measurement, alpha: float
) -> tuple[Judgement, str]:
    allowed = f"allowed: at least {_number(gate.bound)}"
    if (early := _incomparable(gate, measured, allowed)) is not None:
        return early
    value = measured.value
    assert value.baseline is not None
    assert value.delta is not None
    over, under = value.baseline + value.delta, value.baseline
    if value.better == "lower":
        over, under = under, over
    if min(over, under) < 0 or (value.better == "higher" and value.baseline == 0):
        why = f"{gate.metric} has no ratio to a baseline of {_number(value.baseline)}"
        return "inconclusive", f"{why}; {allowed}"
    # Where lower is better, 0 is perfect: 0 after 0 is all of it, more than 0 after 0 is none of it.
    share = 1.0 if over == under else math.inf if under == 0 else over / under
    reason = f"{gate.metric} recovered {_number(share)} of the baseline: {_moved(measured)}; {allowed}"
    exceeds = share < gate.bound - _SLACK
    if exceeds and value.p is not None and value.p < alpha:
        return "fail", reason
    if gate.bound <= 1 and _worst_drop(measured) <= 0:
        return "pass", reason
    contrast = measurement.contrast(measured, gate.bound)
    if contrast.low is not None and contrast.low >= -_SLACK:
        return "pass", reason
    if exceeds or contrast.value is None or not contrast.se:
        return "inconclusive", reason + _open(measured, _drop(measured), exceeds, alpha)
    if measured.published is not None:
        return "inconclusive", reason + _power(measured)
    needed = stats.facts_needed(contrast.value, contrast.se, contrast.n, (1 - stats.LEVEL) / 2)
    return "inconclusive", reason + _power(measured) + _needed(needed)


def _incomparable(gate: Gate, measured: Measured, allowed: str) -> tuple[Judgement, str] | None:
    value = measured.value
    if value.value is None:
        return _undefined(measured), f"{gate.metric} is undefined: {value.note}; {allowed}"
    if measured.difference is None:
        return "not comparable", (
            f"the baseline has not measured what {gate.metric} needs: bless all suites anew; {allowed}"
        )
    if value.delta is None:
        return "inconclusive", f"{gate.metric} cannot be compared: {value.note}; {allowed}"
    return None


def _drop(measured: Measured) -> float:
    delta = measured.value.delta
    assert delta is not None
    return -delta if measured.value.better == "higher" else delta


def _worst_drop(measured: Measured) -> float:
    """Return the largest drop the 95 % interval allows; infinite where it has no such end."""
    end = measured.value.delta_low if measured.value.better == "higher" else measured.value.delta_high
    if end is None:
        return math.inf
    return -end if measured.value.better == "higher" else end


def _moved(measured: Measured) -> str:
    value, difference = measured.value, measured.difference
    assert value.delta is not None
    assert value.baseline is not None
    assert difference is not None
    of = f" of the baseline's {value.paired + measured.unasked}" if measured.unasked else ""
    over = f"paired over {_facts(value.paired)}{of}"
    if measured.published is not None:
        over = f"unpaired, against a published figure: {measured.published.source}"
    if value.delta == 0:
        note = difference.estimate.note
        about = f"{note}, " if note else ""
        return f"{value.name} did not change from {_number(value.baseline)} ({about}{over})"
    verb = "fell" if value.delta < 0 else "rose"
    ends = (value.delta_low, value.delta_high)
    interval = "" if ends == (None, None) else f" {_interval(*ends)}"
    told = [over]
    if value.p is not None:
        told.append("p < 0.0001" if value.p < 0.0001 else f"p {value.p:.4f}")
    if difference.estimate.note:
        told.append(difference.estimate.note)
    now = value.baseline + value.delta
    return (
        f"{value.name} {verb} by {_number(abs(value.delta))}{interval} from {_number(value.baseline)} "
        f"to {_number(now)} ({', '.join(told)})"
    )


def _open(measured: Measured, distance: float, exceeds: bool, alpha: float) -> str:
    """Say what is missing for a judgement: an alarm if the drop exceeds the tolerance, else a clearance."""
    assert measured.difference is not None
    estimate = measured.difference.estimate
    if not estimate.se:
        return ""
    if measured.published is not None:
        # More facts of ours make the paper's own figure no more certain.
        return _power(measured)
    level = alpha if exceeds else (1 - stats.LEVEL) / 2
    needed = stats.facts_needed(distance, estimate.se, estimate.n, level)
    return _power(measured) + _needed(needed)


def _power(measured: Measured) -> str:
    mde = measured.value.mde
    if mde is None:
        return ""
    word = "drop" if measured.value.better == "higher" else "rise"
    return f"; a {word} of {_number(mde)} would be found with 80 % power"


def _needed(facts: int | None) -> str:
    if facts is None:
        return "; no number of facts below a million would decide"
    return f"; about {facts} facts would decide, were the difference the same"


def _number(value: float) -> str:
    return f"{value:.3f}"


def _interval(low: float | None, high: float | None) -> str:
    ends = ("-inf" if low is None else _number(low), "inf" if high is None else _number(high))
    return f"[{ends[0]}, {ends[1]}]"


def _between(value: MetricValue) -> str:
    return f" {_interval(value.low, value.high)}" if value.low is not None else ""


def _facts(n: int) -> str:
    return f"{n} fact{'' if n == 1 else 's'}"
