"""Parts of a case that workers ask and one of them joins, without a session."""

import dataclasses

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.probes import CHUNK_FACTS
from tests.plugin.test_worker import made, models, with_facts

__all__ = ["models"]

CASE = with_facts(
    "reliability[known-zero-shot]", prompt="zero-shot", choices=3, distractors=3
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setitem(CHUNK_FACTS, "reliability", 2)


def without_times(result):
    return dataclasses.replace(result, duration=0.0)


def both(folder, *parts, **settings):
    """Return result and responses of the whole case, and of the case whose parts two workers asked."""
    decided = []
    for name, cuts in (("whole", ()), ("split", parts)):
        run = folder / name
        run.mkdir()
        workers = [
            made(run, CASE, worker={"workerid": f"gw{number}"}, **settings)
            for number in range(2)
        ]
        for number, part in enumerate(cuts):
            workers[number % 2].ask_part(CASE, *part)
        result = workers[1].decide(CASE)
        decided.append((without_times(result), workers[1].spool_path.read_bytes()))
    return tuple(decided)


CUTS = [[(0, 4)], [(0, 2), (2, 2)], [(2, 2), (0, 1), (1, 1)], [(0, 3), (3, 1)]]


@pytest.mark.parametrize("cuts", CUTS)
def test_a_case_in_parts_is_the_whole_case(tmp_path, models, cuts):
    whole, split = both(tmp_path, *cuts)
    assert split == whole


@pytest.mark.parametrize("missing", range(4))
def test_facts_of_a_part_that_was_not_ended_are_asked_by_who_decides(
    tmp_path, models, missing
):
    whole, split = both(
        tmp_path, *[(first, 1) for first in range(4) if first != missing]
    )
    assert split == whole


def test_the_baseline_model_answers_in_parts_too(tmp_path, models):
    whole, split = both(tmp_path, (0, 1), (1, 3), baseline_model="hf/a/b")
    assert split == whole
    assert whole[0].base.rows


def test_nothing_is_asked_twice(tmp_path, models):
    worker = made(tmp_path, CASE, use_cache=None)
    worker.ask_part(CASE, 0, 4)
    asked_in_parts = len(models[worker.settings.model].requests)
    worker.decide(CASE)
    assert len(models[worker.settings.model].requests) == asked_in_parts


def test_parts_that_overlap_are_an_error_and_no_larger_case(tmp_path, models):
    worker = made(tmp_path, CASE)
    worker.ask_part(CASE, 0, 2)
    worker.ask_part(CASE, 1, 3)
    with pytest.raises(
        KbrelError, match=r"the parts of .* changed before all workers had read it"
    ):
        worker.decide(CASE)


def test_a_disk_that_takes_no_part_is_an_error(tmp_path, models):
    worker = made(tmp_path, CASE)
    worker.spool_path.parent.parent.mkdir(parents=True)
    worker.spool_path.parent.write_text("no folder")
    with pytest.raises(KbrelError, match="responses cannot be kept"):
        worker.ask_part(CASE, 0, 4)
