"""Waivers and gates over everything, from the file to the cases."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

from pytest_kbrel.records import Gate
from pytest_kbrel.suites import load_suite
from tests.suites.examples import HEAD

Write = Callable[..., Path]
TEXT = (
    HEAD
    + """\
monitor: {slices: [P36, P50]}
reliability:
  slices: [known-zero-shot, unseen-zero-shot]
  unseen: {count: 6, as_of: 2026-11-01, expires: 2028-01-01}
waivers:
  - fact: c3
    owner: Ann
    reason: the capital moved
    expires: 2026-12-31
  - {slice: "monitor[P50]", owner: Bo, reason: known, expires: "2026-12-30"}
  - {slice: "reliability[overall]", owner: Bo, reason: known, expires: 2027-01-01}
"""
)
LAST = datetime.date(2026, 12, 31)


def test_a_waiver_holds_to_the_end_of_its_day(suite_file: Write) -> None:
    def expired(today: datetime.date) -> set[str]:
        suite = load_suite(suite_file(TEXT), today=today)
        cases = (*suite.cases, *suite.aggregates)
        return {
            of.fact or of.case for case in cases for of in case.waivers if of.expired
        }

    assert expired(LAST) == {"monitor[P50]"}
    assert expired(LAST + datetime.timedelta(1)) == {"monitor[P50]", "c3"}


def test_one_case_is_over_all_slices(suite_file: Write) -> None:
    suite = load_suite(
        suite_file(TEXT + "overall: {gates: {as_expected: {max_drop: 0.01}}}\n")
    )
    pooled = suite.aggregates[-1]
    assert (pooled.id, pooled.probe, pooled.slice, pooled.line) == (
        "pooled[overall]",
        "pooled",
        "overall",
        14,
    )
    assert pooled.members == tuple(case.id for case in suite.cases)
    assert pooled.gates == (
        Gate(metric="as_expected", rule="max_drop", bound=0.01, line=14),
    )
