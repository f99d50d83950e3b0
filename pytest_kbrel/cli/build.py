"""``kbrel build head-to-tail``: a question set with popularity buckets from a dump of facts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.bounds import CAP, FLAG_SEED, SHARE_OR_NONE, YEAR
from pytest_kbrel.cli.arguments import Commands, finish, number_within, print_result

if TYPE_CHECKING:
    from pytest_kbrel.facts.question_set import Columns, Manifest

_ABOUT = """\
Build a question set with popularity buckets from a dump of facts (CSV, TSV, JSON Lines, Parquet),
by the rules of Head-to-Tail. Defaults are the paper's where it has one for all its sources.
docs/suites.md explains the rules."""


def register(commands: Commands) -> None:
    """Add the command with its one target."""
    build = commands.add_parser("build", help="make something from its sources")
    parser = build.add_subparsers(required=True, metavar="WHAT").add_parser(
        "head-to-tail",
        help="make a question set with popularity buckets from a dump of facts",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "dump", type=Path, metavar="DUMP", help="file of facts, may be compressed (.gz)"
    )
    parser.add_argument(
        "--templates",
        type=Path,
        required=True,
        metavar="YAML",
        help="relations and questions",
    )
    parser.add_argument(
        "--output",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder to write, new or empty",
    )
    _columns(parser)
    rules = parser.add_argument_group("rules")
    rules.add_argument(
        "--until",
        type=number_within(YEAR),
        default=2020,
        metavar="YEAR",
        help="last year (default: 2020)",
    )
    rules.add_argument(
        "--cap",
        type=number_within(CAP),
        default=100,
        metavar="N",
        help="most questions a template and bucket (default: 100)",
    )
    rules.add_argument(
        "--seed",
        type=number_within(FLAG_SEED),
        default=0,
        help="fixes the draw (default: 0)",
    )
    rules.add_argument(
        "--ascii-share",
        type=number_within(SHARE_OR_NONE),
        default=0.6,
        metavar="X",
        help="a subject needs more than this share of ASCII characters; 0 keeps all (default: 0.6)",
    )
    rules.add_argument(
        "--answers",
        choices=("single", "all"),
        default="single",
        help="only facts with one object, or all objects accepted (default: single)",
    )
    rules.add_argument(
        "--answer-in-question",
        choices=("drop", "keep"),
        default="drop",
        help="what becomes of a question that says its answer (default: drop)",
    )
    engine = parser.add_argument_group("engine")
    engine.add_argument(
        "--memory-limit",
        type=_size,
        default="4GB",
        metavar="SIZE",
        help="of DuckDB (default: 4GB)",
    )
    engine.add_argument(
        "--temp-dir",
        type=Path,
        metavar="DIR",
        help="where to spill to disk",
    )
    finish(parser, _run)


def _columns(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the dump's columns")
    for name in ("subject", "relation", "object", "popularity"):
        group.add_argument(f"--{name}", metavar="COLUMN", help=f"default: {name}")
    for name in ("year", "type"):
        group.add_argument(
            f"--{name}",
            metavar="COLUMN",
            help=f"default: {name}, if there; '' for none",
        )
    group.add_argument(
        "--table",
        action="store_true",
        help="a row is an entity and each template names a column, instead of one row a fact",
    )
    group.add_argument(
        "--format",
        choices=("csv", "tsv", "jsonl", "parquet"),
        help="default: by name",
    )
    group.add_argument(
        "--no-quotes", action="store_true", help='" is a plain character in CSV and TSV'
    )


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.facts.question_set import (
        Dump,
        Filters,
        Rules,
        build_question_set,
        format_of,
        read_templates,
    )
    from pytest_kbrel.serialization import to_wire

    dump = Dump(
        path=options.dump,
        format=options.format or format_of(options.dump),
        quotes=not options.no_quotes,
    )
    manifest = build_question_set(
        dump,
        _mapping(options),
        read_templates(options.templates),
        options.output,
        rules=Rules(
            until=options.until,
            cap=options.cap,
            seed=options.seed,
            filters=Filters(
                ascii_share=options.ascii_share,
                answers=options.answers,
                contained=options.answer_in_question,
            ),
        ),
        memory=options.memory_limit,
        folder=options.temp_dir,
    )
    document = {"output": options.output, "manifest": to_wire(manifest)}
    print_result(options, document, _lines(manifest, options.output))
    return 0


def _size(text: str) -> str:
    # DuckDB takes a negative size for no limit at all.
    if text.lstrip().startswith("-"):
        raise argparse.ArgumentTypeError(
            f"found {text!r}; allowed: a size such as 4GB or 800MB"
        )
    return text


def _mapping(options: argparse.Namespace) -> Columns:
    from pytest_kbrel.errors import KbrelError
    from pytest_kbrel.facts.question_set import Columns

    named = {
        name: column
        for name in ("subject", "relation", "object", "popularity")
        if (column := getattr(options, name)) is not None
    }
    if options.table:
        for name in ("relation", "object"):
            if name in named:
                raise KbrelError(
                    f"--{name} {named[name]!r} beside --table; allowed: one of them (the relations of a "
                    "table are columns, which templates name under 'from')"
                )
        named |= {"relation": None, "object": None}
    return Columns(**named, year=options.year, type=options.type)


def _lines(manifest: Manifest, output: Path) -> Iterator[str]:
    yield f"{manifest.rows:,} rows read"
    for reason, count in manifest.skipped.items():
        if count:
            yield f"  {count:,} {reason}"
    for scope in manifest.buckets:
        counts = ", ".join(f"{count:,} {bucket}" for bucket, count in scope.entities)
        yield f"entities of {scope.name}: {counts}"
    for template in manifest.templates:
        if not template.taken:
            counts = ", ".join(f"{count:,}" for count in template.fit)
            yield f"  {template.relation}: no question; fit are {counts} in head, torso, tail"
    taken = sum(template.taken > 0 for template in manifest.templates)
    yield (
        f"{manifest.questions:,} questions from {taken} of {len(manifest.templates)} templates in {output}"
    )
