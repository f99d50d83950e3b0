"""The plugin of the controlling process: collects results, decides aggregates, writes reports and baselines.

Under xdist the cases themselves run in workers. Aggregates are decided once all items have run, as cases that
pytest counts like any other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pytest_kbrel.baselines import (
    Baseline,
    baseline_directory,
    commit_of,
    write_baseline,
)
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.model_pool import (
    News,
    announcements_of,
    run_lock,
    spec_notes,
)
from pytest_kbrel.evaluation.recorded_run import names_of
from pytest_kbrel.plugin import worker
from pytest_kbrel.plugin.fixtures import (
    emit_reports,
    failure_message,
    runner_key,
    uses_model,
    waiver_text,
)
from pytest_kbrel.plugin.options import find_suites, is_on_command_line
from pytest_kbrel.plugin.output_folder import (
    RunFolder,
    move_aside,
    move_back,
)
from pytest_kbrel.plugin.preflight import check_suites, selected
from pytest_kbrel.plugin.summary import complete_junit, write_run
from pytest_kbrel.plugin.termination import TERMINATED, Termination
from pytest_kbrel.printing import printable
from pytest_kbrel.records import (
    CaseResult,
    Run,
)
from pytest_kbrel.reports import add_to_job_page
from pytest_kbrel.reports.formatting import case_title, one_line
from pytest_kbrel.reports.junit import case_properties
from pytest_kbrel.reports.phrases import INTERRUPTED, STOPPED, UNCOLLECTED
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.session.run_builder import (
    SessionResults,
    baseline_of_session,
    build_run,
    decide_aggregates,
    dump_responses,
    write_reports,
)
from pytest_kbrel.session.suite_changes import changed_suites, lost_cases, sharded_run
from pytest_kbrel.settings import RULES, Settings
from pytest_kbrel.store.run_store import AnswerCounts, RunStore
from pytest_kbrel.words import in_suite

UNWRITTEN = "the reports could not be written: "
UNUSABLE = "kbrel: no further case is begun, since all would fail of the same cause"
NO_SUITE = (
    "nothing was measured: found no suite (*.kb.yaml) and no test that uses the model in {paths}; allowed: "
    "paths of suites, or the command without --kb-model and --kb-from-run"
)


class Recorder:
    """pytest plugin that collects the results of a session and turns them into a run."""

    def __init__(
        self, config: pytest.Config, settings: Settings, baseline: Baseline | None
    ) -> None:
        self._config = config
        self._settings = settings
        self._baseline = baseline
        self._results = SessionResults()
        self._finished = False
        self._run: Run | None = None
        self._dumped = self._written = False
        self._page_problem = ""
        # The folder of a baseline written by this run.
        self._blessed: Path | None = None
        self._run_lock = run_lock(settings)
        self._run_folder = RunFolder(settings.output_path, settings.run)
        self.store = RunStore(self._run_folder.store_path)
        self._termination = Termination()
        self._began = self._collected = self._set_aside = False
        self._uncollected = self._interrupted = False
        self._asked = self._unmeasured = False
        self._session: pytest.Session | None = None
        # What a stopped session says of its answers, None as long as it has not said it.
        self._kept: str | None = None

    def begin(self) -> None:
        """Begin a run: move previous reports aside, remove what killed runs left, and handle SIGTERM.

        Called once a suite or a test that uses a model is seen, so that other tests change nothing.
        """
        if not self._began:
            self._began = True
            self._termination.watch()
            self._set_aside = move_aside(self._settings.output_path)
            self._run_folder.clear()

    def mark_active(self) -> None:
        """Take the run lock, if registered, so that other runs see that this one is active."""
        if self._run_lock is not None:
            self._run_lock.acquire()

    def expect(self, nodeids: Sequence[str]) -> None:
        """Expect results of the items of suites among ``nodeids``."""
        # Python tests use models too: the process that collected them has registered the run.
        self.mark_active()
        expected = self._results.expected
        mine = dict.fromkeys(filter(in_suite, nodeids))
        if mine.keys() <= expected.keys():
            if self._settings.shard and not expected:
                # One of Python tests only.
                shard = sharded_run(self._settings, (), self._config.rootpath)
                self._results.shard = shard
            return
        self.begin()
        expected |= mine
        config, settings, results = self._config, self._settings, self._results
        try:
            # Read now, since a suite may be edited during the run.
            results.suites = worker.suites_of(config, list(expected), settings)
        except KbrelError as error:
            results.problems[str(error)] = None
        results.shard = sharded_run(settings, results.suites, config.rootpath)
        try:
            check_suites(config, settings, self._baseline, results.suites, expected)
        except KbrelError as error:
            expected.clear()
            raise pytest.UsageError(str(error)) from None
        changed = changed_suites(settings, results.suites)
        results.notes |= dict.fromkeys(changed)
        self.store.open()

    def counts(self) -> Sequence[AnswerCounts]:
        """Return the counts of answers of this process, or of all workers."""
        if (runner := self._config.stash.get(runner_key, None)) is not None:
            return [runner.pool.counts]
        return self.store.counts()

    def stop_workers(self, interrupt: bool) -> None:
        """End all workers, if there are any; with ``interrupt`` by Ctrl-C."""

    def pytest_report_header(self) -> list[str]:
        """Return the models of the run, and remarks about model arguments without effect."""
        notes = [one_line(note, 500) for note in spec_notes(self._settings)]
        lines = (self._who(), *announcements_of(self._settings), *notes)
        return [printable(f"kbrel: {line}") for line in lines]

    def _who(self) -> str:
        settings, here = self._settings, self._settings.here
        judge = f", judge {settings.judge}" if settings.judge != RULES else ""
        against = ""
        if settings.baseline_model:
            against = f", baseline model {settings.baseline_model}"
        elif settings.baseline and settings.shard is None:
            against = f", baseline {settings.baseline}"
            if self._baseline is not None and self._baseline.sha256:
                against += f" (sha256 {self._baseline.sha256[:12]})"
        who = f"model {settings.model}{judge}{against}"
        if (shard := settings.shard) is not None:
            who += f", shard {shard} by {shard.by}: it decides nothing, kbrel merge or --kb-from-run joins all"
        if settings.from_run is None:
            return who
        record = names_of(settings.recorded, here)
        output = os.path.relpath(settings.output_path, here)
        return f"deciding again over {record} ({who}); no model is loaded, reports go to {output}"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Begin if the arguments name suites."""
        self._session = session
        if find_suites(self._config):
            self.begin()

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """Begin at the first suite."""
        if in_suite(collector.nodeid):
            self.begin()

    def pytest_collection_modifyitems(self) -> None:
        """Note that a serial run has collected everything."""
        self._collected = True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note suites that could not be collected: the run is then incomplete."""
        if report.failed and in_suite(report.nodeid):
            self._uncollected = True
            # A comment on a pull request has no use for the folders of the machine.
            said = report.longreprtext.strip() or "it did not say why"
            error = said.splitlines()[0]
            error = error.replace(f"{self._config.rootpath}{os.sep}", "")
            self._results.problems[
                f"{report.nodeid}{UNCOLLECTED}{one_line(error, 500)}"
            ] = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Expect the items of a serial run."""
        if any(map(uses_model, session.items)):
            self.begin()
        self.expect([item.nodeid for item in session.items])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note which items were begun."""
        self._results.begun.add(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read the results on a report, from this process or from a worker."""
        self._asked = self._asked or hasattr(report, "kbrel_asks")
        if text := getattr(report, "kbrel", ""):
            # pytest keeps all reports to the end.
            report.kbrel = ""  # type: ignore[attr-defined]
            wire: dict[str, Any] = json.loads(text)
            if wire["results"]:
                # Until now nobody knew of a worker's test that requests fixtures while it runs.
                self.begin()
                self.mark_active()
                self.store.open()
                self._results.add_news(from_wire(News, wire["news"]))
            for result in wire["results"]:
                decided = from_wire(CaseResult, result)
                # With a case that ends the session come others of its suite, which are not run any more.
                item = decided.nodeid if in_suite(report.nodeid) else report.nodeid
                self._results.add(item, decided)
        self._results.note(report)

    @pytest.hookimpl(specname="pytest_runtest_logreport", trylast=True)
    def pytest_stop_at_unusable_model(self, report: pytest.TestReport) -> None:
        """End the session at the first case that fails for a reason that all others share.

        A Python test does not end it: others beside it may need no model.
        """
        if hasattr(report, "kbrel_unusable") and in_suite(report.nodeid):
            self._results.problems[
                f"no case can be decided: {report.kbrel_unusable}"
            ] = None
            pytest.exit(UNUSABLE, returncode=pytest.ExitCode.USAGE_ERROR)

    def end_at_budget(self, nodeid: str, why: str, news: News) -> NoReturn:
        """End the session as an interrupted one at an item for which nothing more may be spent."""
        self._results.add_news(news)
        # What it asked for is kept, and nothing is wrong with it.
        self._results.begun.discard(nodeid)
        kept = self._run_lock.summary().answers if self._run_lock is not None else 0
        answers = f": {kept:,} answers are kept" if kept else ""
        message = f"{why}; run it again, it goes on{answers}"
        self._results.problems[message] = None
        self._kept = ""
        pytest.exit(
            f"kbrel: {printable(message)}", returncode=pytest.ExitCode.INTERRUPTED
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        """Report expected items without results, then decide the aggregates."""
        outcome = yield
        self._results.expect_crashed()
        for nodeid, reason in self._results.unaccounted():
            emit_reports(session, nodeid, reason)
        self._decide_aggregates(session)
        if self._results.cases:
            from pytest_kbrel.gates import unsound_suites

            results = self._results
            unsound = unsound_suites(results.cases.values())
            results.problems |= dict.fromkeys((*unsound, *results.lost.values()))
        self._finished = True
        return outcome

    def pytest_keyboard_interrupt(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """Note Ctrl-C; SIGTERM and pytest.exit come here too."""
        self._interrupted = excinfo.type is KeyboardInterrupt

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the baseline, if requested, and the reports."""
        self._session = session
        ended = False
        self._termination.hold()
        if not self._finished:
            self.stop_workers(self._termination.arrived)
        if (
            self._results.expected
            or self._results.cases
            or self._stopped_collecting(session)
        ):
            with self._run_folder.alone():
                ended = self._finish(session)
        elif self._set_aside and (
            self._collected or session.exitstatus == pytest.ExitCode.USAGE_ERROR
        ):
            move_back(self._settings.output_path)
        elif not (self._began or self._asked) and any(
            is_on_command_line(self._config, name) for name in ("model", "from_run")
        ):
            self._unmeasured = True
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        self.store.close()
        self._run_folder.end()
        if self._run_lock is not None:
            self._run_lock.release(ended=ended)

    def pytest_unconfigure(self) -> None:
        """Restore the former handler of SIGTERM; a session that received one never exits with 0."""
        if (
            self._termination.arrived
            and self._session is not None
            and not self._session.exitstatus
        ):
            self._session.exitstatus = pytest.ExitCode.INTERRUPTED
        self._termination.end()

    def _stopped_collecting(self, session: pytest.Session) -> bool:
        """Return True if the run stopped before its cases were known, or a suite could not be read."""
        stopped = (
            not self._collected and session.exitstatus == pytest.ExitCode.INTERRUPTED
        )
        return self._began and (stopped or bool(self._results.problems))

    def _finish(self, session: pytest.Session) -> bool:
        if not self._finished:
            # Where a suite cannot be read, pytest begins no case, and the problem says why.
            if self._interrupted:
                self._results.problems[INTERRUPTED] = None
            elif (
                not self._uncollected
                or self._results.begun
                or self._termination.arrived
            ):
                self._results.problems[STOPPED] = None
            self._results.stopped = True
            if self._kept is None:
                self._kept = self._kept_answers()
            # The case that was stopped may be the first, of which no report says who answered.
            if (runner := self._config.stash.get(runner_key, None)) is not None:
                self._results.add_news(runner.pool.news())
        if self._termination.arrived:
            self._results.problems[TERMINATED] = None
        run = self._attempt(self._dump, self._make_run(), UNWRITTEN)
        ended = self._note_resumed(session, run)
        run = self._make_run()
        if self._settings.baseline_update:
            run = self._attempt(self._bless, run)
        if self._dumped:
            run = self._attempt(self._write, run, UNWRITTEN)
        complete_junit(self._config, self._settings, run)
        self._run = run
        return ended

    def _attempt(self, step: Callable[[Run], Run], run: Run, what: str = "") -> Run:
        """Return the run after a last step with it, whose failure is a problem of the run."""
        try:
            return step(run)
        except (KbrelError, OSError, ValueError) as error:
            self._results.problems[f"{what}{error}"] = None
            return self._make_run()

    def _dump(self, run: Run) -> Run:
        """Write the responses, which a baseline needs too."""
        output = self._settings.output_path
        problems = dump_responses(run.cases, self.store, output)
        self._results.problems |= dict.fromkeys(problems)
        self._dumped = True
        return run

    def _bless(self, run: Run) -> Run:
        """Write the run as a baseline, with the commit at which it was made."""
        root = self._config.rootpath
        environment = dict(run.environment) | {"commit": commit_of(root)}
        run = replace(run, environment=tuple(sorted(environment.items())))
        folder = baseline_directory(str(self._settings.baseline_update), root)
        write_baseline(folder, run, self._settings.baseline_reason)
        self._blessed = folder
        return run

    def _write(self, run: Run) -> Run:
        output = self._settings.output_path
        run = write_reports(run, output, self._compared_with())
        self._written = True
        # A shard decides nothing: the run that joins all shards is shown.
        if not self._results.shard:
            self._page_problem = add_to_job_page(output)
        return run

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print the first screen of the run, and what became of its answers and its baseline."""
        if self._unmeasured:
            paths = one_line(", ".join(self._config.args), 300)
            terminalreporter.write_line(
                printable(f"kbrel: {NO_SUITE.format(paths=paths)}"), red=True
            )
        if self._run is None:
            return
        where = os.path.relpath(self._settings.output_path, self._settings.here)
        output = where if self._written else ""
        write_run(terminalreporter, self._settings, self._run, output)
        if self._kept:
            terminalreporter.write_line(f"kbrel: {self._kept}")
        if self._page_problem:
            terminalreporter.write_line(printable(self._page_problem), yellow=True)
        if self._blessed is not None:
            folder = os.path.relpath(self._blessed, self._settings.here)
            line = f"blessed as {self._settings.baseline_update}: {folder}"
            terminalreporter.write_line(printable(line))

    def _kept_answers(self) -> str:
        """Return what a further run finds of the answers that this stopped one has."""
        if self._settings.from_run is not None or not (
            count := sum(one.asked for one in self.counts())
        ):
            return ""
        if self._settings.use_cache is None or self._results.cache_problem:
            why = self._results.cache_problem or "--kb-use-cache=off keeps none"
            return f"{count:,} answers are not kept: {why}"
        return f"run it again, it goes on: {count:,} answers are kept"

    def expected_requests(self) -> tuple[Mapping[str, int], Mapping[str, str]]:
        """Return the requests, at most, and titles of the cases, by node id; empty before collection."""
        from pytest_kbrel.evaluation.stub_run import requests_of

        models, shard = 2 if self._settings.baseline_model else 1, self._settings.shard
        asked = {
            f"{case.suite}::{case.id}": case
            for case in selected(self._results.suites, self._results.expected)
        }
        requests = {
            nodeid: models * requests_of(case, shard) for nodeid, case in asked.items()
        }
        return requests, {nodeid: case_title(case) for nodeid, case in asked.items()}

    def _note_resumed(self, session: pytest.Session, run: Run) -> bool:
        """Note the answers taken over from an unfinished run; return True if this one has finished."""
        if self._run_lock is None:
            return True
        summary = self._run_lock.summary()
        undecided = any(case.verdict == "invalid" for case in run.cases)
        ended = (
            self._finished
            and self._results.all_measured()
            and not (summary.failed and undecided)
        )
        # After a stop at a failure the model may be changed under the same name.
        if session.shouldfail or session.shouldstop:
            ended = ended or self._results.failed_measured(summary.failed)
        count = summary.unused if ended else summary.answers
        unfinished = f"this run did not end: the server's {count} answers are kept for a day, for the next run"
        unused = f"{count} of the answers taken over were not needed, and stay for the next run"
        lines = [*summary.notes, *([unused if ended else unfinished] if count else [])]
        self._results.resumed = "\n".join(lines)
        return ended

    def _decide_aggregates(self, session: pytest.Session) -> None:
        if self._settings.shard is not None:
            return
        settings, results = self._settings, self._results
        before, root = self._compared_with(), self._config.rootpath
        results.lost |= lost_cases(settings, results.suites, before, root)
        for aggregate, result in decide_aggregates(
            results, baseline=before, judge=settings.judge
        ):
            results.add(result.nodeid, result)
            emit_reports(
                session,
                result.nodeid,
                failure_message(settings, result),
                properties=case_properties(result),
                line=aggregate.line,
                is_new=True,
                waived=waiver_text(settings, result),
            )

    def _compared_with(self) -> Baseline | None:
        """Return the baseline: a blessed run, or the results of the baseline model in this session."""
        # A shard compares nothing.
        blessed = None if self._results.shard is not None else self._baseline
        return baseline_of_session(self._results, self._settings.judge) or blessed

    def _make_run(self) -> Run:
        session = self._session
        assert session is not None
        if self._results.problems and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        before, status = self._compared_with(), int(session.exitstatus)
        return build_run(self._settings, self._results, before, exit_status=status)
