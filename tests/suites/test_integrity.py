from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from pytest_kbrel.records import Integrity
from pytest_kbrel.suites import load_suite
from pytest_kbrel.suites.gates import LIMITS
from tests.suites.examples import HEAD


def limits(path: Path) -> dict[str, Integrity]:
    """The limits of all cases, by case."""
    return {case.id: case.integrity for case in load_suite(path).cases}


def test_without_the_key_the_defaults_hold(suite_file: Callable[..., Path]) -> None:
    assert set(limits(suite_file(HEAD + "monitor:\nhead_to_tail:\n")).values()) == {Integrity()}


def test_a_probe_states_what_the_suite_states_otherwise(suite_file: Callable[..., Path]) -> None:
    text = (
        HEAD
        + "integrity: {empty: 0.2, errored: 0.01}\n"
        + "monitor:\n  slices: [P36]\n  integrity: {empty: 1, below_random: allowed}\n"
        + "head_to_tail:\n  slices: [culture-tail]\n"
    )
    assert limits(suite_file(text)) == {
        "monitor[P36]": Integrity(empty=1.0, errored=0.01, below_random="allowed"),
        "head_to_tail[culture-tail]": Integrity(empty=0.2, errored=0.01),
    }


def test_a_whole_number_is_a_share_too(suite_file: Callable[..., Path]) -> None:
    (found,) = set(limits(suite_file(HEAD + "integrity: {answered: 1}\nmonitor:\n")).values())
    # Wire form and JSON tell 1 from 1.0.
    assert isinstance(found.answered, float)


def test_every_limit_can_be_stated() -> None:
    assert tuple(LIMITS) == tuple(field.name for field in dataclasses.fields(Integrity))
