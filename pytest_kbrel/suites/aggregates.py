"""What a suite file says about several slices at once."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from pytest_kbrel.catalogue.metrics import OVERALL_NEEDS, SETTING_NEEDS, SLICE_METRICS, TOP10, slice_kind
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import BUCKETS, AggregateCase, Case, ProbeName, ReliabilitySettings
from pytest_kbrel.suites.format import WrittenProbe, WrittenSuite
from pytest_kbrel.suites.keys import SETTINGS


def aggregate_cases(written: WrittenProbe, cases: Sequence[Case]) -> tuple[AggregateCase, ...]:
    """Make the cases over the slices of a probe: with two or more slices, or with gates for it.

    That is one over all slices; where a probe asks in several prompt settings, one a setting.
    """
    if written.probe != "reliability":
        return _aggregate(written, cases, "overall")
    settings: dict[str, list[Case]] = {}
    for case in cases:
        assert isinstance(case.settings, ReliabilitySettings)
        settings.setdefault(case.settings.prompt, []).append(case)
    several = len(settings) > 1
    return tuple(
        aggregate
        for prompt, members in settings.items()
        for aggregate in _aggregate(written, members, f"overall-{prompt}" if several else "overall")
    )


def _aggregate(written: WrittenProbe, cases: Sequence[Case], name: str) -> tuple[AggregateCase, ...]:
    if len(cases) < 2 and not written.overall_gates:
        return ()
    needs = OVERALL_NEEDS[written.probe]
    slices = [case.slice for case in cases]
    present = [_part(written.probe, name) for name in slices]
    for gate in written.overall_gates:
        # The top tenth is part of the head and counts in no figure over all facts.
        if written.probe == "head_to_tail" and gate.metric not in needs and not {*present} & {*BUCKETS}:
            message = f"{gate.metric} needs a slice {', '.join(BUCKETS)}, found: {', '.join(slices)}"
            raise SuiteError(f"{message}; allowed: one of those", written.entry.node.path, gate.line)
        for needed in needs.get(gate.metric, ()):
            if needed not in present:
                wanted = needed
                if isinstance(cases[0].settings, ReliabilitySettings):
                    wanted = f"{needed}-{cases[0].settings.prompt}"
                message = f"{gate.metric} needs a slice {wanted}, found: {', '.join(slices)}"
                raise SuiteError(
                    f"{message}; allowed: that slice, or no gate", written.entry.node.path, gate.line
                )
    return (
        AggregateCase(
            id=f"{written.probe}[{name}]",
            suite=cases[0].suite,
            probe=written.probe,
            slice=name,
            members=tuple(case.id for case in cases),
            gates=written.overall_gates,
            line=written.overall_line,
        ),
    )


def pooled_case(written: WrittenSuite, cases: Sequence[Case]) -> tuple[AggregateCase, ...]:
    """Make the case over all slices of all probes: with two or more of them, or with gates for it.

    The top tenth is part of the head and would count twice.
    """
    members = tuple(
        case.id for case in cases if case.probe != "head_to_tail" or _part(case.probe, case.slice) != TOP10
    )
    if written.overall_gates and not members:
        slices = ", ".join(case.id for case in cases)
        raise SuiteError(
            f"'overall' needs a slice that is not part of another, found: {slices}; allowed: one such slice",
            written.root.path,
            written.overall_line,
        )
    if not members or (len(members) < 2 and not written.overall_gates):
        return ()
    return (
        AggregateCase(
            id="pooled[overall]",
            suite=cases[0].suite,
            probe="pooled",
            slice="overall",
            members=members,
            gates=written.overall_gates,
            line=written.overall_line,
        ),
    )


def _part(probe: ProbeName, name: str) -> str:
    """Return the part of a slice's name that figures ask for: the bucket of any domain; seen or unseen."""
    if probe == "head_to_tail":
        return name.rpartition("-")[2]
    return slice_kind(probe, name) if probe == "reliability" else name


def unused_gates(written: WrittenProbe, cases: Sequence[Case]) -> None:
    """Raise on a gate of the probe that no slice has a metric for: it would never be decided."""
    for gate in written.gates:
        if not any(gate.metric in SLICE_METRICS[slice_kind(written.probe, case.slice)] for case in cases):
            slices = ", ".join(case.slice for case in cases)
            message = f"no slice has the metric {gate.metric}, found: {slices}"
            raise SuiteError(
                f"{message}; allowed: a slice with it, or no gate", written.entry.node.path, gate.line
            )


def unasked_gates(written: WrittenProbe, cases: Sequence[Case]) -> None:
    """Raise on a gate whose metric needs a setting that the probe does not have."""
    for gate in (gate for case in cases for gate in case.gates):
        key, value = SETTING_NEEDS[written.probe].get(gate.metric, ("", ""))
        found = written.settings.get(key, SETTINGS[written.probe][key].default) if key else value
        if found != value:
            message = f"{gate.metric} is measured with '{key}: {value}' of {written.probe}, found: {found}"
            raise SuiteError(
                f"{message}; allowed: that setting, or no gate", written.entry.node.path, gate.line
            )


def dated_warnings(written: WrittenSuite, today: datetime.date) -> tuple[str, ...]:
    """Say when the unseen questions of the suite are no longer, or not yet, what they were meant to be."""
    warnings = []
    for probe in written.probes:
        unseen, place = probe.unseen, probe.entry.node.path
        if unseen is not None and today > unseen.expires:
            warnings.append(
                f"{place}:{unseen.expires_line}: the unseen questions expired on {unseen.expires}: a newer "
                "model may know their answers; move 'as_of' and 'expires' on and bless a new baseline"
            )
        if unseen is not None and today < unseen.as_of:
            warnings.append(
                f"{place}:{unseen.as_of_line}: as_of {unseen.as_of} is after today ({today}): the unseen "
                "questions are made for a later day"
            )
    return tuple(warnings)
