"""The reasons of a judgement, from the figures that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_kbrel import stats
from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.gates.integrity import count
from pytest_kbrel.gates.measurement import Measured, Measurement
from pytest_kbrel.records import Gate, Reason, reason

# With fewer groups of equal size than this the test by clusters can hardly reject anything, and the one by facts
# alarms about models that change answer by answer and became no worse.
FEW_CLUSTERS = 8


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


def beside(name: str, figures: Mapping[str, Measured]) -> Iterator[Reason]:
    """Yield what is shown beside a figure, each with how it moved; nothing beside most figures."""
    values = [
        figures[other].value for other in BESIDE.get(name, ()) if other in figures
    ]
    shown = [
        f"{value.name} {value.value:.3f}"
        + (f" ({value.delta:+.3f})" if value.delta else "")
        for value in values
        if value.value is not None
    ]
    if shown:
        yield reason("beside", figures=", ".join(shown))


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
