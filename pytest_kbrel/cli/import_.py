"""``kbrel import``: a public dataset as the project's own facts and relations."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from pytest_kbrel.cli.arguments import Commands, finish, print_result
from pytest_kbrel.outputs import new_file

if TYPE_CHECKING:
    from pytest_kbrel.facts.readers import Row

_NAMED = 3
_RELATIONS = "relations.yaml"


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "import",
        help="turn a public dataset into facts.jsonl with relations.yaml beside it",
        epilog="formats: see docs/datasets.md, or name a wrong one",
    )
    parser.add_argument("format", metavar="FORMAT", help="fktc, popqa, triviaqa, ...")
    parser.add_argument(
        "path", metavar="PATH", type=Path, help="the file, or for some formats a folder"
    )
    parser.add_argument(
        "--output",
        metavar="FACTS.jsonl",
        type=Path,
        required=True,
        help="the file of facts to write; relations.yaml is written beside it",
    )
    parser.add_argument(
        "--skip-broken",
        action="store_true",
        help="leave rows out that cannot be read, and count them",
    )
    finish(parser, _run, force="replace files that are there")


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.facts.files import relations_text
    from pytest_kbrel.facts.readers import Relations, format_of, read

    form, output = format_of(options.format), options.output
    if output.name == _RELATIONS:
        raise FileExistsError(
            f"{output}: the relations are written under this name; name the facts otherwise"
        )
    relations, relations_output = Relations(), output.parent / _RELATIONS
    with (
        new_file(relations_output, force=options.force) as wordings,
        new_file(output, force=options.force) as stream,
    ):
        counts = _write(
            read(form, [options.path], relations), stream, skip=options.skip_broken
        )
        wordings.write(relations_text(relations.values()))
    document = {
        "output": output,
        "relations_output": relations_output,
        "rows": counts.read,
        "facts": counts.written,
        "duplicates": counts.duplicates,
        "unanswered": counts.unanswered,
        "skipped": counts.skipped,
        "relations": len(relations),
        "first_skipped": counts.broken,
    }
    lines = [
        f"rows read: {counts.read}, facts written to {output}: {counts.written}, duplicates marked: "
        f"{counts.duplicates}, without an answer: {counts.unanswered}, rows skipped: {counts.skipped}, "
        f"relations in {relations_output}: {len(relations)}",
        *(f"skipped: {message}" for message in counts.broken),
    ]
    if counts.skipped > len(counts.broken):
        lines.append(f"skipped: {counts.skipped - len(counts.broken)} more")
    print_result(options, document, lines)
    return 0


class _Counts:
    """Counts of the rows; ``broken`` holds the messages of the first that were skipped."""

    def __init__(self) -> None:
        self.read = self.written = self.duplicates = self.skipped = 0
        self.unanswered = 0
        self.broken: list[str] = []


def _write(rows: Iterator[Row], stream: TextIO, *, skip: bool) -> _Counts:
    """Write the facts one by one; the error of a row is raised, or counted where rows may be skipped."""
    from pytest_kbrel.errors import SuiteError
    from pytest_kbrel.facts.files import fact_line

    counts = _Counts()
    for row in rows:
        counts.read += 1
        if row.fact is not None:
            counts.written += 1
            counts.duplicates += bool(row.fact.duplicate_of)
            counts.unanswered += row.fact.object is None
            stream.write(fact_line(row.fact))
            continue
        assert row.error is not None
        if not skip:
            raise row.error
        counts.skipped += 1
        if len(counts.broken) < _NAMED:
            counts.broken.append(str(row.error))
    if not counts.written:
        raise SuiteError(
            f"none of {counts.read} rows could be read; the first: {counts.broken[0]}"
        )
    return counts
