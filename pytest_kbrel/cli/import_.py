"""``kbrel import``: a public dataset as the project's own facts and relations."""

from __future__ import annotations

from pathlib import Path

from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    output,
    print_result,
    switch,
)
from pytest_kbrel.outputs import new_file

_NAMED = 3
_RELATIONS = "relations.yaml"


@command(
    "import",
    "turn a public dataset into facts.jsonl with relations.yaml beside it",
    argument("format", "fktc, popqa, triviaqa, ...", metavar="FORMAT"),
    argument("path", "the file, or for some formats a folder", Path, metavar="PATH"),
    *output(
        "FACTS.jsonl",
        "the file of facts to write; relations.yaml is written beside it",
    ),
    switch("--skip-broken", "leave rows out that cannot be read, and count them"),
    epilog="formats: see docs/datasets.md, or name a wrong one",
)
def _run(options: Options) -> int:
    from pytest_kbrel.errors import SuiteError
    from pytest_kbrel.facts.files import fact_line, relations_text
    from pytest_kbrel.facts.readers import Relations, format_of, read

    form, path = format_of(options.format), options.output
    if path.name == _RELATIONS:
        raise FileExistsError(
            f"{path}: the relations are written under this name; name the facts otherwise"
        )
    relations, relations_output = Relations(), path.parent / _RELATIONS
    names = ("rows", "facts", "duplicates", "unanswered", "skipped")
    counts = dict.fromkeys(names, 0)
    broken: list[str] = []
    with (
        new_file(relations_output, force=options.force) as wordings,
        new_file(path, force=options.force) as stream,
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
        "output": path,
        "relations_output": relations_output,
        **counts,
        "relations": len(relations),
        "first_skipped": broken,
    }
    lines = [
        f"rows read: {counts['rows']}, facts written to {path}: {counts['facts']}, duplicates marked: "
        f"{counts['duplicates']}, without an answer: {counts['unanswered']}, rows skipped: "
        f"{counts['skipped']}, relations in {relations_output}: {len(relations)}",
        *(f"skipped: {message}" for message in broken),
    ]
    if more := counts["skipped"] - len(broken):
        lines.append(f"skipped: {more} more")
    print_result(options, document, lines)
    return 0
