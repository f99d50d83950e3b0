"""``kbrel merge``: recorded shards joined and decided as one run, without pytest."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.cli.arguments import print_line
from pytest_kbrel.errors import MissingExtraError

if TYPE_CHECKING:
    from pytest_kbrel.cli.arguments import Commands
    from pytest_kbrel.records import Run
    from pytest_kbrel.settings import Settings


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("merge", help="join recorded shards and decide them as one run")
    parser.add_argument(
        "runs", metavar="DIR", type=Path, nargs="+", help="report folders of all shards, or a folder of them"
    )
    parser.add_argument("--output", metavar="DIR", type=Path, required=True, help="folder of the reports")
    parser.add_argument("--baseline", metavar="NAME|PATH", default="", help="blessed run to compare with")
    parser.add_argument(
        "--inconclusive", choices=("warn", "fail"), default="warn", help="what an inconclusive case does"
    )
    parser.add_argument("--junitxml", metavar="FILE", type=Path, help="JUnit file to write as well")
    parser.add_argument(
        "--rootdir", metavar="DIR", type=Path, default=Path(), help="folder in which the suites' paths begin"
    )
    parser.add_argument("--force", action="store_true", help="replace reports that are there")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.replay.joined import runs_in
    from pytest_kbrel.reports import REPORT
    from pytest_kbrel.reports.terminal import terminal_lines
    from pytest_kbrel.session.merge import merge

    if (options.output / REPORT).exists() and not options.force:
        raise FileExistsError(f"{options.output}: holds a report; name another folder or give --force")
    if options.output.resolve() in {run.resolve() for folder in options.runs for run in runs_in(folder)}:
        raise FileExistsError(f"{options.output}: is one of the runs to join; allowed: another folder")
    if options.junitxml is not None:
        _need_junitparser()
    run, settings = merge(
        options.runs,
        options.output,
        root=options.rootdir.resolve(),
        baseline=options.baseline,
        strict=options.inconclusive == "fail",
    )
    if options.junitxml is not None:
        _write_junit(run, settings, options.junitxml)
    width = shutil.get_terminal_size().columns
    for text, _ in terminal_lines(run, width=width, color=False, written_to=str(options.output)):
        print_line(text)
    return run.exit_status


def _need_junitparser() -> None:
    if importlib.util.find_spec("junitparser") is None:
        raise MissingExtraError("junitparser", "junit", "--junitxml")


def _write_junit(run: Run, settings: Settings, path: Path) -> None:
    """Write the cases of a run as pytest's --junitxml has them."""
    from junitparser import Failure, JUnitXml, Properties, Property, Skipped, TestCase, TestSuite

    from pytest_kbrel.reports import phrases, view
    from pytest_kbrel.reports.json_report import case_properties, suite_properties, xml_text
    from pytest_kbrel.reports.terminal import failure_text

    suite = TestSuite("pytest")
    for name, value in suite_properties(run):
        suite.add_property(name, value)
    for of in view.ordered(run):
        case = TestCase(xml_text(of.id), of.suite.replace("/", "."), of.duration)
        properties = Properties()
        for name, value in case_properties(of):
            properties.add_property(Property(name, value))
        case.append(properties)
        if of.waiver is not None and of.waived:
            case.result = [Skipped(xml_text(phrases.waiver_reason(of.waiver)), "pytest.xfail")]
        elif of.verdict in settings.failing:
            lines = [*map(xml_text, failure_text(of, baseline_name=settings.compared_with).splitlines())]
            failure = Failure(lines[0])
            failure.text = "\n".join(lines)
            case.result = [failure]
        suite.add_testcase(case)
    xml = JUnitXml()
    xml.add_testsuite(suite)
    path.parent.mkdir(parents=True, exist_ok=True)
    xml.write(str(path))
