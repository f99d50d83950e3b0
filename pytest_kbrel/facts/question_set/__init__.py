"""Question sets by the rules of Head-to-Tail, from dumps of any size (Sun et al. 2023, arXiv 2308.10168).

The work is done by DuckDB within a limit of memory, and on disk beyond it.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel import __version__
from pytest_kbrel.errors import MissingExtraError, SuiteError
from pytest_kbrel.facts.files import check_labels, fact_line, relations_text
from pytest_kbrel.facts.located import located
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
    Columns,
    Dump,
    Template,
    format_of,
    open_rows,
    read_templates,
)
from pytest_kbrel.outputs import new_file
from pytest_kbrel.records import BUCKETS, Bucket, Fact, Relation, record

if TYPE_CHECKING:
    import duckdb


@record
class Rules:
    """Rules of a set: nothing after the year ``until``, at most ``cap`` questions a template and bucket."""

    until: int = 2020
    cap: int = 100
    seed: int = 0
    filters: Filters = Filters()


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
    rules: Rules,
    memory: str = "4GB",
    folder: Path | None = None,
) -> Manifest:
    """Write ``facts.jsonl``, ``relations.yaml`` and ``manifest.json`` into the new folder ``output``.

    Entities are bucketed by cumulative popularity within their type, or their template's domain. Each
    template then gives equally many questions a bucket: what its poorest bucket has, at most its cap. DuckDB
    may take so much ``memory``, and spills into ``folder``. Raises
    ``SuiteError`` on a dump that cannot be read or gives no question, ``MissingExtraError`` without DuckDB.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise SuiteError(
            "exists already; allowed: a folder that does not, or an empty one", output
        )
    if not dump.path.is_file():
        raise SuiteError("cannot be read: no such file", dump.path)
    with _connected(dump, memory, folder) as connection:
        columns = open_rows(connection, dump, columns, templates, rules.until)
        # Template, reason and rows; without a number there is no template.
        counts = connection.execute(
            "SELECT template, reason, count(*) FROM rows GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        scopes = bucket_entities(connection)
        most = max(template.cap or rules.cap for template in templates)
        strata = draw(connection, rules.filters, most=most, seed=rules.seed)
        counted = [
            _template_counts(
                template,
                # A cell of a table that is empty is no row of its relation.
                sum(
                    n
                    for of, why, n in counts
                    if of == number and (columns.relation or why != NO_OBJECT)
                ),
                {of.bucket: of for of in strata if of.template == number},
                template.cap or rules.cap,
            )
            for number, template in enumerate(templates)
        ]
        drawn = [
            (of, one) for of in strata for one in of.drawn[: counted[of.template].taken]
        ]
        answers = {}
        if rules.filters.answers == "all":
            answers = all_answers(
                connection, [(of.template, one["subject"]) for of, one in drawn]
            )
    # In a table each row stands once for each template.
    times = 1 if columns.relation else len(templates)
    manifest = Manifest(
        kbrel_version=__version__,
        dump=dump.path.name,
        columns=columns,
        rules=rules,
        rows=sum(n for *_, n in counts) // times,
        skipped={
            REASONS[reason]: sum(n for _, why, n in counts if why == reason)
            for reason in range(1, len(REASONS))
        },
        buckets=scopes,
        templates=tuple(counted),
        questions=len(drawn),
    )
    if not drawn:
        raise SuiteError(_nothing(manifest), dump.path)
    for template, count in zip(templates, counted, strict=True):
        # A template without a name under 'from' may be for other dumps as well.
        if not count.rows and template.source != template.relation:
            raise SuiteError(
                f"no row is of the relation {template.source!r}, which the template {template.relation} is "
                "from; allowed: what the dump calls it, under 'from', or no such template",
                dump.path,
            )
    dataset = dump.path.name.partition(".")[0]
    facts = []
    for of, one in drawn:
        template, subject = templates[of.template], one["subject"]
        texts = answers.get((of.template, subject), (one["answer"],))
        fact = Fact(
            id=f"{template.relation}:{subject}",
            relation=template.relation,
            subject=subject,
            object=texts[0],
            aliases=texts[1:],
            popularity=one["popularity"],
            question=template.question.replace("[X]", subject),
            answer_type=template.answer_type,
            dataset=dataset,
            bucket=of.bucket,
        )
        with located(dump.path):
            check_labels(fact)
        facts.append(fact)
    relations = relations_text(
        Relation(
            id=template.relation,
            label=template.label,
            domain=template.domain,
            frames=(template.question,),
            answer_type=template.answer_type,
            popularity=float(count.rows),
        )
        for template, count in zip(templates, counted, strict=True)
        if count.taken
    )
    text = json.dumps(dataclasses.asdict(manifest), indent=1, ensure_ascii=False) + "\n"
    with (
        new_file(output / "facts.jsonl", force=False) as stream,
        new_file(output / "relations.yaml", force=False) as wordings,
        new_file(output / "manifest.json", force=False) as about,
    ):
        stream.writelines(map(fact_line, facts))
        wordings.write(relations)
        about.write(text)
        stream.flush()
        wordings.flush()
    return manifest


@contextmanager
def _connected(
    dump: Dump, memory: str, spill: Path | None
) -> Iterator[duckdb.DuckDBPyConnection]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "data", "building a question set") from None
    settings: dict[str, Any] = {
        "memory_limit": memory,
        "preserve_insertion_order": False,
        # Nothing is fetched: all that is needed comes with the package.
        "autoinstall_known_extensions": False,
    }
    with tempfile.TemporaryDirectory(
        prefix="kbrel-", dir=spill, ignore_cleanup_errors=True
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
    text = "; ".join(f"{line:.160}" for line in lines if line)
    return SuiteError(
        f"DuckDB says: {text}", dump.path, int(number[1]) if number else None
    )


def _template_counts(
    template: Template, rows: int, strata: Mapping[Bucket, Stratum], cap: int
) -> TemplateCounts:
    none = Stratum(template=0, bucket="head", questions=0, fit=0)
    by_bucket = [strata.get(bucket, none) for bucket in BUCKETS]
    left_out: Counter[str] = Counter()
    for stratum in strata.values():
        left_out.update(dict(stratum.left_out))
    fit = tuple(stratum.fit for stratum in by_bucket)
    return TemplateCounts(
        relation=template.relation,
        rows=rows,
        questions=tuple(stratum.questions for stratum in by_bucket),
        fit=fit,
        left_out=dict(left_out),
        taken=min(cap, *fit),
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
