"""The error of a model as judge behind a measurement: which figures it concerns, and what it does to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_kbrel.catalogue.metrics import JUDGED
from pytest_kbrel.gates.measurement import Measured, Measurement
from pytest_kbrel.records import JudgeError


def with_judge_error(
    measurement: Measurement, errors: Sequence[JudgeError | None]
) -> Measurement:
    """Return the measurement whose changes are corrected for the judge of its members, one error for each.

    Members that rules judge have none, and a figure over one of these stays as it is; so does a comparison
    with a paper, whose answers another judged.
    """
    return dataclasses.replace(
        measurement,
        figures=tuple(
            _with_error(measured, errors) for measured in measurement.figures
        ),
    )


def _with_error(measured: Measured, errors: Sequence[JudgeError | None]) -> Measured:
    members = [errors[member] for member, _ in measured.figure.columns]
    error = members[0]
    if error is None or not all(members) or measured.figure.name not in JUDGED:
        return measured
    if measured.difference is None or measured.published is not None:
        return measured
    judged = dataclasses.replace(measured, judge_error=error)
    mde = measured.value.mde
    value = dataclasses.replace(
        measured.value, mde=None if mde is None else judged.true_change(mde)
    )
    return dataclasses.replace(judged, value=value)
