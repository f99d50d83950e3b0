"""From what arrived in a session to a finished run, and from there to files."""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel import __version__
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.evaluation.model_pool import writers_of
from pytest_kbrel.plugin.collection import count_comparisons
from pytest_kbrel.plugin.options import NO_CACHE, SUITE_SUFFIX
from pytest_kbrel.records import (
    BASELINE,
    UNMEASURED,
    AggregateCase,
    CaseKind,
    CaseResult,
    Fingerprint,
    Run,
    Suite,
)
from pytest_kbrel.reports.files import OUTCOMES, RESPONSES, replacing, sha256_of
from pytest_kbrel.settings import Settings

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline

_PACKAGES = ("pytest", "pytest-xdist", "torch", "transformers", "openai", "numpy", "scipy")


@dataclass
class SessionResults:
    """What a session expected, and what came: outcomes and failures by item, results by case."""

    expected: dict[str, None] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    cases: dict[str, CaseResult] = field(default_factory=dict)
    cases_of: dict[str, list[str]] = field(default_factory=dict)
    helpers: dict[str, Fingerprint] = field(default_factory=dict)
    helped: list[int] = field(default_factory=lambda: [0, 0])
    answered: list[int] = field(default_factory=lambda: [0, 0])
    cache_problem: str = ""
    resumed: str = ""
    begun: set[str] = field(default_factory=set)
    crashed: set[str] = field(default_factory=set)
    stopped: bool = False
    load_seconds: float = 0.0
    engines: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    models: dict[str, Fingerprint] = field(default_factory=dict)

    def note(self, report: pytest.TestReport) -> None:
        """Take in a report. That of a crashed worker has no phase."""
        if report.when in ("call", "???") or report.outcome != "passed":
            self.outcomes[report.nodeid] = "xfail" if hasattr(report, "wasxfail") else report.outcome
        if report.failed:
            self.failures.setdefault(report.nodeid, report.longreprtext.strip())
            if str(report.when) == "???":
                self.crashed.add(report.nodeid)
            # A test in Python is expected by nobody: that it asks a model is known when it does.
            if hasattr(report, "kbrel_uses_model") and report.nodeid not in self.cases_of:
                self.expected[report.nodeid] = None

    def add(self, item: str, result: CaseResult) -> None:
        """Take in a decided case that ``item`` reported."""
        self.cases[result.nodeid] = result
        self.cases_of.setdefault(item, []).append(result.nodeid)

    def add_help(self, helpers: Iterable[Fingerprint], asked: int, reused: int) -> None:
        """Take in which models helped a worker, how often they were asked, and how often the store knew."""
        self.helpers |= {helper.spec: helper for helper in helpers}
        self.helped = [self.helped[0] + asked, self.helped[1] + reused]

    def add_answers(self, cache_problem: str, asked: int, reused: int) -> None:
        """Take in how many answers a worker needed, how many were known, and why any are not kept."""
        self.answered = [self.answered[0] + asked, self.answered[1] + reused]
        # Once is enough: it will be the same with all workers.
        self.cache_problem = self.cache_problem or cache_problem

    def add_loading(self, seconds: float, engine: str) -> None:
        """Take in how long a worker's checkpoint took to load, and how it computes, as far as known."""
        self.load_seconds = max(self.load_seconds, seconds)
        # One worker may only have scored, and another only have written.
        self.engines |= dict.fromkeys(filter(None, engine.split(", ")))

    def add_models(self, models: Iterable[tuple[str, Fingerprint]]) -> str:
        """Take in which models a worker has, by their names in ``Ask.to``.

        Return in words what of one is not as with the worker that was heard first, empty where all is.
        """
        from pytest_kbrel.models.cache.store import identity

        for name, model in models:
            first, now = identity(self.models.setdefault(name, model)), identity(model)
            if differing := [key for key in (*first, *now) if first.get(key) != now.get(key)]:
                which = {"": "the model", BASELINE: "the baseline model"}.get(name, name)
                key = differing[0]
                return (
                    f"{which} is not the same one in all workers: {key} ({first.get(key)!s:.12} and "
                    f"{now.get(key)!s:.12}); its files changed before all had read them: run again when "
                    "nothing writes there, or gate a copy"
                )
        return ""

    def expect_crashed(self) -> None:
        """Expect results of the items at which a worker died, where their neighbours ask a model too."""
        asking = {nodeid.split("::", 1)[0] for nodeid in (*self.cases_of, *self.expected)}
        for nodeid in self.crashed:
            if nodeid not in self.cases_of and nodeid.split("::", 1)[0] in asking:
                self.expected[nodeid] = None

    def unaccounted(self) -> Iterator[tuple[str, str]]:
        """Yield the expected items that never reported, or ended well without a measurement."""
        for nodeid in self.expected:
            outcome = self.outcomes.get(nodeid)
            if outcome is None:
                yield nodeid, "no report arrived for this item: it was expected and never ended"
            elif outcome in ("passed", "xfail") and nodeid not in self.cases:
                yield nodeid, "this item ended without a measurement: nothing it says can be a pass"

    def took_part(self, nodeids: Iterable[str]) -> bool:
        """Tell whether all these items were selected and none was skipped by its user."""
        return all(nodeid in self.expected and not self.skipped(nodeid) for nodeid in nodeids)

    def all_measured(self) -> bool:
        """Tell whether every expected item came to a result, but those that their user skipped."""
        return all(self.cases_of.get(nodeid) or self.skipped(nodeid) for nodeid in self.expected)

    def failed_measured(self, unanswered: int) -> bool:
        """Tell whether an item failed by what was measured: not as so many requests were ``unanswered``."""
        cases = [case for nodeid in self.failures for case in self.cases_of.get(nodeid, ())]
        return any(not unanswered or self.cases[case].verdict != "invalid" for case in cases)

    def began(self, nodeid: str) -> bool:
        """Tell whether an item was begun, or should have been: the session did not stop before it."""
        return not self.stopped or nodeid in self.begun or nodeid in self.outcomes

    def why_undecided(self, nodeid: str) -> str:
        """Say why an expected item has no result."""
        if not self.began(nodeid):
            return "the session stopped before this case"
        return self.failures.get(nodeid) or "it never ended"

    def skipped(self, nodeid: str) -> bool:
        """Tell whether an item was skipped before it could measure anything."""
        return self.outcomes.get(nodeid) == "skipped" and nodeid not in self.cases


def build_run(
    config: pytest.Config,
    settings: Settings,
    suites: Sequence[Suite],
    results: SessionResults,
    model: Fingerprint | None,
) -> Run:
    """Make the run of a session.

    An expected item without a result becomes an ``invalid`` case, so that no report is silent about it (one
    that is ``not run``, where the session stopped before it, and so do the aggregates that it did not get
    to), and so does one whose item failed although its gates did not (its worker died, or its teardown
    failed). One that its user skipped leaves the run partial.
    The run is complete when every case of every suite was selected and decided on sound responses. With
    --runxfail waivers let nothing pass.
    """
    from pytest_kbrel.gates import with_family
    from pytest_kbrel.metrics.correlations import over_slices

    cases = dict(results.cases)
    if config.getoption("runxfail", False):
        cases = {
            nodeid: replace(case, waiver=None) if case.waived else case for nodeid, case in cases.items()
        }
    for nodeid in results.expected:
        if nodeid not in cases and not results.skipped(nodeid):
            cases[nodeid] = _undecided(nodeid, results.why_undecided(nodeid), begun=results.began(nodeid))
    for aggregate in (aggregate for suite in suites for aggregate in suite.aggregates if results.stopped):
        members = [f"{aggregate.suite}::{member}" for member in aggregate.members]
        nodeid = f"{aggregate.suite}::{aggregate.id}"
        if nodeid not in cases and results.took_part(members):
            left = _undecided(nodeid, results.why_undecided(nodeid), begun=False)
            cases[nodeid] = replace(
                left,
                probe=aggregate.probe,
                slice=aggregate.slice,
                aggregate=True,
                members=aggregate.members,
            )
    for item, why in results.failures.items():
        for nodeid in results.cases_of.get(item, ()):
            verdict = cases[nodeid].verdict
            # A case whose test failed was begun.
            if verdict == "not run" or verdict not in settings.failing or cases[nodeid].waived:
                cases[nodeid] = replace(cases[nodeid], verdict="invalid", errors=(_last_line(why),))
    asked_for = {f"{suite.path}::{case.id}" for suite in suites for case in suite.cases}
    return Run(
        kbrel_version=__version__,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        model=model,
        environment=tuple(sorted(_environment(config, settings, results).items())),
        settings=tuple(sorted(_settings(settings).items())),
        cases=with_family([cases[nodeid] for nodeid in sorted(cases)]),
        baseline=settings.compared_with,
        helpers=tuple(helper for _, helper in sorted(results.helpers.items())),
        correlations=over_slices(cases[nodeid] for nodeid in sorted(cases)),
        recorded=_recorded(config, settings),
        comparisons=count_comparisons(suites, results.expected) if settings.compared_with else 0,
        complete=asked_for <= cases.keys() and not any(case.verdict in UNMEASURED for case in cases.values()),
    )


def join(run: Run, parts: Path, directory: Path) -> Iterator[str]:
    """Join the workers' responses out of ``parts`` into ``directory``; yield what was found amiss."""
    from pytest_kbrel.reports.responses import join_spools

    directory.mkdir(parents=True, exist_ok=True)
    order = [case.nodeid for case in run.cases]
    joined = join_spools(sorted(parts.glob("*.jsonl")), directory / RESPONSES, order)
    if joined.torn:
        workers = ", ".join(path.stem for path in joined.torn)
        yield f"the last response of {workers} is torn and left out"
    found = dict(joined.counts)
    for case in run.cases:
        # Not the other way round: a case that ran again has more.
        if (kept := found.get(case.nodeid, 0)) < case.requests:
            yield f"{case.nodeid}: only {kept} of its {case.requests} responses are recorded"


def write(run: Run, directory: Path) -> Run:
    """Write all reports into ``directory``, where the responses are; return the run with its files."""
    from pytest_kbrel.baselines.format import dump_tables, packed
    from pytest_kbrel.reports import write_reports

    tables = [(case.nodeid, case.table) for case in run.cases if not case.aggregate]
    with replacing(directory / OUTCOMES) as stream:
        stream.write(packed(dump_tables(tables, texts=True)))
    # A report is read with its own parts only.
    spool_folder = [directory / name for name in (RESPONSES, OUTCOMES)]
    run = replace(run, files=tuple((path.name, sha256_of(path)) for path in spool_folder if path.is_file()))
    write_reports(run, directory)
    return run


def without_figures(result: CaseResult, why: str) -> CaseResult:
    """Return a decided case as one that was not measured, and ``why``."""
    begun = _undecided(result.nodeid, why, begun=True)
    return replace(begun, probe=result.probe, slice=result.slice, requests=result.requests)


def _undecided(nodeid: str, why: str, *, begun: bool) -> CaseResult:
    suite, _, case_id = nodeid.partition("::")
    name, _, rest = case_id.partition("[")
    # A test in Python may have a probe's name.
    known = PROBES if suite.endswith(SUITE_SUFFIX) else ()
    probe: CaseKind = next((probe for probe in known if probe == name), "test")
    return CaseResult(
        id=case_id,
        suite=suite,
        probe=probe,
        slice=case_id if probe == "test" else rest.removesuffix("]"),
        verdict="invalid" if begun else "not run",
        n=0,
        duration=0.0,
        metrics=(),
        gates=(),
        errors=(_last_line(why),),
    )


def _recorded(config: pytest.Config, settings: Settings) -> str:
    """Return the folder of the run that is decided again, relative to where pytest was called."""
    if settings.from_run is None:
        return ""
    return os.path.relpath(settings.from_run, config.invocation_params.dir)


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text else "it failed and did not say why"


def _environment(config: pytest.Config, settings: Settings, results: SessionResults) -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    found |= _versions()
    found["workers"] = str(config.getoption("numprocesses", None) or 0)
    if results.notes:
        found["model_notes"] = "\n".join(results.notes)
    return found | _loading(results) | _help(results) | _answers(config, settings, results)


@functools.cache
def _versions() -> dict[str, str]:
    """Return the versions of the installed packages that matter to a run."""
    found = {}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def _loading(results: SessionResults) -> dict[str, str]:
    if not results.load_seconds:
        return {}
    found = {
        "model_load_seconds": f"{results.load_seconds:.2f}",
        "engine": ", ".join(sorted(results.engines)),
    }
    return {name: text for name, text in found.items() if text}


def _help(results: SessionResults) -> dict[str, str]:
    if not results.helpers:
        return {}
    asked, reused = results.helped
    return {"helpers_asked": str(asked), "helpers_reused": str(reused)}


def _answers(config: pytest.Config, settings: Settings, results: SessionResults) -> dict[str, str]:
    asked, reused = results.answered
    if not asked and not results.resumed:
        return {}
    here = config.invocation_params.dir
    store = NO_CACHE if settings.use_cache is None else os.path.relpath(settings.use_cache, here)
    found = {"answers_asked": str(asked), "answers_reused": str(reused), "answers_store": store}
    said = {"answers_not_kept": results.cache_problem, "answers_resumed": results.resumed}
    return found | {name: text for name, text in said.items() if text}


def _settings(settings: Settings) -> dict[str, str]:
    return {
        "model": settings.model,
        "model_args": settings.model_args,
        "device": settings.device,
        "dtype": settings.dtype,
        "batch_size": settings.batch_size,
        "apply_chat_template": str(settings.apply_chat_template).lower(),
        "judge": settings.judge,
        "judge_args": settings.judge_args,
        "baseline": settings.baseline,
        "baseline_model": settings.baseline_model,
        "inconclusive": settings.inconclusive,
        "limit": "" if settings.limit is None else str(settings.limit),
        "seed": "" if settings.seed is None else str(settings.seed),
    }


def decide_aggregates(
    suites: Sequence[Suite],
    results: SessionResults,
    *,
    model: Fingerprint | None,
    baseline: Baseline | None,
    judge: str,
) -> Iterator[tuple[AggregateCase, CaseResult]]:
    """Decide the aggregates all of whose members took part; yield each with its result.

    ``judge`` is who judged the run's answers, as its settings name it.
    """
    from pytest_kbrel.baselines import another_tokenizer, incomparable
    from pytest_kbrel.gates import decide_aggregate

    family = count_comparisons(suites, results.expected)
    helpers = results.helpers
    for suite in suites:
        for aggregate in suite.aggregates:
            members = [f"{suite.path}::{member}" for member in aggregate.members]
            if not results.took_part(members):
                continue
            writers = writers_of(suite, aggregate.members)
            yield (
                aggregate,
                decide_aggregate(
                    aggregate,
                    [results.cases[member] for member in members if member in results.cases],
                    baseline=baseline,
                    comparisons=family,
                    another_tokenizer=another_tokenizer(model, baseline),
                    incomparable=incomparable(
                        model,
                        baseline,
                        judged=any(not member.startswith("monitor[") for member in aggregate.members),
                        judge=helpers.get(judge),
                        writers=[helpers[text] for text in writers if text in helpers],
                    ),
                ),
            )


def baseline_of_session(base: Fingerprint, results: SessionResults, judge: str) -> Baseline:
    """Return what the model ``base``, asked in this session too, answered: a baseline like a blessed run."""
    from pytest_kbrel.baselines import session_baseline

    return session_baseline(
        base,
        [
            (result.suite, result.id, result.base, result.settings)
            for result in results.cases.values()
            if result.base.rows
        ],
        judge=judge,
        helpers=results.helpers.values(),
    )
