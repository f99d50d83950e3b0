"""Question sets by the rules of Head-to-Tail, from dumps of any size (Sun et al. 2023, arXiv 2308.10168).

The work is done by DuckDB within a limit of memory, and on disk beyond it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel import __version__
from pytest_kbrel.errors import MissingExtraError, SuiteError
from pytest_kbrel.facts.files import fact_line, relations_text
from pytest_kbrel.facts.question_set.draw import (
    Filters,
    Scope,
    Stratum,
    all_answers,
    bucket_entities,
    draw,
)
from pytest_kbrel.facts.question_set.dump import (
    NO_OBJECT,
    REASONS,
    SUFFIXES,
    Columns,
    Dump,
    Template,
    columns_of,
    format_of,
    open_rows,
    read_templates,
)
from pytest_kbrel.records import BUCKETS, Bucket, Fact, Relation, record

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "SUFFIXES",
    "Columns",
    "Dump",
    "Engine",
    "Filters",
    "Manifest",
    "Rules",
    "Template",
    "build_question_set",
    "columns_of",
    "format_of",
    "read_templates",
]


@record
class Rules:
    """What goes into the set: nothing after the year ``until``, ``cap`` questions a template and bucket."""

    until: int = 2020
    cap: int = 100
    seed: int = 0
    filters: Filters = Filters()


@record
class Engine:
    """What DuckDB may use: memory, threads (``None``: all cores), and a folder to spill into."""

    memory: str = "4GB"
    threads: int | None = None
    folder: Path | None = None


@record
class TemplateCounts:
    """What became of one template: ``taken`` questions from each bucket, and why not more.

    ``rows`` are those of the dump with this relation; the others count questions by bucket, head first.
    """

    relation: str
    rows: int
    questions: tuple[int, int, int]
    fit: tuple[int, int, int]
    left_out: dict[str, int]
    taken: int


@record
class Manifest:
    """How a question set came about. It names no time and no place: the same input gives the same bytes."""

    kbrel_version: str
    dump: str
    columns: Columns
    rules: Rules
    rows: int
    skipped: dict[str, int]
    buckets: tuple[Scope, ...]
    templates: tuple[TemplateCounts, ...]
    questions: int


def build_question_set(
    dump: Dump,
    columns: Columns,
    templates: Sequence[Template],
    output: Path,
    *,
    rules: Rules | None = None,
    engine: Engine | None = None,
) -> Manifest:
    """Write ``facts.jsonl``, ``relations.yaml`` and ``manifest.json`` into the new folder ``output``.

    Entities are bucketed by cumulative popularity within their type, or their template's domain. Each
    template then gives equally many questions a bucket: what its poorest bucket has, at most its cap. Raises
    ``SuiteError`` on a dump that cannot be read or gives no question, ``MissingExtraError`` without DuckDB.
    """
    rules, engine = rules or Rules(), engine or Engine()
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise SuiteError("exists already; allowed: a folder that does not, or an empty one", output)
    if not dump.path.is_file():
        raise SuiteError("cannot be read: no such file", dump.path)
    with _connected(engine, dump) as connection:
        columns = open_rows(connection, dump, columns, templates, rules.until)
        counts = _row_counts(connection)
        scopes = bucket_entities(connection)
        most = max(template.cap or rules.cap for template in templates)
        strata = draw(connection, rules.filters, most=most, seed=rules.seed)
        taken = _equal_counts(templates, strata, rules.cap)
        chosen = [(s.template, one.subject) for s in strata for one in s.drawn[: taken[s.template]]]
        answers = all_answers(connection, chosen) if rules.filters.answers == "all" else {}
    rows = [sum(n for of, _, n in counts if of == number) for number in range(len(templates))]
    if columns.relation is None:
        rows = [count - sum(n for of, why, n in counts if (of, why) == (number, NO_OBJECT))
                for number, count in enumerate(rows)]  # fmt: skip
    manifest = Manifest(
        kbrel_version=__version__,
        dump=dump.path.name,
        columns=columns,
        rules=rules,
        rows=sum(n for *_, n in counts) // (len(templates) if columns.relation is None else 1),
        skipped={
            REASONS[reason]: sum(n for _, why, n in counts if why == reason)
            for reason in range(1, len(REASONS))
        },
        buckets=scopes,
        templates=tuple(
            _template_counts(
                template, rows[number], [s for s in strata if s.template == number], taken[number]
            )
            for number, template in enumerate(templates)
        ),
        questions=len(chosen),
    )
    if not chosen:
        raise SuiteError(_nothing(manifest), dump.path)
    _check_rows(templates, rows, dump)
    dataset = dump.path.name.partition(".")[0]
    facts = (
        fact_of(
            templates[stratum.template],
            stratum.bucket,
            one.subject,
            answers.get((stratum.template, one.subject), one.answers),
            one.popularity,
            dataset,
        )
        for stratum in strata
        for one in stratum.drawn[: taken[stratum.template]]
    )
    relations = (relation_of(t, rows[n]) for n, t in enumerate(templates) if taken[n])
    write_set(output, facts, relations, manifest)
    return manifest


@contextmanager
def _connected(engine: Engine, dump: Dump) -> Iterator[duckdb.DuckDBPyConnection]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "data", "building a question set") from None
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": engine.memory,
        "preserve_insertion_order": False,
        # Nothing is fetched: all that is needed comes with the package.
        "autoinstall_known_extensions": False,
    }
    if engine.threads:
        settings["threads"] = engine.threads
    with tempfile.TemporaryDirectory(
        prefix="kbrel-", dir=engine.folder, ignore_cleanup_errors=True
    ) as folder:
        settings["temp_directory"] = folder
        try:
            with duckdb.connect(Path(folder) / "work.duckdb", config=settings) as connection:
                yield connection
        except duckdb.Error as error:
            raise _worded(str(error), dump) from None


def _worded(said: str, dump: Dump) -> SuiteError:
    """Make DuckDB's paragraphs one line: what is wrong and where, without its advice to let it pass."""
    lines = [line.strip() for line in said.partition("\nPossible")[0].partition("\n\n")[0].splitlines()]
    place = re.search(r"on Line: (\d+)", lines[0] if lines else "")
    text = "; ".join(line if len(line) <= 160 else line[:157] + "..." for line in lines if line)
    return SuiteError(f"DuckDB says: {text}", dump.path, int(place.group(1)) if place else None)


def _row_counts(connection: duckdb.DuckDBPyConnection) -> list[tuple[int | None, int, int]]:
    """Return (template number, reason, rows); without a number there is no template."""
    counted = "SELECT template, reason, count(*) FROM rows GROUP BY ALL ORDER BY ALL"
    return [(template, int(reason), int(n)) for template, reason, n in connection.execute(counted).fetchall()]


def _equal_counts(templates: Sequence[Template], strata: Sequence[Stratum], cap: int) -> list[int]:
    fit = {(stratum.template, stratum.bucket): stratum.fit for stratum in strata}
    return [
        min(template.cap or cap, *(fit.get((number, bucket), 0) for bucket in BUCKETS))
        for number, template in enumerate(templates)
    ]


def _template_counts(template: Template, rows: int, strata: Sequence[Stratum], taken: int) -> TemplateCounts:
    of = {stratum.bucket: stratum for stratum in strata}
    left_out: dict[str, int] = {}
    for stratum in strata:
        for name, count in stratum.left_out:
            left_out[name] = left_out.get(name, 0) + count

    def by_bucket(counts: dict[str, int]) -> tuple[int, int, int]:
        head, torso, tail = (counts.get(bucket, 0) for bucket in BUCKETS)
        return head, torso, tail

    return TemplateCounts(
        relation=template.relation,
        rows=rows,
        questions=by_bucket({bucket: stratum.questions for bucket, stratum in of.items()}),
        fit=by_bucket({bucket: stratum.fit for bucket, stratum in of.items()}),
        left_out=left_out,
        taken=taken,
    )


def _check_rows(templates: Sequence[Template], rows: Sequence[int], dump: Dump) -> None:
    """Refuse a name under 'from' that no row has. A template without one may be for other dumps as well."""
    for template, count in zip(templates, rows, strict=True):
        if not count and template.source != template.relation:
            raise SuiteError(
                f"no row is of the relation {template.source!r}, which the template {template.relation} is "
                f"from; allowed: what the dump calls it, under 'from', or no such template",
                dump.path,
            )


def _nothing(manifest: Manifest) -> str:
    """Say why no question came out."""
    skipped = [f"{count} {reason}" for reason, count in manifest.skipped.items() if count]
    poorest = [
        f"{of.relation} has {', '.join(f'{n} {b}' for n, b in zip(of.fit, BUCKETS, strict=True))}"
        for of in manifest.templates[:3]
    ]
    return (
        f"no question: of {manifest.rows} rows found {', '.join(skipped) or 'none skipped'}; "
        f"fit questions: {'; '.join(poorest)}; allowed: a template with questions in all three buckets "
        "(one entity with over a third of all popularity leaves the head empty)"
    )


def fact_of(
    template: Template, bucket: Bucket, subject: str, answers: Sequence[str], popularity: float, dataset: str
) -> Fact:
    """Return one question of the set as a fact; the first of ``answers`` is its object."""
    return Fact(
        id=f"{template.relation}:{subject}",
        relation=template.relation,
        subject=subject,
        object=answers[0],
        aliases=tuple(answers[1:]),
        popularity=popularity,
        question=template.question.replace("[X]", subject),
        answer_type=template.answer_type,
        dataset=dataset,
        bucket=bucket,
    )


def relation_of(template: Template, rows: int) -> Relation:
    """Return a template as a relation; its popularity is the number of its rows in the dump."""
    return Relation(
        id=template.relation,
        label=template.label,
        domain=template.domain,
        frames=(template.question,),
        answer_type=template.answer_type,
        popularity=float(rows),
    )


def write_set(folder: Path, facts: Iterable[Fact], relations: Iterable[Relation], manifest: Any) -> None:
    """Write the three files of a set into ``folder``, which is made; ``manifest`` is a record."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "facts.jsonl").open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(fact_line(fact) for fact in facts)
    _write_text(folder / "relations.yaml", relations_text(relations))
    _write_text(
        folder / "manifest.json",
        json.dumps(dataclasses.asdict(manifest), indent=1, ensure_ascii=False) + "\n",
    )


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
