"""The sentences in which a judgement gives its reasons."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel import stats
from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.gates.integrity import count
from pytest_kbrel.gates.measurement import Measured, Measurement
from pytest_kbrel.records import MetricValue

# With fewer groups of equal size than this the test by clusters can hardly reject anything, and the one by facts
# alarms about models that change answer by answer and became no worse.
FEW_CLUSTERS = 8


def moved(measured: Measured) -> str:
    """Return how the figure moved against the baseline, over how many facts, and how surely."""
    value, difference = measured.value, measured.difference
    assert value.delta is not None
    assert value.baseline is not None
    assert difference is not None
    of = (
        f" of the baseline's {value.paired + measured.unasked}"
        if measured.unasked
        else ""
    )
    over = f"paired over {count(value.paired, 'fact')}{of}"
    if measured.published is not None:
        over = f"unpaired, against a published figure: {measured.published.source}"
    ends = (value.delta_low, value.delta_high)
    within = "" if ends == (None, None) else f" {interval(*ends)}"
    if value.delta == 0:
        note = difference.estimate.note
        about = f"{note}, " if note else ""
        return f"{value.name} did not change{within} from {number(value.baseline)} ({about}{over})"
    verb = "fell" if value.delta < 0 else "rose"
    details = [over]
    if value.p is not None:
        # Beside it stands the p of the gate, which is of a drop beyond what the gate states.
        shown = "< 0.0001" if value.p < 0.0001 else f"{value.p:.4f}"
        details.append(f"p of no drop {shown}")
    if difference.estimate.note:
        details.append(difference.estimate.note)
    now = value.baseline + value.delta
    return (
        f"{value.name} {verb} by {number(abs(value.delta))}{within} from {number(value.baseline)} "
        f"to {number(now)} ({', '.join(details)})"
    )


def beside(name: str, figures: Mapping[str, Measured]) -> str:
    """Return what is shown beside a figure, each with how it moved; nothing beside most figures."""
    values = [
        figures[other].value for other in BESIDE.get(name, ()) if other in figures
    ]
    shown = [
        f"{value.name} {number(value.value)}"
        + (f" ({value.delta:+.3f})" if value.delta else "")
        for value in values
        if value.value is not None
    ]
    return f"; beside it {', '.join(shown)}" if shown else ""


def left_out(measured: Measured, measurement: Measurement) -> str:
    """Return how many of the candidate's facts the baseline lacks; nothing where it has them all."""
    if not measurement.pairings:
        return ""
    members = [member for member, _ in measured.figure.columns]
    added = {fact for member in members for fact in measurement.pairings[member].added}
    return (
        f"; {count(len(added), 'fact')} not in the baseline left out" if added else ""
    )


def describe_open_end(
    measured: Measured,
    *,
    beyond: float,
    clear: float | None = None,
) -> str:
    """Return what is missing for a judgement, and how many facts would bring it.

    ``beyond`` is the drop above which an alarm is raised once it is sure. ``clear`` is how far the drop
    stands from its tolerance; a drop that is at or over it can only come to an alarm.
    """
    assert measured.difference is not None
    difference = measured.difference
    shown = power(measured, beyond)
    if measured.may_pass_unlost:
        return shown + needed(stats.FEWEST_UNLOST)
    # More facts of ours make the paper's own figure no more certain.
    if not difference.estimate.se or measured.published is not None:
        return shown
    if clear is not None and clear > 0:
        return shown + needed(stats.facts_to_clear(difference, clear))
    return shown + needed(stats.facts_to_alarm(difference, beyond, measured.alpha))


def few_clusters(measured: Measured) -> str:
    """Return that too few answers share the facts to decide; nothing where there are enough."""
    difference = measured.difference
    if (
        difference is None
        or difference.clustered is None
        or difference.clustered.effective >= FEW_CLUSTERS
    ):
        return ""
    effective = difference.clustered.effective
    return (
        f"; not decided: its facts share so few answers that they count as {effective:.1f} groups, and a gate that "
        f"compares needs {FEW_CLUSTERS}"
    )


def power(measured: Measured, beyond: float) -> str:
    """Return which drop would be found as one beyond ``beyond``, if any; nothing where that is not known."""
    assert measured.difference is not None
    mde = stats.detectable(measured.difference, beyond, measured.alpha)
    if mde is None:
        return ""
    word = "drop" if measured.value.better == "higher" else "rise"
    if mde > measured.figure.span:
        return f"; no {word} would be found with 80 % power"
    return f"; a {word} of {number(mde)} would be found with 80 % power"


def needed(facts: int | None) -> str:
    """Return how many facts would decide; ``None``: no number that could be asked."""
    if facts is None:
        return "; no number of facts below a million would decide"
    return f"; about {facts:,} facts would decide, were the difference the same"


def number(value: float) -> str:
    """Return a figure as the reasons print it."""
    return f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval as the reasons print it; a missing end is infinite."""
    ends = (
        "-inf" if low is None else number(low),
        "inf" if high is None else number(high),
    )
    return f"[{ends[0]}, {ends[1]}]"


def between(value: MetricValue) -> str:
    """Return the interval of a metric behind its value; nothing where it has none."""
    return f" {interval(value.low, value.high)}" if value.low is not None else ""
