"""What pytest itself writes of a run: the end of the terminal's output, and the file of ``--junitxml``."""

from __future__ import annotations

import os
import shlex
import shutil

import pytest

from pytest_kbrel.plugin.options import FLAGS, is_explicit, with_flags
from pytest_kbrel.records import UNMEASURED, Run, is_published
from pytest_kbrel.reports import PAGE, phrases
from pytest_kbrel.reports.junit import move_properties, suite_properties
from pytest_kbrel.reports.terminal import terminal_lines
from pytest_kbrel.reports.view import View
from pytest_kbrel.settings import Settings


def write_run(
    terminalreporter: pytest.TerminalReporter,
    settings: Settings,
    run: Run,
    output: str,
) -> None:
    """Print the first screen of a run; ``output`` is the folder of its reports, empty if none was written."""
    config = terminalreporter.config
    terminalreporter.write_sep("=", "knowledge reliability")
    lines = terminal_lines(
        run,
        width=shutil.get_terminal_size().columns,
        written_to=output,
        verbosity=config.get_verbosity(),
        steps=next_steps(config, settings, run, output),
        is_first=bool(settings.baseline_update) and not settings.compared_with,
    )
    for text, markup in lines:
        terminalreporter.write_line(text, **markup)


def next_steps(
    config: pytest.Config, settings: Settings, run: Run, output: str
) -> list[tuple[str, str]]:
    """Return what can be done next, with the command for each: go on, rerun the failed, bless, see more."""
    if not run.cases:
        return []

    def command(more: str = "") -> str:
        added = {more} - {"", *config.invocation_params.args}
        words = ["pytest", *with_flags(config, added)]
        return " ".join([*_variables(config), shlex.join(words)])

    # A command that blesses would bless again.
    repeats = not settings.baseline_update
    asks = repeats and settings.from_run is None and run.shard is None
    failed = any(
        case.verdict in settings.failing and not case.waived for case in run.cases
    )
    steps = []
    if phrases.is_uncollected(run):
        # --lf would leave out what was not run.
        failed = False
    elif run.exit_status == pytest.ExitCode.INTERRUPTED:
        failed = False
        what = "run again" if settings.use_cache is None else "go on"
        steps.append((what, command()))
    # --lf is a flag of pytest's cache plugin, which -p no:cacheprovider switches off.
    if asks and failed and config.pluginmanager.hasplugin("lfplugin"):
        steps.append(("rerun the failed", command("--lf")))
    # What cannot be compared is no model to bless in the other's place.
    unfit = {"not comparable", *UNMEASURED}
    undecided = any(case.verdict in unfit for case in run.cases)
    partial = not run.complete or settings.until_decided
    if asks and not (undecided or partial or is_published(run.baseline)):
        name = "" if settings.baseline else "=NAME"
        is_good = View(run).verdict in ("pass", "no baseline")
        what = "bless this run" if is_good else "bless it anyway"
        steps.append((what, command(f"--kb-baseline-update{name}")))
    if repeats and config.get_verbosity() == 0:
        steps.append(("all tables", command("-v")))
    if output:
        steps.append(("all facts", os.path.join(output, PAGE)))
    return steps


def _variables(config: pytest.Config) -> list[str]:
    """Return the settings that the environment gave, as a command begins with them: ``KB_MODEL='a b'``.

    Those of a single command are not there any more when the next one is typed.
    """
    names = [flag.environment for flag in FLAGS if not is_explicit(config, flag.name)]
    given = [name for name in names if os.environ.get(name)]
    return [f"{name}={shlex.quote(os.environ[name])}" for name in given]


def complete_junit(config: pytest.Config, settings: Settings, run: Run) -> None:
    """Add properties of the run to the JUnit file, if one is written, before pytest writes it.

    The properties of cases are moved into their output, unless the settings say otherwise.
    """
    try:
        # pytest has no public way: record_testsuite_property does nothing under xdist (pytest #7767).
        from _pytest.junitxml import xml_key
    except ImportError:
        return
    xml = config.stash.get(xml_key, None)
    if xml is None:
        return
    for name, value in suite_properties(run):
        xml.add_global_property(name, value)
    for reporter in xml.node_reporters.values():
        # Of an item that a worker died before, and that another one has run since.
        if not (reporter.nodes or reporter.duration):
            xml.node_reporters_ordered.remove(reporter)
    if not settings.junit_properties:
        # A finished case returns the element that will be written. One that was cut short has no properties.
        for reporter in xml.node_reporters_ordered:
            move_properties(reporter.to_xml())
