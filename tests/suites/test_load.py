from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_kbrel.records import (
    Gate,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
)
from pytest_kbrel.serialization import to_wire
from pytest_kbrel.suites import load_suite
from tests.suites.conftest import world_facts
from tests.suites.examples import GOOD, HEAD

Write = Callable[..., Path]


@pytest.mark.parametrize("name", GOOD)
def test_right_suites_load(name: str, suite_file: Write) -> None:
    suite = load_suite(suite_file(GOOD[name]))
    assert suite.name == "t"
    assert to_wire(suite)["cases"]


def test_every_setting_arrives(suite_file: Write) -> None:
    suite = load_suite(suite_file(GOOD["all keys"]), nodeid_path="suites/t.kb.yaml")
    assert suite.path == "suites/t.kb.yaml"
    assert [case.id for case in suite.cases] == [
        "monitor[P36]",
        "monitor[P50]",
        "head_to_tail[geography-head]",
        "head_to_tail[geography-tail]",
        "reliability[known-zero-shot]",
        "reliability[unseen-zero-shot]",
    ]
    assert [case.settings for case in suite.cases[::2]] == [
        MonitorSettings(variant="published", negatives=2, max_new_tokens=9),
        HeadToTailSettings(prompt="zero-shot", max_new_tokens=20),
        ReliabilitySettings(
            prompt="zero-shot", choices=10, distractors=4, max_new_tokens=8
        ),
    ]
    assert {(case.suite, case.seed) for case in suite.cases} == {
        ("suites/t.kb.yaml", 7)
    }
    assert [len(case.facts) for case in suite.cases] == [5, 5, 1, 3, 4, 6]
    assert {case.line for case in suite.cases} == {6, 14, 22}
    assert [
        relation.id for case in suite.cases[::2] for relation in case.relations
    ] == ["P36"] * 3
    assert all(
        fact.object is None and len(fact.negatives) == 4
        for fact in suite.cases[-1].facts
    )
    assert all(len(fact.negatives) == 4 for fact in suite.cases[-2].facts)
    assert suite.cases[0].gates == (
        Gate(metric="monitor", rule="max", bound=0.6, line=11),
        Gate(metric="accuracy", rule="min", bound=0.4, line=11),
        Gate(metric="accuracy", rule="max_drop", bound=0.02, line=11),
        Gate(metric="anchor_prob", rule="recovery", bound=0.98, line=11),
    )


def test_aggregates(suite_file: Write) -> None:
    suite = load_suite(suite_file(GOOD["all keys"]))
    assert [(a.id, a.slice, a.line) for a in suite.aggregates] == [
        ("monitor[overall]", "overall", 12),
        ("head_to_tail[overall]", "overall", 20),
        ("reliability[overall]", "overall", 30),
        ("pooled[overall]", "overall", 1),
    ]
    assert suite.aggregates[1].members == (
        "head_to_tail[geography-head]",
        "head_to_tail[geography-tail]",
    )
    assert suite.aggregates[1].gates == (
        Gate(metric="gap", rule="max", bound=0.6, line=20),
        Gate(metric="missing", rule="max", bound=1.0, line=20),
    )
    one = load_suite(suite_file(HEAD + "monitor: {slices: [P36]}\n"))
    assert one.aggregates == ()
    two = load_suite(suite_file(HEAD + "monitor:\n"))
    assert [a.id for a in two.aggregates] == ["monitor[overall]", "pooled[overall]"]
    gated = load_suite(
        suite_file(HEAD + "monitor: {slices: [P36], overall: {gates: {pfd: 1}}}\n")
    )
    assert gated.aggregates[0].members == ("monitor[P36]",)


def test_default_slices_are_those_with_facts(suite_file: Write) -> None:
    suite = load_suite(suite_file(HEAD + "monitor:\nhead_to_tail:\nreliability:\n"))
    assert [case.id for case in suite.cases] == [
        "monitor[P36]",
        "monitor[P50]",
        "head_to_tail[geography-head]",
        "head_to_tail[geography-torso]",
        "head_to_tail[geography-tail]",
        "head_to_tail[culture-head]",
        "head_to_tail[culture-torso]",
        "head_to_tail[culture-tail]",
        "reliability[known]",
    ]
    assert {case.line for case in suite.cases} == {3, 4, 5}


def test_slice_gates_override_by_metric_and_rule(suite_file: Write) -> None:
    text = """\
monitor:
  gates:
    accuracy: {min: 0.4, max_drop: 0.1}
  slices:
    P36:
      gates:
        accuracy: {min: 0.2}
        pfd: 0.5
    P50:
"""
    first, second = load_suite(suite_file(HEAD + text)).cases
    assert first.gates == (
        Gate(metric="accuracy", rule="min", bound=0.2, line=9),
        Gate(metric="accuracy", rule="max_drop", bound=0.1, line=5),
        Gate(metric="pfd", rule="max", bound=0.5, line=10),
    )
    assert [(gate.rule, gate.bound) for gate in second.gates] == [
        ("min", 0.4),
        ("max_drop", 0.1),
    ]
    assert (first.line, second.line) == (7, 11)


def test_merged_gates(suite_file: Write) -> None:
    text = """\
monitor:
  slices:
    P36: &strict
      gates: {accuracy: {min: 0.5}}
    P50:
      <<: *strict
      limit: 2
"""
    first, second = load_suite(suite_file(HEAD + text)).cases
    assert first.gates == second.gates
    assert len(second.facts) == 2


def test_limits_nest(suite_file: Write) -> None:
    path = suite_file(HEAD + "monitor: {slices: [P36], limit: 6}\n")
    ids = [
        [fact.id for fact in load_suite(path, limit=limit).cases[0].facts]
        for limit in (None, 4, 0.5, 2, 1)
    ]
    assert [len(result) for result in ids] == [6, 4, 3, 2, 1]
    for larger, smaller in pairwise(ids):
        assert set(smaller) < set(larger)
    assert all(result == sorted(result) for result in ids)
    assert ids[0] != [fact.id for fact in load_suite(path, seed=1).cases[0].facts]
    assert load_suite(path, seed=1).cases[0].seed == 1


def test_a_limited_run_asks_what_the_full_one_asks(suite_file: Write) -> None:
    facts = world_facts()
    facts[0]["negatives"] = ["Bergen", "Turin"]
    path = suite_file(HEAD + "monitor: {slices: [P36]}\n", facts)
    full = load_suite(path).cases[0]
    assert full.settings == MonitorSettings(negatives=2)
    assert full.facts[0].negatives == ("Bergen", "Turin")
    by_id = {fact.id: fact for fact in full.facts}
    for limit in (1, 3):
        part = load_suite(path, limit=limit).cases[0]
        assert part.settings == full.settings
        assert all(by_id[fact.id] == fact for fact in part.facts)


def test_dates_only_warn(suite_file: Write) -> None:
    path = suite_file(GOOD["all keys"])
    suites = [
        load_suite(path, today=datetime.date(year, 12, 1))
        for year in (2025, 2026, 2028)
    ]
    assert [len(suite.warnings) for suite in suites] == [1, 0, 1]
    assert (
        suites[0]
        .warnings[0]
        .startswith(f"{path}:28: as_of 2026-11-01 is after today (2025-12-01)")
    )
    assert (
        suites[2]
        .warnings[0]
        .startswith(f"{path}:28: the unseen questions expired on 2028-01-01")
    )
    assert suites[0].cases == suites[1].cases == suites[2].cases
    assert load_suite(path, today=datetime.date(2028, 1, 1)).warnings == ()


def test_hash_seed_and_process_do_not_matter(suite_file: Write) -> None:
    path = suite_file(GOOD["all keys"])
    code = (
        "import sys, json, pathlib; from pytest_kbrel.suites import load_suite; "
        "from pytest_kbrel.serialization import to_wire; "
        "print(json.dumps(to_wire(load_suite(pathlib.Path(sys.argv[1])))))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "77")
    ]
    assert printed[0] == printed[1] == printed[2]
    assert len(printed[0]) > 1000
