"""Question sets by the rules of Head-to-Tail, from dumps of any size (Sun et al. 2023, arXiv 2308.10168).

The work is done by DuckDB within a limit of memory, and on disk beyond it. The rules are those of the authors'
scripts (section 2.1).
"""

from __future__ import annotations

import csv
import dataclasses
import gzip
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_kbrel import __version__
from pytest_kbrel.bounds import CAP
from pytest_kbrel.errors import MissingExtraError, SuiteError, nearest
from pytest_kbrel.facts.files import (
    check_labels,
    fact_line,
    read_entries,
    relation_keys,
    relations_text,
)
from pytest_kbrel.facts.located import Node, located
from pytest_kbrel.outputs import new_file
from pytest_kbrel.records import BUCKETS, AnswerType, Bucket, Fact, Relation, record
from pytest_kbrel.untrusted import MIB, lines

if TYPE_CHECKING:
    import duckdb

DumpFormat = Literal["csv", "tsv", "jsonl", "parquet"]
SUFFIXES: Mapping[str, DumpFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
_COMMAS = {"csv": ",", "tsv": "\t"}
# Why a row is no question; the first that holds counts. Rows with one of the last two still name an entity.
REASONS = (
    "",
    "subject empty or of several lines",
    "popularity absent, negative or no number",
    "year absent",
    "newer than the year cut",
    "type absent",
    "relation without a template",
    "object empty or of several lines",
)
_NO_OBJECT = 7
# Of a question that more than one filter concerns the first counts.
FILTERS = (
    "ambiguous subject",
    "several answers",
    "too little ASCII",
    "answer in the question",
)

# What Python calls space and line ends, for a fact's texts are of one line without space around.
_SPACE = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
# A cell's text without space around it; NULL where it is blank or of several lines. Most texts are plain, and a
# plain one is told faster than it is trimmed.
_CLEAN = rf"""
    CREATE MACRO clean(cell) AS CASE
        WHEN regexp_full_match(cell, '[!-~]([ -~]*[!-~])?') THEN cell
        WHEN trim(cell, '{_SPACE}') = ''
            OR regexp_matches(trim(cell, '{_SPACE}'), '[\n\r\x0b\x0c\x1c-\x1e\x{{85}}\x{{2028}}\x{{2029}}]') THEN NULL
        ELSE trim(cell, '{_SPACE}') END"""


@record
class Columns:
    """Names of a dump's columns.

    Of triples, a row is a fact, and its relation and object have columns. In a table (``relation`` and
    ``object`` are ``None``) a row is an entity, and each relation has a column. Year and type are not used
    where they are empty; ``None`` stands for columns of these names, if there are any.
    """

    subject: str = "subject"
    relation: str | None = "relation"
    object: str | None = "object"
    popularity: str = "popularity"
    year: str | None = None
    type: str | None = None


@record
class Dump:
    """A file of facts. ``quotes``: fields of CSV and TSV may be in double quotes."""

    path: Path
    format: DumpFormat
    quotes: bool = True


@record
class Template:
    """One relation that is asked about.

    ``question`` has ``[X]`` for the subject, once. ``source`` is what the dump calls the relation: a value of
    its relation column, or the column of a table. ``cap`` is the most questions a bucket may have of it;
    ``None``: as for all.
    """

    relation: str
    question: str
    label: str
    domain: str
    source: str
    cap: int | None = None
    answer_type: Literal["", AnswerType] = ""


@record
class Filters:
    """Filters of a question set: which questions are left out.

    ``ascii_share``: a subject needs more than this share (0..1) of ASCII characters; 0 keeps all.
    ``answers``: ``single`` keeps facts with one object only, ``all`` accepts any object of subject and
    relation. ``contained``: what becomes of a question that says its own answer, case apart.
    """

    ascii_share: float = 0.6
    answers: Literal["single", "all"] = "single"
    contained: Literal["drop", "keep"] = "drop"


@record
class Rules:
    """Rules of a set: nothing after the year ``until``, at most ``cap`` questions a template and bucket."""

    until: int = 2020
    cap: int = 100
    seed: int = 0
    filters: Filters = Filters()


@record
class Scope:
    """Entities bucketed together; ``tail`` and ``torso`` are the highest popularities of these buckets."""

    name: str
    tail: float
    torso: float
    entities: tuple[tuple[Bucket, int], ...]


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


def format_of(path: Path) -> DumpFormat:
    """Return a dump's format by its suffix, which ``.gz`` may follow."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    raise SuiteError(
        f"its name tells no format; allowed: a name in {', '.join(SUFFIXES)}, or --format",
        path,
    )


def read_templates(path: Path) -> tuple[Template, ...]:
    """Read a YAML mapping ``relation id -> {question, label, domain, from, cap, answer_type}``.

    Only ``question`` is needed: ``label`` and ``from`` are otherwise the id, ``domain`` is ``open``. Raises
    ``SuiteError`` with the line on the first mistake.
    """
    entries = read_entries(path, "a file of templates")
    templates = [_template(name, entry) for name, entry in entries.items()]
    first: dict[str, str] = {}
    for template in templates:
        other = first.setdefault(template.source, template.relation)
        if other != template.relation:
            raise entries[template.relation].error(
                f"{other} and {template.relation} are both from {template.source!r}; "
                "allowed: one template for each relation of the dump"
            )
    return tuple(templates)


_KEYS = ("question", "label", "domain", "from", "cap", "answer_type")


def _template(name: str, node: Node) -> Template:
    keys, about = relation_keys(name, node, f"template {name}", _KEYS, ("question",))
    question = keys["question"].text("question")
    if question.count("[X]") != 1:
        raise keys["question"].error(
            f"question must contain [X] exactly once, found {question.count('[X]')} times in {question!r}"
        )
    return Template(
        relation=name,
        question=question,
        source=keys["from"].text("from") if "from" in keys else name,
        cap=keys["cap"].integer(f"cap of {name}", CAP) if "cap" in keys else None,
        **about,
    )


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
        columns = _open_rows(connection, dump, columns, templates, rules.until)
        manifest, drawn = _draw(connection, dump, columns, templates, rules)
        # All objects of a template's number and a subject, in the order of their code points.
        answers = {}
        if rules.filters.answers == "all":
            selected = connection.execute(
                """SELECT template, subject, list(DISTINCT object ORDER BY object) FROM rows
                JOIN (SELECT unnest($1::SMALLINT[]) AS template, unnest($2::TEXT[]) AS subject)
                USING (template, subject) WHERE reason = 0 GROUP BY 1, 2""",
                [[one[0] for one in drawn], [one[2] for one in drawn]],
            )
            answers = {(n, subject): texts for n, subject, texts in selected.fetchall()}
    if not drawn:
        skipped = [f"{n} {reason}" for reason, n in manifest.skipped.items() if n]
        poorest = [
            f"{of.relation} has {', '.join(f'{n} {b}' for n, b in zip(of.fit, BUCKETS, strict=True))}"
            for of in manifest.templates[:3]
        ]
        raise SuiteError(
            f"no question: of {manifest.rows} rows found {', '.join(skipped) or 'none skipped'}; "
            f"fit questions: {'; '.join(poorest)}; allowed: a template with questions in all three buckets "
            "(one entity with over a third of all popularity leaves the head empty)",
            dump.path,
        )
    asked = list(zip(templates, manifest.templates, strict=True))
    for template, count in asked:
        # A template without a name under 'from' may be for other dumps as well.
        if not count.rows and template.source != template.relation:
            raise SuiteError(
                f"no row is of the relation {template.source!r}, which the template {template.relation} is "
                "from; allowed: what the dump calls it, under 'from', or no such template",
                dump.path,
            )
    facts = []
    for number, bucket, subject, answer, popularity in drawn:
        template = templates[number]
        texts = tuple(answers.get((number, subject), (answer,)))
        fact = Fact(
            id=f"{template.relation}:{subject}",
            relation=template.relation,
            subject=subject,
            object=texts[0],
            aliases=texts[1:],
            popularity=popularity,
            question=template.question.replace("[X]", subject),
            answer_type=template.answer_type,
            dataset=dump.path.name.partition(".")[0],
            bucket=BUCKETS[bucket],
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
        for template, count in asked
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
    with tempfile.TemporaryDirectory(
        prefix="kbrel-", dir=spill, ignore_cleanup_errors=True
    ) as folder:
        settings: dict[str, Any] = {
            "memory_limit": memory,
            "preserve_insertion_order": False,
            # Nothing is fetched: all that is needed comes with the package.
            "autoinstall_known_extensions": False,
            "temp_directory": folder,
        }
        try:
            with duckdb.connect(
                Path(folder) / "work.duckdb", config=settings
            ) as connection:
                yield connection
        except duckdb.Error as error:
            # In one line, without its advice to let it pass.
            text = re.split(r"\nPossible|\n\n", str(error))[0]
            number = re.search(r"on Line: (\d+)", text)
            line = int(number[1]) if number else None
            told = "; ".join(f"{of.strip():.160}" for of in text.splitlines() if of)
            raise SuiteError(f"DuckDB says: {told}", dump.path, line) from None


def _types_of(connection: duckdb.DuckDBPyConnection, dump: Dump) -> dict[str, str]:
    """Return the SQL types of the dump's columns by name; raises ``SuiteError`` on two of one name."""
    if dump.format not in _COMMAS:
        described = connection.execute(f"DESCRIBE SELECT * FROM {_reader(dump, {})}")
        return {str(name): str(kind) for name, kind, *_ in described.fetchall()}
    # Left to itself, DuckDB guesses the columns from the first rows, and differently from version to version.
    opened: Any = gzip.open if dump.path.suffix.lower() == ".gz" else open
    quote = '"' if dump.quotes else "\x1f"
    try:
        with opened(dump.path, "rb") as stream:
            # A packed file may unpack to a line of any length.
            texts = (raw.decode("utf-8-sig", "replace") for raw in lines(stream, MIB))
            rows = csv.reader(texts, delimiter=_COMMAS[dump.format], quotechar=quote)
            header = next(rows, [])
    except (OSError, EOFError, ValueError, csv.Error) as error:
        raise SuiteError(
            f"the line of column names cannot be read: {error}", dump.path, 1
        ) from None
    if not header:
        raise SuiteError(
            "no line of column names; allowed: a first line with the name of each column",
            dump.path,
            1,
        )
    names = [name.strip() or f"column {n}" for n, name in enumerate(header, 1)]
    for name in names:
        if names.count(name) > 1:
            fault = f"column {name!r} stands twice; allowed: names that differ"
            raise SuiteError(fault, dump.path, 1)
    return dict.fromkeys(names, "VARCHAR")


def _open_rows(
    connection: duckdb.DuckDBPyConnection,
    dump: Dump,
    columns: Columns,
    templates: Sequence[Template],
    until: int,
) -> Columns:
    """Make the relation ``rows``: number of the template, scope, subject, object, popularity, reason.

    A scope is what entities are bucketed within: their type, or the template's domain where the dump has no
    types. ``reason`` is an index of :data:`REASONS`. Returns the columns as they were used. Raises
    ``SuiteError`` on a column that is not there.
    """
    types = _types_of(connection, dump)
    columns = dataclasses.replace(
        columns,
        year="year" * ("year" in types) if columns.year is None else columns.year,
        type="type" * ("type" in types) if columns.type is None else columns.type,
    )
    sources = [] if columns.relation else [template.source for template in templates]
    wanted = dict.fromkeys(sources, "a template's 'from'") | {
        name: f"--{option}"
        for option, name in dataclasses.asdict(columns).items()
        if name
    }
    for name, option in wanted.items():
        if name not in types:
            fault = f"no column {name!r} ({option}); allowed: {', '.join(types)}{nearest(name, types)}"
            raise SuiteError(fault, dump.path)
        if re.match(r".*\]$|STRUCT|MAP|UNION", types[name]):
            raise SuiteError(
                f"column {name!r} ({option}) holds {types[name]}; allowed: one value a row "
                "(of several answers each has a row of its own)",
                dump.path,
            )
    connection.execute(_CLEAN)
    connection.execute(
        "CREATE TABLE templates (number SMALLINT, relation TEXT, source TEXT, domain TEXT, question TEXT)"
    )
    connection.executemany(
        "INSERT INTO templates VALUES (?, ?, ?, ?, ?)",
        [
            (number, of.relation, of.source, of.domain, of.question)
            for number, of in enumerate(templates)
        ],
    )
    reader = _reader(dump, wanted if dump.format == "jsonl" else types)
    # Text is parsed once, on the way into a table; columns of Parquet are as quickly read again.
    kind = "VIEW" if dump.format == "parquet" else "TABLE"
    connection.execute(
        f"CREATE {kind} rows AS {_rows(reader, columns, sources, until)}"
    )
    return columns


def _reader(dump: Dump, columns: Mapping[str, str]) -> str:
    # A path is a pattern to DuckDB; as sets of one, the characters of patterns stand for themselves.
    path = _literal(re.sub(r"([*?\[])", r"[\1]", str(dump.path)))
    if dump.format == "parquet":
        return f"read_parquet({path})"
    texts = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in columns)
    given = f", columns={{{texts}}}" if texts else ""
    if dump.format == "jsonl":
        return f"read_json({path}, format='newline_delimited'{given})"
    quote = '"' if dump.quotes else ""
    return (
        f"read_csv({path}, auto_detect=false, header=true, delim='{_COMMAS[dump.format]}', "
        f"quote='{quote}', escape='{quote}', nullstr=['', '\\N']{given})"
    )


def _rows(reader: str, columns: Columns, sources: Sequence[str], until: int) -> str:
    year, kind = columns.year, columns.type
    number = r"'^\s*(-?\d{1,4})(?:$|\D)', 1"
    shared = ", ".join(
        [
            f"clean({_text(columns.subject)}) AS subject",
            f"TRY_CAST({_column(columns.popularity)} AS DOUBLE) + 0.0 AS popularity",
            f"TRY_CAST(regexp_extract({_text(year)}, {number}) AS INTEGER) AS year"
            if year
            else "0 AS year",
            f"clean({_text(kind)}) AS type" if kind else "'' AS type",
        ]
    )
    if columns.relation and columns.object:
        raw = f"""SELECT {shared}, clean({_text(columns.object)}) AS object, t.number, t.domain
            FROM {reader} AS dump LEFT JOIN templates AS t ON {_text(columns.relation)} = t.source"""
    else:
        cells = " ".join(
            f"WHEN {n} THEN clean({_text(of)})" for n, of in enumerate(sources)
        )
        raw = f"""SELECT {shared}, CASE t.number {cells} END AS object, t.number, t.domain
            FROM {reader} AS dump CROSS JOIN templates AS t"""
    return f"""
        SELECT number AS template, {"type" if kind else "domain"} AS scope, subject, object, popularity,
            CAST(CASE
            WHEN subject IS NULL THEN 1
            WHEN popularity IS NULL OR NOT (popularity >= 0 AND popularity <= 1e300) THEN 2
            WHEN year IS NULL THEN 3
            WHEN year > {until} AND {bool(year)} THEN 4
            WHEN type IS NULL THEN 5
            WHEN number IS NULL THEN 6
            WHEN object IS NULL THEN 7
            ELSE 0 END AS TINYINT) AS reason
        FROM ({raw})"""


def _text(column: str | None) -> str:
    return f"CAST({_column(column)} AS VARCHAR)"


def _column(name: str | None) -> str:
    # The templates have columns as well, whose names the dump may have too.
    return 'dump."' + str(name).replace('"', '""') + '"'


def _literal(text: str) -> str:
    # Table functions and views take no parameters.
    return "'" + text.replace("'", "''") + "'"


# The number of the template and of the bucket, subject, answer and popularity of a question.
_Drawn = tuple[int, int, str, str, float]
# An entity is a name with its popularity; its rows count once. The first whose popularity, summed up from the
# least on, reaches a third of the total closes the tail, the first that reaches two thirds the torso.
_BUCKETS = """
    CREATE TABLE lines AS
    WITH entities AS (
        SELECT DISTINCT scope, subject, popularity FROM rows WHERE reason IN (0, 6, 7) AND scope IS NOT NULL
    ), sums AS (
        SELECT scope, popularity, sum(popularity * entities) OVER (PARTITION BY scope ORDER BY popularity) AS upto
        FROM (SELECT scope, popularity, count(*) AS entities FROM entities GROUP BY ALL)
    ), ends AS (
        SELECT scope, min(popularity) FILTER (3 * upto >= total) AS tail,
            min(popularity) FILTER (3 * upto >= 2 * total) AS torso
        FROM sums JOIN (SELECT scope, max(upto) AS total FROM sums GROUP BY scope) USING (scope) GROUP BY scope
    )
    SELECT scope, tail, torso, count(*) FILTER (popularity > torso) AS head,
        count(*) FILTER (popularity > tail AND popularity <= torso), count(*) FILTER (popularity <= tail)
    FROM entities JOIN ends USING (scope) GROUP BY ALL"""


def _draw(
    connection: duckdb.DuckDBPyConnection,
    dump: Dump,
    columns: Columns,
    templates: Sequence[Template],
    rules: Rules,
) -> tuple[Manifest, list[_Drawn]]:
    """Draw fit questions, equally many a bucket; by template, from head to tail.

    They come in the order of the md5 of seed, relation id and subject, so neither the order of rows or
    templates nor the number of threads matters. A subject that stands for several entities
    (popularities or scopes) makes an ambiguous question.
    """
    # Template, reason and rows; without a number there is no template.
    counts = connection.execute(
        "SELECT template, reason, count(*) FROM rows GROUP BY ALL"
    ).fetchall()
    connection.execute(_BUCKETS)
    scopes = connection.execute("FROM lines ORDER BY scope").fetchall()
    selected = connection.execute(
        f"""
        WITH questions AS (
            SELECT template, subject, min(scope) AS scope, max(popularity) AS popularity,
                min(object) AS answer, CASE
                WHEN min(popularity) < max(popularity) OR min(scope) <> max(scope) THEN 1
                WHEN $answers = 'single' AND min(object) <> max(object) THEN 2
                WHEN $ascii_share > 0 AND strlen(subject) > length(subject) AND
                    length(regexp_replace(subject, '[^\\x00-\\x7F]', '', 'g')) <= $ascii_share * length(subject) THEN 3
                WHEN $contained = 'drop' AND
                    bool_or(contains(lower(replace(t.question, '[X]', subject)), lower(object))) THEN 4
                ELSE 0 END AS filter
            FROM rows JOIN templates AS t ON t.number = template WHERE reason = 0 GROUP BY template, subject
        )
        SELECT template, CASE WHEN popularity <= tail THEN 2 WHEN popularity <= torso THEN 1 ELSE 0 END AS bucket,
            count(*), count(*) FILTER (filter = 0),
            [count(*) FILTER (filter = 1), count(*) FILTER (filter = 2), count(*) FILTER (filter = 3),
                count(*) FILTER (filter = 4)],
            arg_min((subject, answer, popularity), md5(concat_ws(chr(31), $seed, t.relation, subject)),
                {max(template.cap or rules.cap for template in templates)}) FILTER (filter = 0)
        FROM questions JOIN lines USING (scope) JOIN templates AS t ON t.number = template GROUP BY 1, 2""",
        {**dataclasses.asdict(rules.filters), "seed": str(rules.seed)},
    ).fetchall()
    strata = {(template, bucket): rest for template, bucket, *rest in selected}
    counted, drawn = [], []
    for number, template in enumerate(templates):
        questions, fit, left_out, picked = zip(
            *(strata.get((number, at), (0, 0, (0,) * 4, ())) for at in range(3)),
            strict=True,
        )
        taken = min(template.cap or rules.cap, *fit)
        drawn += [
            (number, bucket, *one)
            for bucket, of in enumerate(picked)
            for one in (of or ())[:taken]
        ]
        counted.append(
            TemplateCounts(
                relation=template.relation,
                # A cell of a table that is empty is no row of its relation.
                rows=sum(
                    n
                    for of, why, n in counts
                    if of == number and (columns.relation or why != _NO_OBJECT)
                ),
                questions=questions,
                fit=fit,
                left_out=dict(
                    zip(FILTERS, map(sum, zip(*left_out, strict=True)), strict=True)
                ),
                taken=taken,
            )
        )
    manifest = Manifest(
        kbrel_version=__version__,
        dump=dump.path.name,
        columns=columns,
        rules=rules,
        # In a table each row stands once for each template.
        rows=sum(n for *_, n in counts) // (1 if columns.relation else len(templates)),
        skipped={
            REASONS[reason]: sum(n for _, why, n in counts if why == reason)
            for reason in range(1, len(REASONS))
        },
        buckets=tuple(
            Scope(
                name=name,
                tail=tail,
                torso=torso,
                entities=tuple(zip(BUCKETS, numbers, strict=True)),
            )
            for name, tail, torso, *numbers in scopes
        ),
        templates=tuple(counted),
        questions=len(drawn),
    )
    return manifest, drawn
