"""The scheduler for xdist, with workers that only note what they are sent."""

import dataclasses
import itertools
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.plugin.activation import may_split
from pytest_kbrel.plugin.parts import dealing_of
from pytest_kbrel.plugin.scheduling import SliceScheduling
from pytest_kbrel.records import Fact, Shard
from tests.made_cases import made_case, made_options, made_suite
from tests.stub_config import StubConfig

PATH = "mini.kb.yaml"


def case_of(name, facts, subject="Chad"):
    made = tuple(
        Fact(
            id=f"{name}{number}",
            relation="P36",
            subject=subject,
            object="b",
            question=f"Which {subject}?",
        )
        for number in range(facts)
    )
    return dataclasses.replace(
        made_case(f"head_to_tail[{name}]", prompt="zero-shot"), facts=made
    )


def item(name):
    return f"{PATH}::head_to_tail[{name}]"


def dealt(sizes, *others, workers=2, **more):
    suite = made_suite(*(case_of(name, facts) for name, facts in sizes.items()))
    more.setdefault("split", True)
    return dealing_of([*others, *map(item, sizes)], [suite], workers, **more)


class Worker:
    """A worker as xdist's controller sees it, and as the worker runs: an item only when it has the next."""

    def __init__(self, number):
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.queue = []
        self.shutting_down = False
        self.ran = []

    def send_runtest_some(self, indices):
        assert not self.shutting_down
        self.queue += indices

    def shutdown(self):
        self.shutting_down = True

    @property
    def can_run(self):
        return len(self.queue) > 1 or bool(self.queue and self.shutting_down)

    def run(self):
        self.ran.append(self.queue.pop(0))
        return self.ran[-1]


class Session:
    """xdist's session over a scheduler, a step at a time."""

    def __init__(self, dealing, workers=2):
        config = SimpleNamespace(
            getvalue=lambda name: ["popen"] * workers,
            getoption=lambda name: None,
            hook=None,
        )
        self.dealing = dealing
        self.scheduler = SliceScheduling(config, None, lambda ids: dealing)
        self.workers = []
        self.crashed = []
        for _ in range(workers):
            self.join()

    def join(self, *more):
        worker = Worker(len(self.workers))
        self.workers.append(worker)
        self.scheduler.add_node(worker)
        self.scheduler.add_node_collection(worker, [*self.dealing.items, *more])
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()
        self._end()

    def step(self, worker):
        number = worker.run()
        self.scheduler.mark_test_complete(worker, number, 0.0)
        self._end()
        return number

    def crash(self, worker):
        """Let a worker crash at what it is to run now, and another take its place."""
        worker.queue.clear()
        worker.shutting_down = True
        if (at := self.scheduler.remove_node(worker)) is not None:
            self.crashed.append(at)
        self.join()

    def able(self):
        return [
            worker
            for worker in self.workers
            if worker in self.scheduler.nodes and worker.can_run
        ]

    def finish(self, draw):
        """Run to the end; return what was run, without fillers."""
        ran = []
        while able := self.able():
            ran.append(self.step(draw.choice(able)))
        assert self.scheduler.tests_finished
        assert not any(
            worker.queue for worker in self.workers if worker in self.scheduler.nodes
        )
        return [number for number in ran if not self.dealing.is_filler(number)]

    def _end(self):
        # As xdist does after every event.
        if self.scheduler.tests_finished:
            for node in self.scheduler.nodes:
                node.shutdown()


SIZES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3), st.integers(1, 400), min_size=1, max_size=12
)


@given(SIZES, st.integers(2, 9))
def test_the_parts_of_a_case_are_all_its_facts_once_and_in_order(sizes, workers):
    dealing = dealt(sizes, workers=workers)
    for name, facts in sizes.items():
        end = 0
        for part in [one for one in dealing.parts if one.item == item(name)]:
            assert part.first == end
            assert part.size > 0
            end += part.size
        assert end in (0, facts)


def test_only_the_facts_of_a_shard_are_dealt():
    shard = Shard(index=1, count=4)
    dealing = dealt({"a": 400}, shard=shard)
    assert sum(part.size for part in dealing.parts) == len(
        shard.facts_of(case_of("a", 400))
    )


@pytest.mark.parametrize(("sizes", "split"), [({"a": 100}, False)])
def test_what_is_not_split(sizes, split):
    assert dealt(sizes, split=split).parts == ()


OTHERS = st.integers(0, 9)


@given(SIZES, OTHERS, st.integers(2, 4), st.randoms())
def test_everything_runs_once_and_an_item_behind_its_parts(
    sizes, others, workers, draw
):
    tests = [f"test_a.py::test_{number}" for number in range(others)]
    dealing = dealt(sizes, *tests, workers=workers)
    ran = Session(dealing, workers).finish(draw)
    start = len(dealing.items) + len(dealing.fillers)
    expected = [*range(len(dealing.items)), *range(start, start + len(dealing.parts))]
    assert sorted(ran) == expected
    for number, part in enumerate(dealing.parts, start):
        assert ran.index(number) < ran.index(dealing.items.index(part.item))


@given(SIZES, OTHERS, st.integers(2, 4), st.randoms())
def test_a_crashed_worker_costs_no_more_than_its_item(sizes, others, workers, draw):
    tests = [f"test_a.py::test_{number}" for number in range(others)]
    dealing = dealt(sizes, *tests, workers=workers)
    session = Session(dealing, workers)
    for _ in range(draw.randrange(5)):
        if able := session.able():
            session.step(draw.choice(able))
    if able := session.able():
        session.crash(draw.choice(able))
    session.finish(draw)
    ran = [
        number
        for worker in session.workers
        for number in worker.ran
        if number < len(dealing.items)
    ]
    assert sorted([*map(dealing.items.__getitem__, ran), *session.crashed]) == sorted(
        dealing.items
    )
    # At a part nothing is lost, and a filler is nothing.
    assert len(session.crashed) <= 1


@given(st.randoms())
def test_ordinary_tests_follow_each_other(draw):
    # With a filler between two, the fixtures of their module would be set up anew.
    dealing = dealt({"a": 400}, *(f"test_a.py::test_{number}" for number in range(20)))
    session = Session(dealing)
    session.finish(draw)
    between = 0
    for worker in session.workers:
        ran = [number if number < 20 else -1 for number in worker.ran]
        plain = [position for position, number in enumerate(ran) if number >= 0]
        between += sum(
            after > before + 1 for before, after in itertools.pairwise(plain)
        )
    # The item may come to a worker in the midst of them, and both may have waited for it.
    assert between <= 2


def running(session, worker):
    return next(
        number for number in worker.queue if not session.dealing.is_filler(number)
    )


def test_a_part_that_a_worker_crashed_at_is_dealt_again_and_fails_its_case_the_second_time():
    dealing = dealt({"a": 400, "b": 5})
    session = Session(dealing)
    first = session.workers[0]
    number = running(session, first)
    assert dealing.part(number) is not None
    session.crash(first)
    assert session.crashed == []
    again = next(worker for worker in session.workers[1:] if number in worker.queue)
    session.crash(again)
    assert session.crashed == [item("a")]
    ran = session.finish(random.Random(0))
    # Of the others only the one that was being run then is.
    assert [dealing.items[number] for number in ran if number < len(dealing.items)] == [
        item("b")
    ]
    assert len([number for number in ran if dealing.part(number)]) == 1


def test_without_suites_xdist_deals_as_ever():
    tests = [f"test_a.py::test_{number}" for number in range(12)]
    session = Session(dealt({}, *tests))
    assert [worker.queue for worker in session.workers] == [[0, 1], [2, 3]]
    assert sorted(session.finish(random.Random(0))) == list(range(12))


@pytest.mark.parametrize(
    ("given", "maxfail", "splits"),
    [
        ({}, 0, True),
        ({}, 1, False),
        ({"until_decided": "all"}, 0, False),
        ({"from_run": Path("run")}, 0, False),
        ({"model": "answers/some.jsonl"}, 0, False),
    ],
)
def test_which_sessions_split_cases(tmp_path, given, maxfail, splits):
    settings = made_options(**{"use_cache": tmp_path, **given})
    config = StubConfig(tmp_path, others={"maxfail": maxfail})
    assert may_split(config, settings) == splits


def test_a_worker_that_takes_anothers_place_with_other_items_is_ended():
    session = Session(dealt({"a": 200, "b": 3}))
    session.scheduler.log = lambda *text: None
    first = session.able()[0]
    first.queue.clear()
    first.shutting_down = True
    session.scheduler.remove_node(first)
    # Somebody has edited the suite meanwhile.
    session.join(item("new"))
    assert session.workers[-1].shutting_down
    session.finish(random.Random(0))
    assert session.scheduler.tests_finished
