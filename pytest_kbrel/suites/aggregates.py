"""What a suite file says about several slices at once."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from pytest_kbrel.catalogue.metrics import SLICE_METRICS
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import AggregateCase, Case
from pytest_kbrel.suites.parse import WrittenProbe, WrittenSuite


def aggregate_cases(written: WrittenProbe, cases: Sequence[Case]) -> tuple[AggregateCase, ...]:
    """Make the cases over the slices of a probe: with two or more slices, or with gates for it.

    That is one over all slices; where a probe asks in several prompt settings, one a setting.
    """
    if not written.probe.overall_by:
        return _aggregate(written, cases, "overall")
    settings: dict[str, list[Case]] = {}
    for case in cases:
        settings.setdefault(getattr(case.settings, written.probe.overall_by), []).append(case)
    several = len(settings) > 1
    return tuple(
        aggregate
        for setting, members in settings.items()
        for aggregate in _aggregate(written, members, f"overall-{setting}" if several else "overall")
    )


def _aggregate(written: WrittenProbe, cases: Sequence[Case], name: str) -> tuple[AggregateCase, ...]:
    if len(cases) < 2 and not written.overall_gates:
        return ()
    probe = written.probe
    needs = probe.overall_needs
    slices = [case.slice for case in cases]
    present = [probe.part(name) for name in slices]
    for gate in written.overall_gates:
        if probe.any_part and gate.metric not in needs and not {*present} & {*probe.any_part}:
            message = f"{gate.metric} needs a slice {', '.join(probe.any_part)}, found: {', '.join(slices)}"
            raise SuiteError(f"{message}; allowed: one of those", written.entry.node.path, gate.line)
        for needed in needs.get(gate.metric, ()):
            if needed not in present:
                setting = getattr(cases[0].settings, probe.overall_by) if probe.overall_by else ""
                wanted = f"{needed}-{setting}" if setting else needed
                message = f"{gate.metric} needs a slice {wanted}, found: {', '.join(slices)}"
                raise SuiteError(
                    f"{message}; allowed: that slice, or no gate", written.entry.node.path, gate.line
                )
    return (
        AggregateCase(
            id=f"{probe.name}[{name}]",
            suite=cases[0].suite,
            probe=probe.name,
            slice=name,
            members=tuple(case.id for case in cases),
            gates=written.overall_gates,
            line=written.overall_line,
        ),
    )


def pooled_case(written: WrittenSuite, cases: Sequence[Case]) -> tuple[AggregateCase, ...]:
    """Make the case over all slices of all probes: with two or more of them, or with gates for it.

    A slice that is part of another (the top tenth is part of the head) would count twice.
    """
    probes = [(case, PROBES[case.probe]) for case in cases]
    members = tuple(case.id for case, probe in probes if probe.part(case.slice) not in probe.subsets)
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


def unused_gates(written: WrittenProbe, cases: Sequence[Case]) -> None:
    """Raise on a gate of the probe that no slice has a metric for: it would never be decided."""
    for gate in written.gates:
        if not any(gate.metric in SLICE_METRICS[written.probe.kind(case.slice)] for case in cases):
            slices = ", ".join(case.slice for case in cases)
            message = f"no slice has the metric {gate.metric}, found: {slices}"
            raise SuiteError(
                f"{message}; allowed: a slice with it, or no gate", written.entry.node.path, gate.line
            )


def unasked_gates(written: WrittenProbe, cases: Sequence[Case]) -> None:
    """Raise on a gate whose metric needs a setting that the probe does not have."""
    for gate in (gate for case in cases for gate in case.gates):
        key, value = written.probe.setting_needs.get(gate.metric, ("", ""))
        found = written.settings.get(key, written.probe.options[key].default) if key else value
        if found != value:
            name = written.probe.name
            message = f"{gate.metric} is measured with '{key}: {value}' of {name}, found: {found}"
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
