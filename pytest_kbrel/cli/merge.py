"""``kbrel merge``: recorded shards joined and decided as one run, without pytest."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from _pytest.config.exceptions import UsageError
from _pytest.config.findpaths import locate_config
from _pytest.outcomes import Failed

from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    output,
    print_result,
    switch,
)
from pytest_kbrel.errors import KbrelError

_INCONCLUSIVE = ("warn", "fail")
# The keys of the report that --json prints.
_DOCUMENT = ("baseline", "summary", "exit_status", "complete", "problems")


@command(
    "merge",
    "join recorded shards and decide them as one run",
    argument(
        "runs",
        "report folders of all shards, or a folder of them",
        Path,
        metavar="DIR",
        nargs="+",
    ),
    *output("DIR", "folder of the reports"),
    argument(
        "--baseline",
        "blessed run to compare with (default: KB_BASELINE, else kb_baseline of pytest's ini file in "
        "--rootdir, else none)",
        metavar="NAME|PATH",
    ),
    argument(
        "--inconclusive",
        "what an inconclusive case does (default: KB_INCONCLUSIVE, else kb_inconclusive of that file, "
        "else warn)",
        choices=_INCONCLUSIVE,
    ),
    argument("--junitxml", "JUnit file to write as well", Path, metavar="FILE"),
    switch(
        "--junit-properties",
        "write the figures of a case into it as properties, not as output",
    ),
    argument(
        "--rootdir",
        "folder in which the suites' paths begin (default: .)",
        Path,
        metavar="DIR",
        default=Path(),
    ),
)
def _run(options: Options) -> int:
    from pytest_kbrel.evaluation.recorded_run import runs_in
    from pytest_kbrel.outputs import check_free
    from pytest_kbrel.reports import REPORT_FILES, add_to_job_page
    from pytest_kbrel.reports.json_report import report_dict
    from pytest_kbrel.reports.junit import write_junit
    from pytest_kbrel.reports.terminal import terminal_lines
    from pytest_kbrel.session.merge import merge

    junit = [options.junitxml] if options.junitxml is not None else []
    for path in (*(options.output / name for name in REPORT_FILES), *junit):
        check_free(path, force=options.force)
    if options.junit_properties and options.junitxml is None:
        raise KbrelError(
            "--junit-properties: found without --junitxml; allowed: with it"
        )
    if options.output.resolve() in {
        run.resolve() for folder in options.runs for run in runs_in(folder)
    }:
        raise FileExistsError(
            f"{options.output}: is one of the runs to join; allowed: another folder"
        )
    root = options.rootdir.resolve()
    origin, word = _setting("inconclusive", root)
    word = options.inconclusive or word
    if word not in ("", *_INCONCLUSIVE):
        raise KbrelError(
            f"{origin}: found {word!r}; allowed: {' or '.join(_INCONCLUSIVE)}"
        )
    run, settings = merge(
        options.runs,
        options.output,
        root=root,
        baseline=_setting("baseline", root)[1]
        if options.baseline is None
        else options.baseline,
        strict=word == "fail",
    )
    for path in junit:
        write_junit(
            run,
            path,
            failing=settings.failing,
            baseline_name=settings.compared_with,
            as_properties=options.junit_properties,
        )
    width = shutil.get_terminal_size().columns
    lines = [
        text
        for text, _ in terminal_lines(run, width=width, written_to=str(options.output))
    ]
    warnings = list(filter(None, [add_to_job_page(options.output)]))
    report = report_dict(run)
    document = {
        "output": options.output,
        **{key: report[key] for key in _DOCUMENT},
        "warnings": warnings,
    }
    print_result(options, document, [*lines, *warnings])
    return run.exit_status


def _setting(name: str, root: Path) -> tuple[str, str]:
    """Return where a setting stands and its value, empty where it is not given, as pytest would read it.

    Raises :class:`KbrelError` for a file that pytest refuses as well.
    """
    variable, key = f"KB_{name.upper()}", f"kb_{name}"
    if value := os.environ.get(variable):
        return variable, value
    try:
        _, path, values, *_ = locate_config(root, [root])
    except (UsageError, Failed, OSError, ValueError) as error:
        raise KbrelError(f"{root}: cannot be read: {error}") from None
    if path is None or path.parent != root or key not in values:
        return key, ""
    # pytest 9 keeps a value together with where it stands.
    text = getattr(values[key], "value", values[key])
    if not isinstance(text, str):
        raise KbrelError(f"{path}: {key}: found {text!r}; allowed: a text in quotes")
    return f"{path}: {key}", text
