"""Collection of suite files as pytest items, with public pytest names only, and of what is no suite."""

from __future__ import annotations

import os
import re
import types
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path

import pytest

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.printing import printable
from pytest_kbrel.records import Case, ProbeName, Suite
from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.settings import Settings
from pytest_kbrel.words import SUITE_SUFFIX, in_suite, is_misnamed

Check = Callable[[Case], object]
# The suites that this process collected, by node id.
suites_key = pytest.StashKey[dict[str, Suite]]()


class KbrelWarning(pytest.PytestWarning):
    """A suite is usable but has something its author should know."""


def load(path: Path, nodeid: str, settings: Settings) -> Suite:
    """Read a suite under the run's limit, seed and judge; the result is the same in every process."""
    from pytest_kbrel.suites import load_suite

    return load_suite(
        path,
        nodeid_path=nodeid,
        limit=settings.limit,
        seed=settings.seed,
        judge=settings.judge,
        today=settings.today,
    )


def suite_file(parent: pytest.Collector, path: Path) -> SuiteFile:
    """Return the collector of a suite, or one that refuses it if its name may not be printed.

    pytest prints node ids unchanged, in every line about a test and in JUnit.
    """
    name = os.path.relpath(path, parent.config.rootpath)
    shown = printable(one_line(name)).replace("::", ": :")
    if shown == name:
        return SuiteFile.from_parent(parent, path=path)
    return UnprintableName.from_parent(parent, path=path, nodeid=shown)


class SuiteFile(pytest.Module):
    """A suite file: a module that pytest fills with one parametrized function for each probe.

    pytest's own implementation makes the items, so fixtures, marks, ``-k`` and ``--lf`` are its own.
    """

    settings: Settings

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Yield one item for each slice; a wrong suite is a collection error with file and line."""
        if self.config.rootpath / self.nodeid != self.path:
            raise self.CollectError(
                f"{self.path}: lies outside the root folder {self.config.rootpath}, so that no node id can "
                "name it; run pytest from its own project, or give --rootdir a folder that holds it"
            )
        try:
            suite = load(self.path, self.nodeid, self.settings)
        except SuiteError as error:
            raise self.CollectError(str(error)) from None
        self.config.stash.setdefault(suites_key, {})[self.nodeid] = suite
        # Marks and warnings need a module; without this one pytest would import the file.
        self.obj = types.ModuleType(self.path.name)
        self.add_marker(pytest.mark.kb)
        self._warn_of(suite)
        for probe in PROBES:
            cases = [case for case in suite.cases if case.probe == probe]
            if cases:
                function = _test_function(probe, cases, self.path)
                setattr(self.obj, probe, function)
                yield from (
                    self.ihook.pytest_pycollect_makeitem(
                        collector=self, name=probe, obj=function
                    )
                    or ()
                )

    def _warn_of(self, suite: Suite) -> None:
        shown = warns(self.config)
        with nullcontext() if shown else warnings.catch_warnings(record=True):
            try:
                for warning in suite.warnings:
                    self.warn(KbrelWarning(printable(f"{self.nodeid}: {warning}")))
            except KbrelWarning as error:
                raise self.CollectError(f"{error} (-W makes it an error)") from None


class UnprintableName(SuiteFile):
    """Suite in whose path a terminal or a CI system would read a command."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Refuse the suite."""
        raise self.CollectError(
            f"{self.nodeid}: the name of this suite, or of a folder it lies in, holds control characters, "
            "'::' or a command to a CI system, and pytest prints it with every result; allowed: other names"
        )


def warns(config: pytest.Config) -> bool:
    """Return True if this process warns about suites: of xdist's workers only the first does."""
    worker = str(getattr(config, "workerinput", {}).get("workerid", ""))
    return re.fullmatch(r"gw[1-9]\d*", worker) is None


def _test_function(
    probe: ProbeName, cases: list[Case], path: Path
) -> Callable[[Case, Check], None]:
    @pytest.mark.kb(probe=probe)
    @pytest.mark.parametrize(
        "kb_case", [pytest.param(case, id=case.slice) for case in cases]
    )
    def check_slice(kb_case: Case, kb_check: Check) -> None:
        kb_check(kb_case)

    # pytest takes a test's location from its code object: the suite, not this module.
    check_slice.__code__ = check_slice.__code__.replace(
        co_filename=str(path), co_firstlineno=max(1, min(case.line for case in cases))
    )
    # Without this the hook refuses the function where a project sets its own python_functions.
    check_slice.__test__ = True  # type: ignore[attr-defined]
    return check_slice


def case_of(item: pytest.Item) -> Case | None:
    """Return the case that an item runs, ``None`` for other tests."""
    callspec = getattr(item, "callspec", None)
    case = callspec.params.get("kb_case") if callspec is not None else None
    return case if isinstance(case, Case) else None


def is_shared(item: pytest.Item) -> bool:
    """Return True if the workers share the case of an item: one of a suite, and nothing may skip it."""
    marks = ("skip", "skipif")
    return in_suite(item.nodeid) and not any(map(item.get_closest_marker, marks))


def check_named_suites(here: Path, arguments: Iterable[str]) -> None:
    """Raise ``UsageError`` for an argument that names a suite with another ending, or none."""
    for argument in arguments:
        path = here / argument.split("::", 1)[0]
        if is_misnamed(path.name):
            raise pytest.UsageError(printable(f"{argument}: {_wrong_ending(path)}"))
        if in_suite(path.name) and path.parent.is_dir() and not path.exists():
            suites = sorted(
                file.name for file in path.parent.iterdir() if in_suite(file.name)
            )
            beside = f"; suites there: {', '.join(suites) or 'none'}{nearest(path.name, suites)}"
            raise pytest.UsageError(printable(f"{argument}: no such suite{beside}"))


def unknown_cases(config: pytest.Config) -> list[str]:
    """Return what is wrong with each argument that names a case which its suite does not have."""
    suites = {
        config.rootpath / path: suite
        for path, suite in config.stash.get(suites_key, {}).items()
    }
    wrong = []
    for argument in config.args:
        name, colons, case = argument.partition("::")
        suite = suites.get(config.invocation_params.dir / name)
        ids = [] if suite is None else [one.id for one in suite.cases]
        if (
            suite is None
            or not colons
            or case in (*ids, *{one.probe for one in suite.cases})
        ):
            continue
        if case in {one.id for one in suite.aggregates}:
            why = f"{case} is decided when all its slices have run, and cannot be selected"
        else:
            near = nearest(case, ids)
            why = f"no case {case!r}" + (near or f"; allowed: {', '.join(ids)}")
        wrong.append(printable(f"{name}: {why}"))
    return wrong


def warn_of(parent: pytest.Collector, path: Path) -> None:
    """Warn of a suite with a wrong ending in a folder that is collected."""
    if warns(parent.config):
        name = (
            path.relative_to(parent.config.rootpath)
            if parent.config.rootpath in path.parents
            else path
        )
        parent.warn(
            KbrelWarning(printable(f"{name} is not collected: {_wrong_ending(path)}"))
        )


def _wrong_ending(path: Path) -> str:
    stem = path.name[: -len(path.suffix)]
    stem = stem[:-3] if stem.lower().endswith(".kb") else stem
    return (
        f"the name of a suite ends in {SUITE_SUFFIX}; rename it to {stem}{SUITE_SUFFIX}"
    )
