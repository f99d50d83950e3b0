"""Outcomes to measurement to verdict: the only room that asks :mod:`pytest_kbrel.stats`."""

from pytest_kbrel.gates.cases import (
    Outcomes,
    all_decided,
    compare_case,
    decide_aggregate,
    decide_case,
    incomparable_case,
    part_result,
    planned_looks,
    under_waivers,
    verdict_of,
    with_family,
)
from pytest_kbrel.gates.changes import fact_changes, with_moved_facts
from pytest_kbrel.gates.comparison import Comparison, not_comparable
from pytest_kbrel.gates.integrity import Soundness, check_integrity, unsound_suites
from pytest_kbrel.gates.rules import decide
