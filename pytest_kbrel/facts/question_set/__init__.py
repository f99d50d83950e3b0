"""Question sets by the rules of Head-to-Tail, from dumps of any size (Sun et al. 2023, arXiv 2308.10168).

The work is done by DuckDB within a limit of memory, and on disk beyond it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel import __version__
from pytest_kbrel.errors import MissingExtraError, SuiteError
from pytest_kbrel.facts.files import fact_line, relations_text
from pytest_kbrel.facts.question_set.draw import (
    DrawnQuestion,
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
    Columns,
    Dump,
    Template,
    format_of,
    open_rows,
    read_templates,
)
from pytest_kbrel.records import BUCKETS, Bucket, Fact, Relation, record

if TYPE_CHECKING:
    import duckdb

__all__ = [
    "Columns",
    "Dump",
    "Engine",
    "Filters",
    "Manifest",
    "Rules",
    "build_question_set",
    "format_of",
    "read_templates",
]


@record
class Rules:
    """Rules of a set: nothing after the year ``until``, at most ``cap`` questions a template and bucket."""

    until: int = 2020
    cap: int = 100
    seed: int = 0
    filters: Filters = Filters()


@record
class Engine:
    """Limits of DuckDB: memory, and a folder to spill into."""

    memory: str = "4GB"
    folder: Path | None = None


@record
class TemplateCounts:
    """Counts of one template: ``taken`` questions from each bucket, and why there are not more.

    ``rows`` are those of the dump with this relation; the others count questions by bucket, head first.
    """

    relation: str
    rows: int
    questions: tuple[int, ...]
    fit: tuple[int, ...]
    left_out: dict[str, int]
    taken: int


@record
class Manifest:
    """Record of how a question set was made, without time or folder: the same input gives the same bytes."""

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
        raise SuiteError(
            "exists already; allowed: a folder that does not, or an empty one", output
        )
    if not dump.path.is_file():
        raise SuiteError("cannot be read: no such file", dump.path)
    with _connected(engine, dump) as connection:
        columns = open_rows(connection, dump, columns, templates, rules.until)
        counts = _row_counts(connection)
        scopes = bucket_entities(connection)
        most = max(template.cap or rules.cap for template in templates)
        strata = draw(connection, rules.filters, most=most, seed=rules.seed)
        taken = _equal_counts(templates, strata, rules.cap)
        chosen = [
            (s.template, one.subject)
            for s in strata
            for one in s.drawn[: taken[s.template]]
        ]
        answers = (
            all_answers(connection, chosen) if rules.filters.answers == "all" else {}
        )
    rows = [
        sum(n for of, _, n in counts if of == number)
        for number in range(len(templates))
    ]
    if columns.relation is None:
        rows = [count - sum(n for of, why, n in counts if (of, why) == (number, NO_OBJECT))
                for number, count in enumerate(rows)]  # fmt: skip
    manifest = Manifest(
        kbrel_version=__version__,
        dump=dump.path.name,
        columns=columns,
        rules=rules,
        rows=sum(n for *_, n in counts)
        // (len(templates) if columns.relation is None else 1),
        skipped={
            REASONS[reason]: sum(n for _, why, n in counts if why == reason)
            for reason in range(1, len(REASONS))
        },
        buckets=scopes,
        templates=tuple(
            _template_counts(
                template,
                rows[number],
                [s for s in strata if s.template == number],
                taken[number],
            )
            for number, template in enumerate(templates)
        ),
        questions=len(chosen),
    )
    if not chosen:
        raise SuiteError(_nothing(manifest), dump.path)
    _check_rows(templates, rows, dump)
    dataset = dump.path.name.partition(".")[0]
    output.mkdir(parents=True, exist_ok=True)
    with (output / "facts.jsonl").open("w", encoding="utf-8", newline="\n") as stream:
        for stratum in strata:
            template = templates[stratum.template]
            for one in stratum.drawn[: taken[stratum.template]]:
                texts = answers.get((stratum.template, one.subject), one.answers)
                stream.write(
                    fact_line(_fact(template, stratum.bucket, one, texts, dataset))
                )
    relations = relations_text(
        Relation(
            id=template.relation,
            label=template.label,
            domain=template.domain,
            frames=(template.question,),
            answer_type=template.answer_type,
            popularity=float(rows[number]),
        )
        for number, template in enumerate(templates)
        if taken[number]
    )
    (output / "relations.yaml").write_text(relations, encoding="utf-8", newline="\n")
    text = json.dumps(dataclasses.asdict(manifest), indent=1, ensure_ascii=False) + "\n"
    (output / "manifest.json").write_text(text, encoding="utf-8", newline="\n")
    return manifest


def _fact(
    template: Template,
    bucket: Bucket,
    drawn: DrawnQuestion,
    answers: Sequence[str],
    dataset: str,
) -> Fact:
    return Fact(
        id=f"{template.relation}:{drawn.subject}",
        relation=template.relation,
        subject=drawn.subject,
        object=answers[0],
        aliases=tuple(answers[1:]),
        popularity=drawn.popularity,
        question=template.question.replace("[X]", drawn.subject),
        answer_type=template.answer_type,
        dataset=dataset,
        bucket=bucket,
    )


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
    with tempfile.TemporaryDirectory(
        prefix="kbrel-", dir=engine.folder, ignore_cleanup_errors=True
    ) as folder:
        settings["temp_directory"] = folder
        try:
            with duckdb.connect(
                Path(folder) / "work.duckdb", config=settings
            ) as connection:
                yield connection
        except duckdb.Error as error:
            raise _worded(str(error), dump) from None


def _worded(message: str, dump: Dump) -> SuiteError:
    """Return DuckDB's error in one line: what is wrong and where, without its advice to let it pass."""
    lines = [
        line.strip()
        for line in message.partition("\nPossible")[0].partition("\n\n")[0].splitlines()
    ]
    number = re.search(r"on Line: (\d+)", lines[0] if lines else "")
    text = "; ".join(
        line if len(line) <= 160 else line[:157] + "..." for line in lines if line
    )
    return SuiteError(
        f"DuckDB says: {text}", dump.path, int(number[1]) if number else None
    )


def _row_counts(
    connection: duckdb.DuckDBPyConnection,
) -> list[tuple[int | None, int, int]]:
    """Return (template number, reason, rows); without a number there is no template."""
    counted = "SELECT template, reason, count(*) FROM rows GROUP BY ALL ORDER BY ALL"
    return [
        (template, int(reason), int(n))
        for template, reason, n in connection.execute(counted).fetchall()
    ]


def _equal_counts(
    templates: Sequence[Template], strata: Sequence[Stratum], cap: int
) -> list[int]:
    fit = {(stratum.template, stratum.bucket): stratum.fit for stratum in strata}
    return [
        min(template.cap or cap, *(fit.get((number, bucket), 0) for bucket in BUCKETS))
        for number, template in enumerate(templates)
    ]


def _template_counts(
    template: Template, rows: int, strata: Sequence[Stratum], taken: int
) -> TemplateCounts:
    left_out: Counter[str] = Counter()
    for stratum in strata:
        left_out.update(dict(stratum.left_out))
    questions = {stratum.bucket: stratum.questions for stratum in strata}
    fit = {stratum.bucket: stratum.fit for stratum in strata}
    return TemplateCounts(
        relation=template.relation,
        rows=rows,
        questions=tuple(questions.get(bucket, 0) for bucket in BUCKETS),
        fit=tuple(fit.get(bucket, 0) for bucket in BUCKETS),
        left_out=dict(left_out),
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
    skipped = [
        f"{count} {reason}" for reason, count in manifest.skipped.items() if count
    ]
    poorest = [
        f"{of.relation} has {', '.join(f'{n} {b}' for n, b in zip(of.fit, BUCKETS, strict=True))}"
        for of in manifest.templates[:3]
    ]
    return (
        f"no question: of {manifest.rows} rows found {', '.join(skipped) or 'none skipped'}; "
        f"fit questions: {'; '.join(poorest)}; allowed: a template with questions in all three buckets "
        "(one entity with over a third of all popularity leaves the head empty)"
    )
