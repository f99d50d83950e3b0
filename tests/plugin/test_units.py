"""Units of work: the same cut in all processes, and claims that outlive no process."""

import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.probes import CHUNK_FACTS, chunk_size
from pytest_kbrel.records import Fact, Shard
from pytest_kbrel.session.units import Unit, claim, units_of
from pytest_kbrel.store.run_store import RunStore
from tests.made_cases import made_case
from tests.plugin.test_worker import made, models, with_facts

__all__ = ["models"]

CASE = "mini.kb.yaml::head_to_tail[a]"
SIZES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3), st.integers(1, 3000), max_size=6
)


def case_of(name, facts):
    made = tuple(
        Fact(id=f"{name}{n}", relation="P36", subject="Chad", object="b", question="?")
        for n in range(facts)
    )
    case = made_case(f"head_to_tail[{name}]", prompt="zero-shot")
    return dataclasses.replace(case, facts=made)


@given(SIZES, st.integers(1, 9))
def test_the_units_of_a_case_are_all_its_facts_once_and_each_is_within_a_chunk(
    sizes, workers
):
    cases = [case_of(name, facts) for name, facts in sizes.items()]
    units = units_of(cases, workers, None)
    assert units == units_of(cases[::-1], workers, None)
    for case in cases:
        end, chunk = 0, chunk_size(case)
        for unit in units[f"{case.suite}::{case.id}"]:
            assert unit.first == end
            end += unit.size
            assert unit.chunk == unit.first // chunk == (end - 1) // chunk
        assert end == len(case.facts)


def test_a_shard_has_the_units_of_its_facts():
    case, shard = case_of("a", 400), Shard(index=1, count=4)
    (units,) = units_of([case], 2, shard).values()
    assert sum(unit.size for unit in units) == len(shard.facts_of(case))


DIES = """
import os, sys
from pathlib import Path
from pytest_kbrel.session.units import Unit, claim
from pytest_kbrel.store.run_store import RunStore

unit = Unit(first=0, size=16, chunk=0)
with claim(RunStore(Path(sys.argv[1])), sys.argv[2], unit) as is_mine:
    assert is_mine
    if len(sys.argv) > 3:
        print(flush=True)
        input()
    os._exit(1)
"""


def test_a_claim_holds_as_long_as_its_process_lives_and_two_deaths_are_enough(tmp_path):
    unit, store = Unit(first=0, size=16, chunk=0), RunStore(tmp_path / "run.sqlite")
    line = [sys.executable, "-c", DIES, str(store.path), CASE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # An error is no death.
    with pytest.raises(ZeroDivisionError), claim(store, CASE, unit):
        raise ZeroDivisionError
    with subprocess.Popen([*line, "wait"], **pipes) as other:
        other.stdout.readline()
        with claim(store, CASE, unit) as is_mine:
            assert not is_mine
        other.kill()
    assert subprocess.run(line, check=False).returncode == 1
    died = "2 workers died while they asked facts 1 to 16 of mini"
    with pytest.raises(KbrelError, match=died), claim(store, CASE, unit):
        raise AssertionError


ASKED = with_facts(
    "reliability[known-zero-shot]", prompt="zero-shot", choices=3, distractors=3
)
CUTS = [[(0, 2), (2, 2)], [(0, 1), (1, 1), (2, 2)]]


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setitem(CHUNK_FACTS, "reliability", 2)


def runners(folder, cuts, **settings):
    """Return two workers that share the case in these units."""
    folder.mkdir(exist_ok=True)
    units = [Unit(first=first, size=size, chunk=first // 2) for first, size in cuts]
    of = []
    for name in ("gw0", "gw1"):
        runner = made(
            folder, ASKED, worker={"workerid": name, "workercount": 2}, **settings
        )
        runner.units = {f"mini.kb.yaml::{ASKED.id}": units} if units else {}
        of.append(runner)
    return of


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("base", ["", "hf/a/b"])
def test_a_case_in_units_is_the_whole_case_whoever_asked_them(
    tmp_path, models, small_chunks, cuts, base
):
    decided = []
    for name, of in (("whole", ()), ("ahead", cuts), ("late", cuts)):
        first, second = runners(tmp_path / name, of, baseline_model=base)
        if name == "ahead":
            # The second asks one of them, and the first the others.
            second._ask_units([ASKED], 0)
            first.ask_units("mini.kb.yaml")
        result = second.decide(ASKED)
        assert bool(result.base.rows) == bool(base)
        second.store.dump(tmp_path / "out.jsonl", [])
        lines = (tmp_path / "out.jsonl").read_bytes()
        decided.append((dataclasses.replace(result, duration=0.0), lines))
    assert decided[0] == decided[1] == decided[2]
