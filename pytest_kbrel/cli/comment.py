"""``kbrel comment``: a recorded run as the comment on a pull request."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_kbrel.cli.arguments import (
    Commands,
    add_output,
    finish,
    is_json_only,
    print_document,
    print_result,
)
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.outputs import write_text


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "comment", help="write the comment on a pull request about a recorded run"
    )
    parser.add_argument(
        "report", metavar="RUN", type=Path, help="a report folder or its report.json"
    )
    add_output(parser, "FILE", "file to write, by default the terminal", required=False)
    parser.add_argument(
        "--name", default="", help="tells the comments of several gates apart"
    )
    parser.add_argument(
        "--link", metavar="URL", default="", help="page of the job, with its artifacts"
    )
    parser.add_argument(
        "--commit", metavar="ID", default="", help="the commit that was gated"
    )
    finish(parser, _run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.reports.markdown import comment_markdown
    from pytest_kbrel.reports.recorded import read_run

    run = read_run(options.report)
    try:
        text = comment_markdown(
            run, name=options.name, link=options.link, commit=options.commit
        )
    except ArithmeticError as error:
        raise KbrelError(
            f"{options.report}: its figures are none that a run writes: {error}; allowed: a report as a run "
            "wrote it"
        ) from None
    if options.output is not None:
        write_text(options.output, text, force=options.force)
        print_result(options, {"output": options.output}, [])
    elif is_json_only(options):
        print_document({"comment": text})
    else:
        print(text, end="")
    return 0
