"""``kbrel comment``: a recorded run as the comment on a pull request."""

from __future__ import annotations

from pytest_kbrel.cli.arguments import (
    RUN,
    Options,
    argument,
    command,
    is_json_only,
    output,
    print_document,
    print_result,
)
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.outputs import write_text


@command(
    "comment",
    "write the comment on a pull request about a recorded run",
    RUN,
    *output("FILE", "file to write, by default the terminal", required=False),
    argument("--name", "tells the comments of several gates apart", default=""),
    argument(
        "--link", "page of the job, with its artifacts", metavar="URL", default=""
    ),
    argument("--commit", "the commit that was gated", metavar="ID", default=""),
)
def _run(options: Options) -> int:
    from pytest_kbrel.reports.json_report import read_run
    from pytest_kbrel.reports.rendering import comment_markdown

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
