"""Waivers and gates over everything, from the file to the cases."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import Gate, Waiver
from pytest_kbrel.suites import load_suite
from tests.suites.examples import HEAD

Write = Callable[..., Path]
TEXT = (
    HEAD
    + """\
monitor: {slices: [P36, P50]}
reliability:
  slices: [seen-zero-shot, unseen-zero-shot]
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


def test_each_case_gets_the_waivers_that_concern_it(suite_file: Write) -> None:
    suite = load_suite(suite_file(TEXT), today=datetime.date(2026, 12, 1))
    of = {case.id: case.waivers for case in (*suite.cases, *suite.aggregates)}
    moved = Waiver(
        fact="c3", owner="Ann", reason="the capital moved", expires="2026-12-31", line=8
    )
    assert of == {
        "monitor[P36]": (moved,),
        "monitor[P50]": (
            Waiver(
                case="monitor[P50]",
                owner="Bo",
                reason="known",
                expires="2026-12-30",
                line=12,
            ),
        ),
        "reliability[seen-zero-shot]": (moved,),
        "reliability[unseen-zero-shot]": (),
        "monitor[overall]": (),
        "reliability[overall]": (
            Waiver(
                case="reliability[overall]",
                owner="Bo",
                reason="known",
                expires="2027-01-01",
                line=13,
            ),
        ),
        "pooled[overall]": (),
    }


def test_a_waiver_holds_to_the_end_of_its_day(suite_file: Write) -> None:
    def expired(today: datetime.date) -> set[str]:
        suite = load_suite(suite_file(TEXT), today=today)
        cases = (*suite.cases, *suite.aggregates)
        return {
            of.fact or of.case for case in cases for of in case.waivers if of.expired
        }

    assert expired(LAST) == {"monitor[P50]"}
    assert expired(LAST + datetime.timedelta(1)) == {"monitor[P50]", "c3"}


def test_a_fact_that_a_limit_leaves_out_may_be_waived(suite_file: Write) -> None:
    path = suite_file(TEXT)
    unseen = load_suite(path).cases[-1].facts
    path.write_text(TEXT.replace("fact: c3", f"fact: {unseen[0].id}"), "utf-8")
    for number in range(3):
        # Whatever the seed and the limit leave of the slice, the fact is one of the suite's.
        load_suite(path, limit=1, seed=number)
    whole = load_suite(path).cases[-1]
    assert [of.fact for of in whole.waivers] == [unseen[0].id]
    path.write_text(TEXT.replace("fact: c3", "fact: nobody"), "utf-8")
    with pytest.raises(
        SuiteError, match=r":8: unknown fact 'nobody' in waivers; .* 22 facts"
    ):
        load_suite(path, limit=1)


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


def test_the_top_tenth_counts_once(suite_file: Write) -> None:
    text = (
        HEAD
        + "head_to_tail: {slices: [geography-head, geography-top10, geography-tail]}\n"
    )
    assert load_suite(suite_file(text)).aggregates[-1].members == (
        "head_to_tail[geography-head]",
        "head_to_tail[geography-tail]",
    )
