"""Results of a session: what was expected and reported, the aggregates over it, the run, and its files."""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.metadata
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import add
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_kbrel import __version__
from pytest_kbrel.baselines import (
    Baseline,
    listed_differences,
    session_baseline,
)
from pytest_kbrel.baselines.format import dump_tables, packed
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.catalogue.rules import family_size
from pytest_kbrel.evaluation.model_pool import News
from pytest_kbrel.evaluation.recorded_run import names_of
from pytest_kbrel.models.openai.replies import cost_of
from pytest_kbrel.outputs import new_file, write_text
from pytest_kbrel.records import (
    BASELINE,
    NOT_REACHED,
    UNMEASURED,
    AggregateCase,
    CaseKind,
    CaseResult,
    Fingerprint,
    Judgement,
    Run,
    ShardedRun,
    Suite,
)
from pytest_kbrel.reports import (
    OUTCOMES,
    PAGE,
    REPORT,
    RESPONSES,
    SUMMARY,
    sha256_of,
)
from pytest_kbrel.reports.json_report import write_json
from pytest_kbrel.reports.rendering import summary_markdown
from pytest_kbrel.session.page import page_of
from pytest_kbrel.settings import Settings
from pytest_kbrel.store.run_store import RunStore
from pytest_kbrel.words import NO_CACHE, in_suite

if TYPE_CHECKING:
    import pytest

_PACKAGES = (
    "pytest",
    "pytest-xdist",
    "torch",
    "transformers",
    "openai",
    "numpy",
    "scipy",
)


@dataclass
class SessionResults:
    """Expected items and reported results of a session: outcomes and failures by item, results by case."""

    suites: Sequence[Suite] = ()
    shard: ShardedRun | None = None
    problems: dict[str, None] = field(default_factory=dict)
    expected: dict[str, None] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    # Why the figures over several cases of a suite file cannot be compared, by its name.
    lost: dict[str, str] = field(default_factory=dict)
    # The tests in Python of which an assertion failed.
    asserted: set[str] = field(default_factory=set)
    cases: dict[str, CaseResult] = field(default_factory=dict)
    cases_of: dict[str, list[str]] = field(default_factory=dict)
    fingerprints: dict[str, Fingerprint] = field(default_factory=dict)
    helped: tuple[int, ...] = (0, 0)
    answered: tuple[int, ...] = (0, 0)
    cache_problem: str = ""
    resumed: str = ""
    spent: dict[str, tuple[int, ...]] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    crashed: set[str] = field(default_factory=set)
    dealt_again: set[str] = field(default_factory=set)
    stopped: bool = False
    load_seconds: float = 0.0
    engines: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    @property
    def helpers(self) -> dict[str, Fingerprint]:
        """The helper models by name."""
        own = ("", BASELINE)
        return {name: of for name, of in self.fingerprints.items() if name not in own}

    def note(self, report: pytest.TestReport) -> None:
        """Add a report. That of a crashed worker has no phase; its item may be run again."""
        if report.outcome not in ("passed", "failed", "skipped"):
            return
        if report.when in ("call", "???") or report.outcome != "passed":
            self.outcomes[report.nodeid] = (
                "xfail" if hasattr(report, "wasxfail") else report.outcome
            )
        if report.failed:
            why: str = getattr(report, "kbrel_why", report.longreprtext)
            self.failures.setdefault(report.nodeid, why.strip())
            if getattr(report, "kbrel_asserted", False):
                self.asserted.add(report.nodeid)
            if str(report.when) == "???":
                self.crashed.add(report.nodeid)
            # A Python test is not expected beforehand: that it uses a model is known once it does.
            if hasattr(report, "kbrel") and report.nodeid not in self.cases_of:
                self.expected[report.nodeid] = None

    def add(self, item: str, result: CaseResult) -> None:
        """Add a decided case that ``item`` reported."""
        self.cases[result.nodeid] = result
        self.cases_of.setdefault(item, []).append(result.nodeid)

    def add_news(self, news: News) -> None:
        """Add what a worker tells of its models."""
        self.fingerprints |= dict(news.models)
        self.answered = _plus(self.answered, news.answered)
        self.helped = _plus(self.helped, news.helped)
        for name, counts in news.spent:
            self.spent[name] = _plus(self.spent.get(name, (0, 0, 0)), counts)
        # It is the same in all workers.
        self.cache_problem = self.cache_problem or news.cache_problem
        self.load_seconds = max(self.load_seconds, news.load_seconds)
        # One worker may only score, and another only generate.
        self.engines |= dict.fromkeys(filter(None, news.engine.split(", ")))
        self.notes |= dict.fromkeys(news.notes)

    def expect_crashed(self) -> None:
        """Expect results of items at which a worker died, where others of the same file use a model."""
        asking = {
            nodeid.split("::", 1)[0] for nodeid in (*self.cases_of, *self.expected)
        }
        for nodeid in self.crashed:
            if nodeid not in self.cases_of and nodeid.split("::", 1)[0] in asking:
                self.expected[nodeid] = None

    def unaccounted(self) -> Iterator[tuple[str, str]]:
        """Yield items that never reported or passed without a measurement, each with the reason."""
        for nodeid in (*self.expected, *(self.dealt_again - self.expected.keys())):
            outcome = self.outcomes.get(nodeid)
            if outcome is None:
                yield (
                    nodeid,
                    "no report arrived for this item: it was expected and never ended",
                )
            elif (
                outcome in ("passed", "xfail")
                and nodeid in self.expected
                and nodeid not in self.cases
            ):
                yield (
                    nodeid,
                    "this item ended without a measurement: nothing it says can be a pass",
                )

    def took_part(self, nodeids: Iterable[str]) -> bool:
        """Return True if all these items were selected and the user skipped none."""
        return all(
            nodeid in self.expected and not self.skipped(nodeid) for nodeid in nodeids
        )

    def all_measured(self) -> bool:
        """Return True if every expected item has a result, apart from those that the user skipped."""
        return all(
            self.cases_of.get(nodeid) or self.skipped(nodeid)
            for nodeid in self.expected
        )

    def failed_measured(self, unanswered: int) -> bool:
        """Return True if an item failed by its measurement and not because requests were ``unanswered``."""
        cases = [
            case for nodeid in self.failures for case in self.cases_of.get(nodeid, ())
        ]
        return any(
            not unanswered or self.cases[case].verdict != "invalid" for case in cases
        )

    def undecided(self, nodeid: str) -> CaseResult:
        """Return the case of an expected item, or of an aggregate, that has no result."""
        verdict: Judgement = "fail" if nodeid in self.asserted else "invalid"
        how = "interrupted in this case" if self.stopped else "it never ended"
        why = self.failures.get(nodeid) or how
        if self.stopped and not (nodeid in self.begun or nodeid in self.outcomes):
            verdict, why = "not run", NOT_REACHED
        suite, _, case_id = nodeid.partition("::")
        name, _, rest = case_id.partition("[")
        # A Python test may have a probe's name.
        probes = PROBES if in_suite(suite) else ()
        probe: CaseKind = next((probe for probe in probes if probe == name), "test")
        return CaseResult(
            id=case_id,
            suite=suite,
            probe=probe,
            slice=case_id if probe == "test" else rest.removesuffix("]"),
            verdict=verdict,
            n=0,
            errors=(_last_line(why),),
        )

    def skipped(self, nodeid: str) -> bool:
        """Return True if an item was skipped before it measured anything."""
        return self.outcomes.get(nodeid) == "skipped" and nodeid not in self.cases


def _plus(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(add, left, right))


def decide_aggregates(
    results: SessionResults, *, baseline: Baseline | None, judge: str
) -> Iterator[tuple[AggregateCase, CaseResult]]:
    """Decide the aggregates all of whose members took part; yield each with its result.

    ``judge`` is the judge's name in the settings.
    """
    from pytest_kbrel.gates import Comparison, decide_aggregate, incomparable_case

    for suite in results.suites:
        comparison = Comparison(
            baseline=baseline,
            comparisons=family_size(suite),
            model=results.fingerprints.get(""),
            judge=judge,
            helper=results.helpers.get,
        )
        for aggregate in suite.aggregates:
            members = [f"{suite.path}::{member}" for member in aggregate.members]
            if not results.took_part(members):
                continue
            there = [results.cases[one] for one in members if one in results.cases]
            decided = decide_aggregate(aggregate, there, comparison)
            if why := results.lost.get(PurePath(suite.path).name):
                decided = incomparable_case(decided, why)
            yield aggregate, decided


def baseline_of_session(results: SessionResults, judge: str) -> Baseline | None:
    """Return the results of the baseline model in this session as a baseline, ``None`` without one."""
    base = results.fingerprints.get(BASELINE)
    if base is None:
        return None
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


def build_run(
    settings: Settings,
    results: SessionResults,
    baseline: Baseline | None = None,
    *,
    exit_status: int = 0,
) -> Run:
    """Return the run of a session; ``baseline`` is what it was compared with, ``exit_status`` pytest's.

    An expected item without a result becomes an ``invalid`` case, or ``not run`` where the session stopped
    before it, as do the aggregates that it did not reach. So does a case whose item failed although its gates
    did not (its worker died, or its teardown failed). The run is complete when every case of every suite was
    selected and decided on sound responses, and nothing else was wrong. With --runxfail waivers have no effect.
    """
    from pytest_kbrel.gates import with_family
    from pytest_kbrel.metrics.correlations import over_slices

    cases = dict(results.cases)
    if settings.without_waivers:
        cases = {
            nodeid: replace(case, waiver=None) if case.waived else case
            for nodeid, case in cases.items()
        }
    suites = results.suites
    labels = {
        f"{suite.path}::{case.id}": case.label
        for suite in suites
        for case in suite.cases
    }
    for nodeid in results.expected:
        if nodeid not in cases and not results.skipped(nodeid):
            label = labels.get(nodeid, "")
            cases[nodeid] = replace(results.undecided(nodeid), label=label)
    # A shard has no aggregates that the session could stop before.
    stopped = results.stopped and settings.shard is None
    for aggregate in (
        aggregate for suite in suites for aggregate in suite.aggregates if stopped
    ):
        members = [f"{aggregate.suite}::{member}" for member in aggregate.members]
        nodeid = f"{aggregate.suite}::{aggregate.id}"
        if nodeid not in cases and results.took_part(members):
            cases[nodeid] = replace(
                results.undecided(nodeid),
                probe=aggregate.probe,
                slice=aggregate.slice,
                aggregate=True,
                members=aggregate.members,
            )
    for item, why in results.failures.items():
        for nodeid in results.cases_of.get(item, ()):
            verdict = cases[nodeid].verdict
            # A case whose test failed was begun.
            if (
                verdict == "not run"
                or verdict not in settings.failing
                or cases[nodeid].waived
            ):
                cases[nodeid] = replace(
                    cases[nodeid],
                    verdict="fail" if item in results.asserted else "invalid",
                    errors=(_last_line(why),),
                )
    run = Run(
        kbrel_version=__version__,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        model=results.fingerprints.get(""),
        environment=tuple(sorted(_environment(settings, results).items())),
        settings=tuple(sorted(settings.texts.items())),
        cases=with_family([cases[nodeid] for nodeid in sorted(cases)]),
        baseline=settings.compared_with
        if settings.shard is None
        else settings.baseline_model,
        helpers=tuple(helper for _, helper in sorted(results.helpers.items())),
        correlations=over_slices(cases[nodeid] for nodeid in sorted(cases)),
        recorded=names_of(settings.recorded, settings.here),
        comparisons=sum(map(family_size, suites)) if settings.compared_with else 0,
        complete=settings.shard is None
        and not results.problems
        and labels.keys() <= cases.keys()
        and not any(case.verdict in UNMEASURED for case in cases.values()),
        compared=_compared(suites, cases),
        shard=results.shard,
        problems=tuple(results.problems),
        exit_status=exit_status,
    )
    if baseline is None:
        return run
    return replace(
        run,
        base=baseline.model,
        differences=listed_differences(run, baseline),
        blessed="" if baseline.paper else baseline.created,
        baseline_sha256=baseline.sha256,
    )


def _compared(
    suites: Sequence[Suite], cases: Mapping[str, CaseResult]
) -> tuple[int, int] | None:
    """Return how many facts were compared, and of how many; ``None`` where none was."""
    compared = set[tuple[str, str]]()
    for case in cases.values():
        if not case.aggregate and any(value.paired for value in case.metrics):
            of = case.unmatched
            alone = {*of.added, *of.waived, *of.unanswered}
            facts = {row.fact_id for row in case.table.rows} - alone
            compared |= {(case.suite, fact) for fact in facts}
    asked = {
        (suite.path, fact.id)
        for suite in suites
        for case in suite.cases
        if f"{suite.path}::{case.id}" in cases
        for fact in case.facts
    }
    return (len(compared), len(asked | compared)) if compared else None


def dump_responses(
    cases: Sequence[CaseResult], store: RunStore, directory: Path
) -> Iterator[str]:
    """Write the responses of a run into a file in ``directory``; yield in words what is not there."""
    directory.mkdir(parents=True, exist_ok=True)
    counts = store.dump(directory / RESPONSES, [case.nodeid for case in cases])
    for case in cases:
        # A case that ran again has more.
        if (recorded := counts[case.nodeid]) < case.requests:
            yield f"{case.nodeid}: only {recorded} of its {case.requests} responses are recorded"


def write_reports(run: Run, directory: Path, baseline: Baseline | None = None) -> Run:
    """Write all reports into ``directory``, beside the responses; return the run with its files' digests.

    ``baseline`` is what the run was compared with: the page draws its facts beside the run's.
    """
    tables = [(case.nodeid, case.table) for case in run.cases if not case.aggregate]
    with new_file(directory / OUTCOMES, force=True) as stream:
        stream.buffer.write(packed(dump_tables(tables, texts=True)))
    # A report is read with its own files only.
    paths = [directory / name for name in (RESPONSES, OUTCOMES)]
    run = replace(
        run,
        files=tuple((path.name, sha256_of(path)) for path in paths if path.is_file()),
    )
    write_json(run, directory / REPORT)
    write_text(directory / PAGE, page_of(run, baseline, directory), force=True)
    write_text(directory / SUMMARY, summary_markdown(run), force=True)
    return run


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text else "it failed and did not say why"


def _environment(settings: Settings, results: SessionResults) -> dict[str, str]:
    entries = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        **_versions(),
        "workers": settings.workers,
        "model_notes": "\n".join(results.notes),
        "tokens_spent": "\n".join(
            _spent(settings, name, *counts)
            for name, counts in results.spent.items()
            if any(counts)
        ),
    }
    if results.load_seconds:
        entries["model_load_seconds"] = f"{results.load_seconds:.2f}"
        entries["engine"] = ", ".join(sorted(results.engines))
    if results.helpers:
        asked, reused = map(str, results.helped)
        entries |= {"helpers_asked": asked, "helpers_reused": reused}
    if results.answered[0] or results.resumed:
        asked, reused = map(str, results.answered)
        folder = settings.use_cache
        entries |= {
            "answers_asked": asked,
            "answers_reused": reused,
            "answers_store": os.path.relpath(folder, settings.here)
            if folder
            else NO_CACHE,
            "answers_not_kept": results.cache_problem,
            "answers_resumed": results.resumed,
        }
    # Only what has a value is recorded.
    return {name: text for name, text in entries.items() if text}


def _spent(
    settings: Settings, name: str, read: int, written: int, unstated: int
) -> str:
    cost = ""
    # The prices are those of the model under test.
    if settings.prices is not None and name == settings.model.strip():
        cost = f", {cost_of(read, written, settings.prices):,.4f} by the prices given"
    more = f", and replies without usage: {unstated:,}" if unstated else ""
    return f"{name}: {read:,} tokens read and {written:,} written{cost}{more}"


@functools.cache
def _versions() -> dict[str, str]:
    """Return the versions of the installed packages that matter to a run."""
    versions = {}
    for package in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions
