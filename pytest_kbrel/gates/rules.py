"""One gate, one measured figure: the verdict and the sentence that gives its reason.

*Fail* is an alarm: it is raised at a level corrected for the number of comparisons in the session. *Pass*
claims that the drop is within the tolerance wherever it is given; such a claim holds for all slices together
when it holds for each (intersection-union test), so its 95 % interval needs no correction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from pytest_kbrel import stats
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.errors import nearest
from pytest_kbrel.gates.measurement import Measured, Measurement
from pytest_kbrel.gates.reasons import (
    beside,
    between,
    describe_open_end,
    facts,
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


@record
class _Judged:
    """A verdict with its reason; the other fields are those of :class:`pytest_kbrel.records.GateResult`."""

    verdict: Judgement
    reason: str
    observed: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def decide(
    gates: Sequence[Gate],
    measurement: Measurement,
    *,
    obstacle: Obstacle | None = None,
    comparisons: int = 1,
) -> tuple[GateResult, ...]:
    """Judge each gate.

    ``obstacle`` is why nothing can be compared with a baseline, as verdict and reason: relative gates then
    get that. ``comparisons`` is the number of relative gates in the whole session.
    """
    figures = {measured.figure.name: measured for measured in measurement.figures}
    results = []
    for gate in gates:
        judged = _judged(gate, figures, measurement, obstacle, comparisons)
        results.append(
            GateResult(
                metric=gate.metric,
                rule=gate.rule,
                bound=gate.bound,
                verdict=judged.verdict,
                reason=judged.reason
                if judged.observed is None
                else judged.reason + beside(gate.metric, figures),
                line=gate.line,
                observed=judged.observed,
                low=judged.low,
                high=judged.high,
                p=judged.p,
                p_sidak=None if judged.p is None else stats.sidak_p(judged.p, comparisons),
            )
        )
    return tuple(results)


def _judged(
    gate: Gate,
    figures: dict[str, Measured],
    measurement: Measurement,
    obstacle: Obstacle | None,
    comparisons: int,
) -> _Judged:
    measured = figures.get(gate.metric)
    if measured is None:
        hint = nearest(gate.metric, figures)
        why = f"no metric {gate.metric!r} was measured{hint}; there are {', '.join(figures)}"
        return _Judged(verdict="invalid", reason=why)
    relative = GATE_RULES[gate.rule].relative
    if relative and obstacle is not None:
        return _Judged(verdict=obstacle[0], reason=obstacle[1])
    if relative and measurement.paper and measured.published is None:
        why = f"{measurement.paper} prints no {gate.metric} of this case"
        return _Judged(verdict="no baseline", reason=why)
    if measured.value.value is None:
        return _undefined(gate, measured)
    if relative and (early := _incomparable(gate, measured)) is not None:
        return early
    return JUDGES[gate.rule](gate, measured, measurement, comparisons)


def _absolute(gate: Gate, measured: Measured, measurement: Measurement, comparisons: int) -> _Judged:
    value, allowed = measured.value, _allowed(gate)
    assert value.value is not None
    at_most = GATE_RULES[gate.rule].limit == "at most"
    met = value.value <= gate.bound + _SLACK if at_most else value.value >= gate.bound - _SLACK
    note = f" ({value.note})" if value.low is None and value.note else ""
    reason = f"{gate.metric} is {number(value.value)}{between(value)} over {facts(value.n)}{note}; {allowed}"
    return _Judged(
        verdict="pass" if met else "fail",
        reason=reason,
        observed=value.value,
        low=value.low,
        high=value.high,
    )


def _above_control(gate: Gate, measured: Measured, measurement: Measurement, comparisons: int) -> _Judged:
    """Judge how far the value stands above the best of its controls: what it costs no knowledge to reach."""
    value, allowed = measured.value, _allowed(gate)
    assert value.value is not None
    controls = [other for other in measurement.values if other.name.startswith(gate.metric + CONTROL)]
    defined = [control for control in controls if control.value is not None]
    if not defined:
        why = controls[0].note if controls else f"{gate.metric} was measured without a control"
        reason = f"{gate.metric} has no control to compare with: {why}; {allowed}"
        return _Judged(verdict="inconclusive", reason=reason)
    sign = 1 if value.better == "higher" else -1
    control = max(defined, key=lambda of: sign * (of.value or 0.0))
    assert control.value is not None
    above = sign * (value.value - control.value)
    where = "above" if sign > 0 else "below"
    figures = [f"{number(of.value or 0.0)}{between(of)}" for of in (value, control)]
    reason = (
        f"{gate.metric} is {figures[0]} over {facts(value.n)}, {number(above)} {where} its control "
        f"{control.name}, {figures[1]}; {allowed}"
    )
    verdict: Judgement = "pass" if above >= gate.bound - _SLACK else "fail"
    return _Judged(verdict=verdict, reason=reason, observed=above)


def _allowed(gate: Gate) -> str:
    return " ".join(filter(None, ("allowed:", GATE_RULES[gate.rule].limit, number(gate.bound))))


def _undefined(gate: Gate, measured: Measured) -> _Judged:
    # Without a wrong answer there is no consistency of wrong answers: nothing bad was found, or shown absent.
    verdict: Judgement = "inconclusive" if measured.figure.vacuous else "fail"
    reason = f"{gate.metric} is undefined: {measured.value.note}; {_allowed(gate)}"
    return _Judged(verdict=verdict, reason=reason)


def _incomparable(gate: Gate, measured: Measured) -> _Judged | None:
    value, allowed = measured.value, _allowed(gate)
    if measured.difference is None:
        why = f"the baseline has not measured what {gate.metric} needs: bless all suites anew; {allowed}"
        return _Judged(verdict="not comparable", reason=why)
    if value.delta is None:
        why = f"{gate.metric} cannot be compared: {value.note}; {allowed}"
        return _Judged(verdict="inconclusive", reason=why)
    return None


def _max_drop(gate: Gate, measured: Measured, measurement: Measurement, comparisons: int) -> _Judged:
    drop, ends = _drop(measured), _drop_ends(measured)
    exceeds = drop > gate.bound + _SLACK
    reason = f"{moved(measured)}{left_out(measured, measurement)}; {_allowed(gate)}"
    alarm, noise = _alarm(measured, exceeds, comparisons)
    verdict: Judgement = "inconclusive"
    if alarm:
        verdict = "fail"
    elif measured.identical or _worst(ends) <= gate.bound + _SLACK:
        verdict = "pass"
    elif noise:
        reason += noise
    elif exceeds:
        reason += describe_open_end(measured, alarm=stats.sidak(comparisons))
    else:
        reason += describe_open_end(measured, clear=gate.bound - drop)
    return _Judged(
        verdict=verdict, reason=reason, observed=drop, low=ends[0], high=ends[1], p=measured.value.p
    )


def _recovery(gate: Gate, measured: Measured, measurement: Measurement, comparisons: int) -> _Judged:
    value, allowed = measured.value, _allowed(gate)
    assert value.baseline is not None
    assert value.delta is not None
    over, under = value.baseline + value.delta, value.baseline
    if value.better == "lower":
        over, under = under, over
    if min(over, under) < 0 or (value.better == "higher" and value.baseline == 0):
        why = f"{gate.metric} has no ratio to a baseline of {number(value.baseline)}"
        return _Judged(verdict="inconclusive", reason=f"{why}; {allowed}", p=value.p)
    # Where lower is better, 0 is perfect: 0 after 0 is all of it, more than 0 after 0 is none of it.
    share = 1.0 if over == under else math.inf if under == 0 else over / under
    # From 0, or to it, every share or none is as likely.
    low, high = recovered(measurement, measured, share) if over and under else (None, None)
    shown = "" if low is None and high is None else f" {interval(low, high)}"
    recovery = f"{number(share)}{shown}" if math.isfinite(share) else "all"
    reason = f"{gate.metric} recovered {recovery} of the baseline: {moved(measured)}"
    reason += f"{left_out(measured, measurement)}; {allowed}"
    exceeds = share < gate.bound - _SLACK
    alarm, noise = _alarm(measured, exceeds, comparisons)
    verdict: Judgement = "inconclusive"
    contrast = measurement.contrast(measured, gate.bound)
    # Where nothing changed, the score test of a bound of 1 divides 0 by 0 and tells nothing.
    is_recovered = contrast.low is not None and contrast.low >= -_SLACK and contrast.se != 0
    if alarm:
        verdict = "fail"
    elif is_recovered or measured.identical or _worst(_drop_ends(measured)) <= 0:
        verdict = "pass"
    elif noise:
        reason += noise
    elif exceeds:
        reason += describe_open_end(measured, alarm=stats.sidak(comparisons))
    else:
        reason += power(measured)
        # More facts of ours make the paper's own figure no more certain.
        if contrast.value is not None and contrast.se and measured.published is None:
            level = (1 - stats.LEVEL) / 2
            reason += needed(stats.facts_needed(contrast.value, contrast.se, contrast.n, level))
    observed = share if math.isfinite(share) else None
    return _Judged(verdict=verdict, reason=reason, observed=observed, low=low, high=high, p=value.p)


def recovered(
    measurement: Measurement, measured: Measured, share: float
) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval of ``share``, the ratio above 0 as the rule ``recovery`` takes it.

    It holds the shares that the gate's own test would not rule out, so that a gate passes where its bound is
    at most the lower end. ``None`` for an end that is infinite, or that the facts do not give.
    """
    assert measured.difference is not None
    flips = measured.difference.flips

    def above(of: float) -> float | None:
        return measurement.contrast(measured, of).low

    def below(of: float) -> float | None:
        if flips is not None:
            # The score test gives one end; with before and after exchanged it gives the other.
            return stats.rate_recovery(flips.mirrored, of).low
        high = measurement.contrast(measured, 1 / of).high
        return None if high is None else -high * of

    low = stats.ratio_low(above, share)
    inverse = stats.ratio_low(below, 1 / share)
    return low, 1 / inverse if inverse else None


def _alarm(measured: Measured, exceeds: bool, comparisons: int) -> tuple[bool, str]:
    """Return whether to raise an alarm, and the words where only the noise floor prevents one."""
    p, noise = measured.value.p, measured.value.noise
    if not exceeds or p is None or stats.sidak_p(p, comparisons) >= stats.FAMILY_LEVEL:
        return False, ""
    if noise is None or _drop(measured) > noise + _SLACK:
        return True, ""
    return False, (
        f"; no alarm inside the noise floor: asked twice, the baseline's own model moved by {number(noise)}"
    )


def _drop(measured: Measured) -> float:
    delta = measured.value.delta
    assert delta is not None
    # 0 - 0 is 0, and -0 would stand in the report.
    return 0.0 - delta if measured.value.better == "higher" else delta


def _drop_ends(measured: Measured) -> tuple[float | None, float | None]:
    """Return the 95 % interval of the drop, the better end first."""
    low, high = measured.value.delta_low, measured.value.delta_high
    if measured.value.better == "lower":
        return low, high
    return None if high is None else -high, None if low is None else -low


def _worst(ends: tuple[float | None, float | None]) -> float:
    return math.inf if ends[1] is None else ends[1]


# One for each rule of the catalogue; what they judge has a value and, if they are relative, a difference.
JUDGES: Mapping[Rule, Callable[[Gate, Measured, Measurement, int], _Judged]] = {
    "min": _absolute,
    "max": _absolute,
    "max_drop": _max_drop,
    "recovery": _recovery,
    "above_control": _above_control,
}
