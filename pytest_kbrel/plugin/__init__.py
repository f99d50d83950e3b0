"""The pytest hooks. Loaded in every pytest run, so nothing heavy may be imported at the top."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.plugin import fixtures, options
from pytest_kbrel.plugin.options import FLAGS
from pytest_kbrel.words import SUITE_SUFFIX, in_suite, is_misnamed

if TYPE_CHECKING:
    from pytest_kbrel.plugin.collection import SuiteFile

# Part of the name of each file that can be a suite, whatever its ending.
_YAML = ".y"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare flags and ini keys."""
    options.add_options(parser)


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Run a session for each of several models."""
    settings = options.text_of(config, "model") + options.text_of(config, "model_args")
    if "|" not in settings or config.option.help or options.is_listing_only(config):
        return None
    from pytest_kbrel.plugin.several_models import run_each

    return run_each(config)


def pytest_configure(config: pytest.Config) -> None:
    """Register marker and fixtures; check the settings and start if a model or a recorded run is given."""
    config.addinivalue_line(
        "markers", "kb(probe): a case of a knowledge suite (pytest-kbrel)"
    )
    # bitsandbytes says it of every product, thousands of times in a run.
    config.addinivalue_line(
        "filterwarnings", "ignore:MatMul8bitLt. inputs will be cast:UserWarning"
    )
    config.pluginmanager.register(fixtures, "kbrel-fixtures")
    options.take_further_runs(config)
    if hasattr(config, "workerinput"):
        if options.SHARING in config.workerinput:
            from pytest_kbrel.plugin.ahead import AskAhead

            config.pluginmanager.register(AskAhead(), "kbrel-ahead")
        return
    named = [text for text in config.args if _YAML in text.lower()]
    if named:
        from pytest_kbrel.plugin.collection import check_named_suites

        check_named_suites(config.invocation_params.dir, named)
    options.check_names(config)
    if options.is_active(config) or config.option.collectonly:
        from pytest_kbrel.plugin.settings import read_settings

        read_settings(config)
    if options.is_listing_only(config):
        return
    if not options.is_active(config):
        _refuse_suites_without_model(config)
    elif options.text_of(config, "export_requests"):
        from pytest_kbrel.plugin.dry_run import Exporter

        config.pluginmanager.register(Exporter(config), "kbrel-exporter")
    elif options.is_on(config, "plan"):
        from pytest_kbrel.plugin.dry_run import Planner

        config.pluginmanager.register(Planner(config), "kbrel-planner")
    else:
        from pytest_kbrel.plugin.activation import start

        start(config)


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return the number of workers for -n auto where a model is run on GPUs, else leave it to xdist."""
    if not options.is_active(config):
        return None
    from pytest_kbrel.plugin.activation import auto_workers

    return auto_workers(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collect suites if a model or a recorded run is given, or with --collect-only."""
    if not (file_path.name.endswith(SUITE_SUFFIX) or is_misnamed(file_path.name)):
        return None
    if not options.is_active(parent.config) and not parent.config.option.collectonly:
        return None
    if is_misnamed(file_path.name):
        from pytest_kbrel.plugin.collection import warn_of

        warn_of(parent, file_path)
        return None
    from pytest_kbrel.plugin.collection import suite_file
    from pytest_kbrel.plugin.settings import read_settings

    suite: SuiteFile = suite_file(parent, file_path)
    suite.settings = read_settings(parent.config)
    return suite


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Say which cases there are where an argument names one that its suite does not have."""
    try:
        return (yield)
    except pytest.UsageError as error:
        if not any(map(in_suite, session.config.args)):
            raise
        from pytest_kbrel.plugin.collection import unknown_cases

        wrong = unknown_cases(session.config)
        raise pytest.UsageError(*(wrong or error.args)) from None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Register the run in the cache if it uses models, before the controller takes the lock."""
    config = session.config
    # With a plan and the like there is no controller, and a worker is never a part of these.
    runs = config.pluginmanager.hasplugin("kbrel-recorder")
    if (runs or hasattr(config, "workerinput")) and any(
        map(fixtures.uses_model, session.items)
    ):
        fixtures.register_run(config)


def pytest_report_header(config: pytest.Config) -> str | list[str]:
    """Return which suites are not collected without a model."""
    if options.is_active(config) or options.is_listing_only(config):
        return []
    if not (suites := options.find_suites(config)):
        return []
    from pytest_kbrel.printing import printable

    named = ", ".join(suites)
    return printable(f"kbrel: no model given (--kb-model), not collected: {named}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the results of a test to its report."""
    report = yield
    # A test may request its fixtures only while it runs.
    asks = fixtures.uses_model(item)
    if asks or fixtures.results_key in item.stash:
        fixtures.attach(report, item, call)
    if asks:
        report.kbrel_asks = True  # type: ignore[attr-defined]
        if in_suite(item.nodeid):
            fixtures.drop_prefix(report, call)
        fixtures.make_printable(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Make the errors of a suite printable, whatever the file contains."""
    report = yield
    if report.failed and collector.path.name.endswith(SUITE_SUFFIX):
        fixtures.make_printable(report)
    return report


def _refuse_suites_without_model(config: pytest.Config) -> None:
    for flag in FLAGS:
        # In addopts, ini file and environment they may be meant for other sessions.
        if options.is_on_command_line(config, flag.name):
            raise pytest.UsageError(
                f"{flag.flag}: found no model (an unset variable?), and a model or a record is needed; "
                "allowed: with --kb-model=SPEC or --kb-from-run=DIR"
            )
    for argument in config.args:
        if in_suite(argument):
            raise pytest.UsageError(
                f"{argument} is a knowledge suite and no model is given: "
                "add --kb-model=SPEC, set KB_MODEL, or write kb_model in the ini file; "
                "or decide a recorded run again with --kb-from-run=DIR"
            )
