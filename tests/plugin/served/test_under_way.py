"""Others see that a run against a server goes on, and leave it alone; what dead runs left is swept."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from textwrap import dedent

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.store.database import is_held
from tests.plugin.conftest import ONE, start
from tests.plugin.served.runs import prompts, run_files, stored

PYTHON = """
    import pytest
    from pytest_kbrel.records import Case, HeadToTailSettings, Relation

    CITY = Relation(id="P36", label="capital", domain="places", frames=("What is the capital of [X]?",))

    def test_places(kb_facts, kb_check):
        kb_check(
            Case(id="places", suite="test_places.py", probe="head_to_tail", slice="all", gates=(),
                 facts=kb_facts("suites/facts.jsonl"), relations=(CITY,), settings=HeadToTailSettings())
        )
"""


@contextmanager
def waiting_for_its_server(pytester, server, count, *args):
    """Start a run; its server takes its time over one question after so many, until the block is left."""
    held, released, say_before = threading.Event(), threading.Event(), server.say

    def say(text):
        if sum(prompts(server).values()) == count and not held.is_set():
            held.set()
            released.wait(300)
        return say_before(text)

    server.say = say
    process = start(pytester, *args)
    try:
        assert held.wait(300)
        yield process
    finally:
        released.set()
        process.wait()


@pytest.fixture
def held(pytester, server):
    """What a run shows while it asks: how many locks there are, and whether each is held."""
    result, say = set(), server.say

    def look(text):
        locks = list((pytester.path / ".kbrel-cache").glob("run-*.lock"))
        result.add((len(locks), *map(is_held, locks)))
        return say(text)

    server.say = look
    yield result
    assert not list((pytester.path / ".kbrel-cache").glob("run-*"))


def test_a_session_that_asks_nothing_leaves_no_folder(pytester, mini_suite, gate):
    mini_suite(ONE)
    pytester.makepyfile(test_other="def test_other():\n    pass\n", test_places=PYTHON)
    others = [*gate[:2], "test_other.py"]
    pytester.runpytest(*others).assert_outcomes(passed=1)
    pytester.runpytest(
        *others, "suites", "test_places.py", "-k", "test_other"
    ).assert_outcomes(passed=1)
    pytester.runpytest(*gate, "--kb-plan")
    pytester.runpytest(*gate, "--kb-plan", "-v")
    pytester.runpytest(*gate, "test_places.py", "--collect-only")
    assert not (pytester.path / ".kbrel-cache").exists()


def test_a_run_of_tests_in_python_is_seen_to_go_on(pytester, mini_suite, held, gate):
    mini_suite(ONE)
    pytester.makepyfile(test_places=PYTHON)
    pytester.runpytest(*gate[:2], "test_places.py", "-n2").assert_outcomes(passed=1)
    assert held == {(1, True)}


def test_so_is_one_whose_test_asks_for_its_fixtures_while_it_runs(
    pytester, mini_suite, held, gate
):
    mini_suite(ONE)
    late = "def test_places(request):\n        kb_facts, kb_check = map(request.getfixturevalue, NAMES)"
    names = 'NAMES = "kb_facts", "kb_check"\n'
    text = PYTHON.replace("def test_places(kb_facts, kb_check):", late)
    pytester.makepyfile(test_places=names + dedent(text))
    pytester.runpytest(*gate[:2], "test_places.py").assert_outcomes(passed=1)
    assert held == {(1, True)}


@pytest.mark.parametrize(("count", "what"), [(9, "suites"), (6, "test_places.py")])
def test_a_run_that_goes_on_is_not_taken_over(
    pytester, mini_suite, report, resume_notes, server, gate, count, what
):
    mini_suite(ONE)
    pytester.makepyfile(test_places=PYTHON)
    flags = (*gate[:-1], what)
    with waiting_for_its_server(pytester, server, count, *flags) as process:
        pytester.runpytest(*flags, "--kb-output-path=other")
        assert resume_notes("other") == []
        assert report("other")["environment"]["answers_reused"] == "0"
        assert process.poll() is None
        assert stored(pytester)[1] == 1
    assert process.returncode == 0
    assert stored(pytester) == (0, 0)
    assert run_files(pytester) == []
