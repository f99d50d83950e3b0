"""From the cases of a session to a finished run."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence

import pytest

from pytest_kbrel import __version__
from pytest_kbrel.options import KbOptions
from pytest_kbrel.records import PROBES, CaseResult, Fingerprint, Run, Suite

_PACKAGES = ("pytest", "pytest-xdist", "torch", "transformers", "numpy", "scipy")


def assemble(
    *,
    config: pytest.Config,
    options: KbOptions,
    suites: Sequence[Suite],
    expected: Sequence[str],
    results: Mapping[str, CaseResult],
    failures: Mapping[str, str],
    skipped: Sequence[str],
    model: Fingerprint | None,
    problems: Sequence[str],
    finished: bool,
    exit_status: int,
) -> Run:
    """Make the run of a session.

    An expected item without a result becomes an ``invalid`` case, so that no report is silent about it; one
    that its user skipped leaves the run partial. The run is complete when every case of every suite was
    selected and decided on sound responses.
    """
    cases = dict(results)
    for nodeid in expected:
        if nodeid not in cases and nodeid not in skipped:
            cases[nodeid] = _undecided(nodeid, failures.get(nodeid) or "it never ended")
    asked_for = {f"{suite.path}::{case.id}" for suite in suites for case in suite.cases}
    return Run(
        kbrel_version=__version__,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        model=model,
        environment=tuple(sorted(_environment(config).items())),
        settings=tuple(sorted(_settings(options).items())),
        cases=tuple(cases[nodeid] for nodeid in sorted(cases)),
        baseline=options.baseline,
        complete=finished
        and asked_for <= cases.keys()
        and not any(case.verdict == "invalid" for case in cases.values()),
        problems=tuple(problems),
        exit_status=exit_status,
    )


def _undecided(nodeid: str, why: str) -> CaseResult:
    suite, _, case_id = nodeid.partition("::")
    name, _, rest = case_id.partition("[")
    return CaseResult(
        id=case_id,
        suite=suite,
        probe=next((probe for probe in PROBES if probe == name), PROBES[0]),
        slice=rest.removesuffix("]"),
        verdict="invalid",
        n=0,
        duration=0.0,
        metrics=(),
        gates=(),
        errors=(why.splitlines()[-1],),
    )


def _environment(config: pytest.Config) -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["workers"] = str(config.getoption("numprocesses", None) or 0)
    return found


def _settings(options: KbOptions) -> dict[str, str]:
    return {
        "model": options.model,
        "model_args": options.model_args,
        "device": options.device,
        "dtype": options.dtype,
        "batch_size": options.batch_size,
        "apply_chat_template": str(options.apply_chat_template).lower(),
        "judge": options.judge,
        "baseline": options.baseline,
        "inconclusive": options.inconclusive,
        "limit": "" if options.limit is None else str(options.limit),
        "seed": "" if options.seed is None else str(options.seed),
    }
