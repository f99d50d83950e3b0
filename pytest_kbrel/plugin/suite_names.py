"""Suites that pytest would not collect: those with another ending, and paths that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_kbrel.errors import nearest
from pytest_kbrel.plugin.collection import KbrelWarning, suites_key, warns
from pytest_kbrel.printing import printable
from pytest_kbrel.words import SUITE_SUFFIX, in_suite, is_misnamed


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
