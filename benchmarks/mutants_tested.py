"""Tests mutants inside one session of pytest: a process each, split off once all tests are collected.

A plugin takes the place of pytest's loop over the tests. It first runs them all in a process of their own,
to learn which lines each runs and how long it takes. For a mutant it then splits off a process, puts the
mutant's code in the place of the function's, and runs the tests that run the changed lines until one fails:
those first that killed other mutants of the function, then the fastest. Nothing is imported or collected
twice, and no process sees what another left in a cache.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import coverage
import pytest
from mutants_made import Mutant, body_of

Status = str
SURVIVED, KILLED, UNCOVERED, TIMEOUT = "survived", "killed", "not covered", "timeout"
# What a process that tests a mutant ends with.
FINE, FAILED, UNFIT = 0, 3, 4
# A test that takes this many times its time, and these seconds of a processor more, runs in circles.
TIMES, MORE = 10, 5
# For a test that waits instead of working. A mutant has two tries, for the machine may have been asleep.
WAIT = 300
ROOM = 2 << 30
# Set by who starts the session.
FOLDER = Path()


@dataclass
class Result:
    """What became of a mutant, by which test, in how many seconds."""

    status: Status
    test: str = ""
    seconds: float = 0.0


@dataclass
class Known:
    """What a run of all tests tells: the tests that run each line of a file, and each test's seconds."""

    tests_of: Mapping[str, Mapping[int, list[str]]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    failed: Sequence[str] = ()


class MutantLoop:
    """The plugin: ``results`` are told one by one to ``note``."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        paths: Mapping[str, Path],
        note: Callable[[Mutant, Result], None],
        *,
        jobs: int,
        examples: int,
        slowest: float,
    ) -> None:
        self.mutants, self.paths, self.note = mutants, paths, note
        self.jobs, self.examples, self.slowest = jobs, examples, slowest
        self.error = ""
        self.known = Known()
        self.items: dict[str, pytest.Item] = {}
        self._fail: Callable[[pytest.Item], None] = lambda item: None
        self._killers: dict[tuple[str, str], dict[str, None]] = {}
        self._functions: dict[tuple[str, str], list[FunctionType]] = {}
        self._fit: set[str] = set()
        self._waited: set[Mutant] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Test the mutants instead of running the tests."""
        if session.testsfailed:
            self.error = "the tests cannot be collected"
            return True
        self.items = {item.nodeid: item for item in session.items}
        for item in session.items:
            few_examples(item, self.examples)
        # What the tests keep out of garbage collection is in no list of objects.
        gc.unfreeze()
        self._functions = live_functions({str(path) for path in self.paths.values()})
        forget()
        gc.collect()
        gc.freeze()
        self.known = self._all_tests()
        if self.known.failed:
            self.error = "tests fail without any mutant:\n" + "\n".join(
                self.known.failed
            )
            return True
        slow = [
            name
            for name, seconds in self.known.seconds.items()
            if seconds > self.slowest
        ]
        print(
            f"{len(self.known.seconds)} tests, {sum(self.known.seconds.values()):.0f} s",
            flush=True,
        )
        for name in slow:
            print(
                f"left out as slow: {self.known.seconds[name]:.1f} s, {name}",
                flush=True,
            )
        self.known.seconds = {
            name: took for name, took in self.known.seconds.items() if name not in slow
        }
        self._test_all()
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> None:
        """Send a failure to the parent before pytest makes a report of it."""
        if call.excinfo is not None and not call.excinfo.errisinstance(
            pytest.skip.Exception
        ):
            self._fail(item)

    def _all_tests(self) -> Known:
        """Run all tests under coverage in a process of their own."""
        out, into = os.pipe()
        if not (child := os.fork()):
            os.close(out)
            known = self._watched()
            with os.fdopen(into, "wb") as end:
                pickle.dump(known, end)
            os._exit(0)
        os.close(into)
        with os.fdopen(out, "rb") as end:
            loaded: Known = pickle.load(end)
        os.waitpid(child, 0)
        return loaded

    def _watched(self) -> Known:
        quiet()
        failed: list[str] = []
        seconds: dict[str, float] = {}
        self._fail = lambda item: failed.append(item.nodeid)
        watch = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[str(path) for path in self.paths.values()],
        )
        watch.start()
        for item, following in pairs(list(self.items.values())):
            watch.switch_context(item.nodeid)
            # With those of the programs it starts.
            before = sum(os.times()[:4])
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = sum(os.times()[:4]) - before
        watch.stop()
        data = watch.get_data()
        tests_of = {
            str(path): {
                line: sorted(names)
                for line, names in data.contexts_by_lineno(str(path)).items()
            }
            for path in self.paths.values()
        }
        return Known(tests_of, seconds, failed)

    def _test_all(self) -> None:
        """Test the mutants, as many at a time as there are jobs."""
        running: dict[int, tuple[Mutant, int, float]] = {}
        try:
            for mutant in self.mutants:
                while len(running) >= self.jobs:
                    self._reap(running)
                    if self.error:
                        return
                self._test(mutant, running)
            while running and not self.error:
                self._reap(running)
        finally:
            for child in running:
                end(child)

    def _test(
        self, mutant: Mutant, running: dict[int, tuple[Mutant, int, float]]
    ) -> None:
        """Let a process test a mutant, if any test runs its lines."""
        path = str(self.paths[mutant.module])
        if tests := self._tests_for(mutant, path):
            change = partial(
                apply, mutant, self._functions.get((path, mutant.function), [])
            )
            child, pipe = self._start(tests, change)
            running[child] = mutant, pipe, time.monotonic()
        else:
            self.note(mutant, Result(UNCOVERED))

    def _tests_for(self, mutant: Mutant, path: str) -> list[str]:
        """Return the tests that run the mutant's lines, in the order in which they are to run."""
        first, last = mutant.lines
        lines = self.known.tests_of[path]
        names = {
            name for line in range(first, last + 1) for name in lines.get(line, ())
        }
        names &= self.known.seconds.keys()
        killers = [*reversed(self._killers.get((mutant.module, mutant.function), {}))]
        rank = {name: at for at, name in enumerate(killers)}
        return sorted(
            names,
            key=lambda name: (
                rank.get(name, len(rank)),
                self.known.seconds[name],
                name,
            ),
        )

    def _start(
        self, tests: Sequence[str], change: Callable[[], None]
    ) -> tuple[int, int]:
        """Split off a process that makes a change and runs tests; return it and where it tells the failed."""
        out, into = os.pipe()
        child = os.fork()
        if child:
            os.close(into)
            return child, out
        try:
            self._child(tests, change, into)
        except BaseException:
            os.write(into, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(UNFIT)

    def _child(
        self, tests: Sequence[str], change: Callable[[], None], into: int
    ) -> NoReturn:
        os.setpgrp()
        quiet()
        config = next(iter(self.items.values())).config
        # Each its own folder, which is removed when it has ended.
        own = folder_of(os.getpid())
        own.mkdir()
        config._tmp_path_factory._basetemp = own  # type: ignore[attr-defined]
        used = (
            int(Path("/proc/self/statm").read_text().split()[0])
            * resource.getpagesize()
        )
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
        signal.alarm(WAIT)

        def fail(item: pytest.Item) -> None:
            os.write(into, item.nodeid.encode())
            os._exit(FAILED)

        self._fail = fail
        change()
        for item, following in pairs([self.items[name] for name in tests]):
            signal.setitimer(
                signal.ITIMER_PROF, TIMES * self.known.seconds[item.nodeid] + MORE
            )
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            except BaseException:
                fail(item)
        os._exit(FINE)

    def _reap(self, running: dict[int, tuple[Mutant, int, float]]) -> None:
        """Wait for a process and note what became of its mutant."""
        child, code = os.wait()
        if child not in running:
            return
        mutant, pipe, since = running.pop(child)
        end(child)
        with os.fdopen(pipe, "rb") as stream:
            test = stream.read().decode()
        status = os.waitstatus_to_exitcode(code)
        seconds = round(time.monotonic() - since, 3)
        if status == FINE:
            self.note(mutant, Result(SURVIVED, seconds=seconds))
        elif status == FAILED:
            self._killers.setdefault((mutant.module, mutant.function), {}).pop(
                test, None
            )
            self._killers[mutant.module, mutant.function][test] = None
            if self._passes(test):
                self.note(mutant, Result(KILLED, test, seconds))
        elif status == -signal.SIGALRM and mutant not in self._waited:
            self._waited.add(mutant)
            self._test(mutant, running)
        elif -status in (signal.SIGPROF, signal.SIGALRM):
            self.note(mutant, Result(TIMEOUT, seconds=seconds))
        elif status < 0:
            self.note(mutant, Result(KILLED, f"signal {-status}", seconds))
        else:
            self.error = f"{mutant.name} cannot be tested:\n{test}"

    def _passes(self, test: str) -> bool:
        """Return True if a test that killed a mutant passes where it runs alone without one."""
        if test not in self._fit:
            child, pipe = self._start([test], lambda: None)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.close(pipe)
            end(child)
            if status != FINE:
                self.error = f"{test} fails where it runs alone, without any mutant"
            self._fit.add(test)
        return not self.error


def apply(mutant: Mutant, functions: Sequence[FunctionType]) -> None:
    """Put the mutant's code in the place of the function's."""
    assert functions, mutant.name
    for function in functions:
        code, defaults, keyword_defaults = body_of(
            mutant, mutant.after, function.__globals__
        )
        function.__code__ = code
        function.__defaults__, function.__kwdefaults__ = defaults, keyword_defaults


def live_functions(files: set[str]) -> dict[tuple[str, str], list[FunctionType]]:
    """Return the functions of some files that there are at run time, by file and name."""
    functions: dict[tuple[str, str], list[FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename in files:
            functions.setdefault(
                (thing.__code__.co_filename, thing.__code__.co_qualname), []
            ).append(thing)
    return functions


def forget() -> None:
    """Empty the caches that the collection of tests filled."""
    for thing in gc.get_objects():
        if callable(getattr(type(thing), "cache_clear", None)):
            thing.cache_clear()


def few_examples(item: pytest.Item, examples: int) -> None:
    """Let a test of hypothesis have few examples, the same in each run, and end at the first that fails."""
    test: Any = getattr(item, "obj", None)
    test = getattr(test, "__func__", test)
    if getattr(test, "is_hypothesis_test", False):
        # Not before pytest, which rewrites it.
        import hypothesis

        was = test._hypothesis_internal_use_settings
        test._hypothesis_internal_use_settings = hypothesis.settings(
            was,
            max_examples=min(was.max_examples, examples),
            derandomize=True,
            database=None,
            # They tell a slow machine from a fast one.
            suppress_health_check=list(hypothesis.HealthCheck),
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        )


def pairs(
    items: Sequence[pytest.Item],
) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    """Yield each test with the one after it."""
    return zip(items, [*items[1:], None], strict=True)


def quiet() -> None:
    """Let this process print nothing."""
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def folder_of(child: int) -> Path:
    """Return where the tests of a process write."""
    return FOLDER / str(child)


def end(child: int) -> None:
    """End what a process that tested a mutant left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    shutil.rmtree(folder_of(child), ignore_errors=True)
