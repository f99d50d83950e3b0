"""Outcomes to measurement to verdict: the only room that asks :mod:`pytest_kbrel.stats`."""

from pytest_kbrel.gates.aggregates import decide_aggregate
from pytest_kbrel.gates.cases import (
    Outcomes,
    compare_case,
    decide_case,
    incomparable_case,
    part_result,
    verdict_of,
)
from pytest_kbrel.gates.changes import fact_changes
from pytest_kbrel.gates.comparison import Comparison, not_comparable
from pytest_kbrel.gates.family import with_family
from pytest_kbrel.gates.integrity import Soundness, check_integrity, unsound_suites
from pytest_kbrel.gates.moved_facts import with_moved_facts
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.gates.sequential import (
    is_decided,
    planned_looks,
    with_looks_told,
)
