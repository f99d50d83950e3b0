"""Outcomes to measurement to verdict: the only room that asks :mod:`pytest_kbrel.stats`."""

from pytest_kbrel.gates.aggregates import decide_aggregate
from pytest_kbrel.gates.cases import decide_case, integrity, verdict_of
from pytest_kbrel.gates.judging import decide
from pytest_kbrel.gates.measuring import changes, measure

__all__ = ["changes", "decide", "decide_aggregate", "decide_case", "integrity", "measure", "verdict_of"]
