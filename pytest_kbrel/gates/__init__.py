"""Outcomes to measurement to verdict: the only room that asks :mod:`pytest_kbrel.stats`."""

from pytest_kbrel.gates.aggregates import decide_aggregate
from pytest_kbrel.gates.cases import compare_case, decide_case, verdict_of
from pytest_kbrel.gates.fact_changes import changes
from pytest_kbrel.gates.family import with_family
from pytest_kbrel.gates.integrity import Soundness, integrity
from pytest_kbrel.gates.measurement import measure
from pytest_kbrel.gates.noise import asked_again
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.gates.silent import silent

__all__ = [
    "Soundness",
    "asked_again",
    "changes",
    "compare_case",
    "decide",
    "decide_aggregate",
    "decide_case",
    "integrity",
    "measure",
    "silent",
    "verdict_of",
    "with_family",
]
