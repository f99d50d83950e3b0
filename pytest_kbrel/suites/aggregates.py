"""What a suite file says about several slices at once."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import AggregateCase, Case
from pytest_kbrel.suites.format import WrittenProbe, WrittenSuite
from pytest_kbrel.suites.names import OVERALL_NEEDS, SLICE_METRICS, slice_kind


def aggregate_case(written: WrittenProbe, cases: Sequence[Case]) -> tuple[AggregateCase, ...]:
    """Make the case over all slices of a probe: with two or more slices, or with gates for it."""
    if len(cases) < 2 and not written.overall_gates:
        return ()
    needs = OVERALL_NEEDS[written.probe]
    slices = [case.slice for case in cases]
    # Slices of head_to_tail are domain-bucket, and the figure needs the bucket of any domain.
    present = [name.rpartition("-")[2] for name in slices] if written.probe == "head_to_tail" else slices
    for gate in written.overall_gates:
        for needed in needs.get(gate.metric, ()):
            if needed not in present:
                message = f"{gate.metric} needs a slice {needed}, found: {', '.join(slices)}"
                raise SuiteError(
                    f"{message}; allowed: that slice, or no gate", written.entry.node.path, gate.line
                )
    return (
        AggregateCase(
            id=f"{written.probe}[overall]",
            suite=cases[0].suite,
            probe=written.probe,
            slice="overall",
            members=tuple(case.id for case in cases),
            gates=written.overall_gates,
            line=written.overall_line,
        ),
    )


def unused_gates(written: WrittenProbe, cases: Sequence[Case]) -> None:
    """Raise on a gate of the probe that no slice has a metric for: it would never be decided."""
    for gate in written.gates:
        if not any(gate.metric in SLICE_METRICS[slice_kind(written.probe, case.slice)] for case in cases):
            slices = ", ".join(case.slice for case in cases)
            message = f"no slice has the metric {gate.metric}, found: {slices}"
            raise SuiteError(
                f"{message}; allowed: a slice with it, or no gate", written.entry.node.path, gate.line
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
