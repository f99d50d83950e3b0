"""The controller's side: what was expected, what arrived, what it adds up to.

Only this side writes reports and baselines. It decides the aggregates once all items have run, as cases that
pytest counts like any other, with and without xdist.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_kbrel import bench
from pytest_kbrel.collect import comparisons
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.fixtures import bench_key, failure_message, result_key
from pytest_kbrel.options import SUITE_SUFFIX, KbOptions, read_options
from pytest_kbrel.records import CaseResult, Fingerprint, Run, Suite
from pytest_kbrel.reports.junit import case_properties
from pytest_kbrel.wire import from_wire, to_wire

REPORTS = ("report.json", "report.html", "summary.md", "responses.jsonl")


def start(config: pytest.Config) -> None:
    """Check all that can be checked before anything is loaded, then begin to record."""
    options = read_options(config)
    try:
        from pytest_kbrel.models.hf import check

        check(bench.model_spec(options))
        if options.baseline:
            bench.read_baseline(options, config)
    except KbrelError as error:
        raise pytest.UsageError(str(error)) from None
    if options.baseline_update and options.limit is not None:
        raise pytest.UsageError(
            "--kb-baseline-update blesses complete runs only, and --kb-limit leaves facts out"
        )
    recorder = Recorder(config, options)
    config.pluginmanager.register(recorder, "kbrel-recorder")
    if config.pluginmanager.hasplugin("xdist"):
        from pytest_kbrel.distribute import Distribution

        config.pluginmanager.register(Distribution(recorder, options.device), "kbrel-distribution")


def attach(report: pytest.TestReport, item: pytest.Item) -> None:
    """Put a decided case on its report, as builtins that execnet carries."""
    fingerprint = item.config.stash[bench_key].fingerprint()
    # mypy is right that a report has no such attribute: this is how measurements travel on it.
    report.kbrel = {"result": to_wire(item.stash[result_key]), "model": to_wire(fingerprint)}  # type: ignore[attr-defined]


class Recorder:
    """Gathers the cases of a session and turns them into a run."""

    def __init__(self, config: pytest.Config, options: KbOptions) -> None:
        self._config = config
        self._options = options
        self._expected: dict[str, None] = {}
        self._arrived: dict[str, str] = {}
        self._results: dict[str, CaseResult] = {}
        self._failures: dict[str, str] = {}
        self._model: Fingerprint | None = None
        self._problems: list[str] = []
        self._suites: list[Suite] = []
        self._finished = False
        self._run: Run | None = None

    def expect(self, nodeids: Iterable[str]) -> None:
        """Note items that must report before the session may end well."""
        self._expected |= dict.fromkeys(
            nodeid for nodeid in nodeids if nodeid.split("::", 1)[0].endswith(SUITE_SUFFIX)
        )

    @pytest.hookimpl
    def pytest_report_header(self) -> str:
        """Name the model and what it is held against."""
        against = f", baseline {self._options.baseline}" if self._options.baseline else ""
        return f"kbrel: model {self._options.model}{against}"

    @pytest.hookimpl
    def pytest_sessionstart(self) -> None:
        """Clear away what an earlier run left, so that nothing stale can pass for this run's."""
        for name in REPORTS:
            (self._options.output_path / name).unlink(missing_ok=True)
        shutil.rmtree(self._options.output_path / bench.PARTS, ignore_errors=True)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn the items of a serial run."""
        self.expect(item.nodeid for item in session.items)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what arrives, from this process or from a worker."""
        if report.when in ("call", "???") or report.outcome != "passed":
            self._arrived[report.nodeid] = report.outcome
        if report.failed:
            self._failures.setdefault(report.nodeid, report.longreprtext.strip())
        wire: dict[str, Any] | None = getattr(report, "kbrel", None)
        if wire is not None:
            result = from_wire(CaseResult, wire["result"])
            self._results[result.nodeid] = result
            self._model = from_wire(Fingerprint, wire["model"])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Hold what arrived against what was expected, then decide the aggregates."""
        outcome = yield
        if self._expected:
            for nodeid in self._expected:
                if nodeid not in self._arrived:
                    self._report(nodeid, "no report arrived for this item: it was expected and never ended")
            self._suites = bench.suites_of(self._config, list(self._expected), self._options)
            self._decide_aggregates(session)
        self._finished = True
        return outcome

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the reports, and the baseline if this run may be blessed."""
        if not self._expected and not self._results:
            return
        if not self._finished:
            self._problems.append("the session stopped before all its cases were decided")
        self._run = self._make_run(int(session.exitstatus))
        try:
            self._run = self._write(self._run)
        except (KbrelError, OSError, ValueError) as error:
            self._problems.append(str(error))
            self._run = self._make_run(int(session.exitstatus) or int(pytest.ExitCode.TESTS_FAILED))
            session.exitstatus = self._run.exit_status

    @pytest.hookimpl
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table of cases."""
        if self._run is None:
            return
        from pytest_kbrel.reports.terminal import terminal_lines

        terminalreporter.section("knowledge reliability")
        lines = terminal_lines(
            self._run,
            width=shutil.get_terminal_size().columns,
            written_to=os.path.relpath(self._options.output_path, self._config.invocation_params.dir),
        )
        for text, markup in lines:
            terminalreporter.write_line(text, **markup)

    def _decide_aggregates(self, session: pytest.Session) -> None:
        from pytest_kbrel.gates import decide_aggregate

        baseline = bench.read_baseline(self._options, self._config) if self._options.baseline else None
        incomparable = bench.incomparable(self._model, baseline)
        family = comparisons(self._suites, self._expected)
        for suite in self._suites:
            for aggregate in suite.aggregates:
                members = [f"{suite.path}::{member}" for member in aggregate.members]
                if not all(member in self._expected for member in members):
                    continue
                result = decide_aggregate(
                    aggregate,
                    [self._results[member] for member in members if member in self._results],
                    baseline=baseline,
                    comparisons=family,
                    incomparable=incomparable,
                )
                self._results[result.nodeid] = result
                # The progress column counts to what was collected, and must end at 100 %.
                session.testscollected += 1
                self._report(
                    result.nodeid,
                    failure_message(self._config, result),
                    case_properties(result),
                    line=aggregate.line,
                )

    def _report(
        self,
        nodeid: str,
        failure: str,
        properties: Sequence[tuple[str, str]] = (),
        line: int = 0,
    ) -> None:
        """Hand pytest the reports of a case that no item ran, so that it counts, prints and exits by it."""
        path, _, name = nodeid.partition("::")
        location = (path, max(line - 1, 0), name)
        hook = self._config.hook
        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        for when in ("setup", "call", "teardown"):
            failed = bool(failure) and when == "call"
            report = pytest.TestReport(
                nodeid=nodeid,
                location=location,
                keywords={},
                outcome="failed" if failed else "passed",
                longrepr=failure if failed else None,
                when=when,
                user_properties=properties,
            )
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)

    def _make_run(self, exit_status: int) -> Run:
        from pytest_kbrel.runs import assemble

        return assemble(
            config=self._config,
            options=self._options,
            suites=self._suites,
            expected=list(self._expected),
            results=self._results,
            failures=self._failures,
            skipped=[nodeid for nodeid, outcome in self._arrived.items() if outcome == "skipped"],
            model=self._model,
            problems=self._problems,
            finished=self._finished,
            exit_status=exit_status,
        )

    def _write(self, run: Run) -> Run:
        from pytest_kbrel.reports import write_reports
        from pytest_kbrel.reports.responses import join_spools

        directory = self._options.output_path
        directory.mkdir(parents=True, exist_ok=True)
        parts = directory / bench.PARTS
        order = [case.nodeid for case in run.cases]
        joined = join_spools(sorted(parts.glob("*.jsonl")), directory / "responses.jsonl", order)
        if joined.torn:
            workers = ", ".join(path.stem for path in joined.torn)
            run = replace(
                run, problems=(*run.problems, f"the last response of {workers} is torn and left out")
            )
        shutil.rmtree(parts, ignore_errors=True)
        write_reports(run, directory)
        if self._options.baseline_update:
            from pytest_kbrel.baselines import baseline_directory, write_baseline

            write_baseline(baseline_directory(self._options.baseline_update, self._config.rootpath), run)
        return run
