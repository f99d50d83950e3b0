"""``kbrel import``: a public dataset as the project's own facts and relations."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_kbrel.cli.arguments import Commands, add_output, finish, print_result
from pytest_kbrel.outputs import new_file

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
    add_output(
        parser,
        "FACTS.jsonl",
        "the file of facts to write; relations.yaml is written beside it",
    )
    parser.add_argument(
        "--skip-broken",
        action="store_true",
        help="leave rows out that cannot be read, and count them",
    )
    finish(parser, _run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.errors import SuiteError
    from pytest_kbrel.facts.files import fact_line, relations_text
    from pytest_kbrel.facts.readers import Relations, format_of, read

    form, output = format_of(options.format), options.output
    if output.name == _RELATIONS:
        raise FileExistsError(
            f"{output}: the relations are written under this name; name the facts otherwise"
        )
    relations, relations_output = Relations(), output.parent / _RELATIONS
    names = ("rows", "facts", "duplicates", "unanswered", "skipped")
    counts = dict.fromkeys(names, 0)
    broken: list[str] = []
    with (
        new_file(relations_output, force=options.force) as wordings,
        new_file(output, force=options.force) as stream,
    ):
        for row in read(form, [options.path], relations):
            counts["rows"] += 1
            if row.fact is not None:
                counts["facts"] += 1
                counts["duplicates"] += bool(row.fact.duplicate_of)
                counts["unanswered"] += row.fact.object is None
                stream.write(fact_line(row.fact))
                continue
            assert row.error is not None
            if not options.skip_broken:
                raise row.error
            counts["skipped"] += 1
            if len(broken) < _NAMED:
                broken.append(str(row.error))
        if not counts["facts"]:
            raise SuiteError(
                f"none of {counts['rows']} rows could be read; the first: {broken[0]}"
            )
        wordings.write(relations_text(relations.values()))
        wordings.flush()
    document = {
        "output": output,
        "relations_output": relations_output,
        **counts,
        "relations": len(relations),
        "first_skipped": broken,
    }
    lines = [
        f"rows read: {counts['rows']}, facts written to {output}: {counts['facts']}, duplicates marked: "
        f"{counts['duplicates']}, without an answer: {counts['unanswered']}, rows skipped: "
        f"{counts['skipped']}, relations in {relations_output}: {len(relations)}",
        *(f"skipped: {message}" for message in broken),
    ]
    if more := counts["skipped"] - len(broken):
        lines.append(f"skipped: {more} more")
    print_result(options, document, lines)
    return 0
