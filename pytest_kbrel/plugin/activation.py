"""Start of a session: a run, or with --kb-plan a plan of the collected cases that runs nothing."""

from __future__ import annotations

import abc
import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.baselines import Baseline
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.model_pool import (
    announcements_of,
    spec_notes,
)
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.answers.spec import AnswersSpec
from pytest_kbrel.models.registry import backend_of
from pytest_kbrel.plugin.collection import case_of
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.options import is_meant
from pytest_kbrel.plugin.output_folder import move_aside
from pytest_kbrel.plugin.preflight import check, check_suites
from pytest_kbrel.plugin.progress_reporter import ProgressReporter
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.plugin.worker import suites_of
from pytest_kbrel.plugin.xdist import Distribution
from pytest_kbrel.printing import printable
from pytest_kbrel.records import Case, Suite
from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.settings import RULES, Settings

if TYPE_CHECKING:
    from pytest_kbrel.planning.plan import Plan


def start(config: pytest.Config) -> None:
    """Check the settings and register the controller; raises ``UsageError`` for wrong settings.

    A model that only the ini file or the environment names is not checked unless the arguments name suites,
    so that the project's other tests run in any case.
    """
    settings = read_settings(config)
    baseline = None
    if is_meant(config):
        try:
            baseline = check(config, settings)
        except (KbrelError, pytest.UsageError) as error:
            # A CI job that publishes the folder must not publish the reports of the previous run.
            move_aside(settings.output_path)
            raise pytest.UsageError(str(error)) from None
    recorder = Recorder(config, settings, baseline)
    config.pluginmanager.register(recorder, "kbrel-recorder")
    if settings.from_run is None:
        reporter = ProgressReporter(
            config,
            recorder.store,
            recorder.expected_requests,
            "; ".join(announcements_of(settings)),
        )
        recorder.counts = reporter.counts
        config.pluginmanager.register(reporter, "kbrel-progress")
    if config.pluginmanager.hasplugin("xdist"):
        shares = may_share(config, settings)
        distribution = Distribution(recorder, settings, may_share=shares)
        recorder.stop_workers = distribution.stop
        config.pluginmanager.register(distribution, "kbrel-distribution")


def may_share(config: pytest.Config, settings: Settings) -> bool:
    """Return True if the workers of a session may share cases: ask them ahead of the items, which then decide.

    Where failures end the session or a case ends before all is asked, asking ahead would be for nothing.
    """
    if settings.from_run is not None or settings.until_decided:
        return False
    is_asked = not any(
        backend_of(text) is ANSWERS
        for text in (settings.model, settings.baseline_model)
    )
    return is_asked and not config.getoption("maxfail", 0)


def start_plan(config: pytest.Config) -> None:
    """Register the planner; raises ``UsageError`` for settings with which nothing can be planned."""
    settings = read_settings(config)
    try:
        baseline = check(config, settings)
    except KbrelError as error:
        raise pytest.UsageError(str(error)) from None
    if isinstance(settings.own_specs[0], AnswersSpec):
        raise pytest.UsageError(
            f"--kb-plan: nothing is asked of {settings.model}, so there is nothing to plan; allowed: the "
            "model that is to answer, openai/NAME"
        )
    stay_in_one_process(config)
    config.pluginmanager.register(Planner(config, settings, baseline), "kbrel-planner")


def stay_in_one_process(config: pytest.Config) -> None:
    """Keep xdist, which is configured later, from starting workers."""
    for name, value in (("dist", "no"), ("tx", []), ("numprocesses", None)):
        if hasattr(config.option, name):
            setattr(config.option, name, value)


class DryPlugin(abc.ABC):
    """pytest plugin that does something else with the collected cases than to run them."""

    def __init__(
        self, config: pytest.Config, settings: Settings, baseline: Baseline | None
    ) -> None:
        self._config = config
        self._settings = settings
        self._baseline = baseline
        self._used = False

    @abc.abstractmethod
    def use(self, cases: list[Case], suites: list[Suite]) -> None:
        """Use the selected cases, at least one; raises ``KbrelError``."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Use the selected cases; pytest itself reports suites that could not be collected."""
        cases = [case for case in map(case_of, session.items) if case is not None]
        if not cases or self._cannot_run(session):
            return
        self._used = True
        nodeids = [item.nodeid for item in session.items]
        try:
            suites = suites_of(self._config, nodeids, self._settings)
            check_suites(self._config, self._settings, self._baseline, suites, nodeids)
            self.use(cases, suites)
        except KbrelError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run no test of any kind; pytest stops by itself where collection failed."""
        return None if self._cannot_run(session) else True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Exit as pytest does without tests where other tests were all that it found."""
        if not self._used and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED

    def _cannot_run(self, session: pytest.Session) -> bool:
        goes_on = self._config.option.continue_on_collection_errors
        return bool(session.testsfailed and not goes_on)


class Planner(DryPlugin):
    """pytest plugin that plans the collected cases."""

    def __init__(
        self, config: pytest.Config, settings: Settings, baseline: Baseline | None
    ) -> None:
        super().__init__(config, settings, baseline)
        self._plan: Plan | None = None
        self._in_full = config.getoption("verbose", 0) > 0

    def pytest_report_header(self) -> list[str]:
        """Return the model of the plan, and remarks about model arguments without effect."""
        judge = (
            f", judge {self._settings.judge}" if self._settings.judge != RULES else ""
        )
        notes = [one_line(note, 500) for note in spec_notes(self._settings)]
        plan = f"plan for model {self._settings.model}{judge}; nothing is run"
        return [printable(f"kbrel: {line}") for line in (plan, *notes)]

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """Print the plan."""
        if self._plan is None:
            return
        from pytest_kbrel.planning.render import UNLIMITED, plan_lines

        # A file may have lines of any width.
        width = (
            shutil.get_terminal_size().columns if terminalreporter.isatty else UNLIMITED
        )
        terminalreporter.section("plan, nothing was run")
        for line in plan_lines(self._plan, width):
            terminalreporter.write_line(printable(line))

    def use(self, cases: list[Case], suites: list[Suite]) -> None:
        """Plan the cases."""
        from pytest_kbrel.planning.plan import make_plan

        self._plan = make_plan(
            suites,
            cases,
            self._settings,
            self._baseline,
            estimated=not self._in_full,
        )
