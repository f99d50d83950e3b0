"""``kbrel report``: the page of a report folder made anew, without a model."""

from __future__ import annotations

import sys
from pathlib import Path

from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    is_json_only,
    print_result,
)
from pytest_kbrel.printing import printable


@command(
    "report",
    "make report.html of a report folder anew",
    argument("folder", "a report folder, as a run wrote it", Path, metavar="DIR"),
    argument(
        "--rootdir",
        "folder of the project's baselines",
        Path,
        metavar="DIR",
        default=Path(),
    ),
)
def _run(options: Options) -> int:
    from pytest_kbrel.session.page import rebuild_page

    page, warnings = rebuild_page(options.folder, options.rootdir.resolve())
    print_result(options, {"output": page, "warnings": warnings}, [page])
    if not is_json_only(options):
        for warning in warnings:
            print(printable(f"kbrel: {warning}"), file=sys.stderr)
    return 0
