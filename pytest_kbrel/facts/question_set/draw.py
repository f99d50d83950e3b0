"""From the rows of a dump to the questions drawn: buckets, filters, equal counts.

The rules are those of the authors' scripts for Head-to-Tail (Sun et al. 2023, arXiv 2308.10168, section 2.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from pytest_kbrel.facts.question_set.dump import NO_OBJECT, NO_TEMPLATE
from pytest_kbrel.facts.sampling import bucket_lines
from pytest_kbrel.records import BUCKETS, Bucket, record

if TYPE_CHECKING:
    import duckdb

# Of a question that more than one filter concerns the first counts.
FILTERS = (
    "ambiguous subject",
    "several answers",
    "too little ASCII",
    "answer in the question",
)


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
class Scope:
    """Entities bucketed together; ``tail`` and ``torso`` are the highest popularities of these buckets."""

    name: str
    tail: float
    torso: float
    entities: tuple[tuple[Bucket, int], ...]


@record
class Stratum:
    """The questions of one template in one bucket: how many, how many fit, and what left out the others.

    ``drawn`` are fit ones in the order of the draw, as many as there were or as were asked for: ``subject``,
    ``answer`` and ``popularity`` of each.
    """

    template: int
    bucket: Bucket
    questions: int
    fit: int
    left_out: tuple[tuple[str, int], ...] = ()
    drawn: tuple[dict[str, Any], ...] = ()


def bucket_entities(connection: duckdb.DuckDBPyConnection) -> tuple[Scope, ...]:
    """Make the table ``lines`` of each scope's bucket lines; return the scopes by name.

    An entity is a name with its popularity; its rows count once.
    """
    connection.execute(f"""
        CREATE TABLE shares AS SELECT scope, popularity, count(*) AS entities FROM (
            SELECT DISTINCT scope, subject, popularity FROM rows
            WHERE reason IN (0, {NO_TEMPLATE}, {NO_OBJECT}) AND scope IS NOT NULL
        ) GROUP BY ALL""")
    names = connection.execute(
        "SELECT DISTINCT scope FROM shares ORDER BY scope"
    ).fetchall()
    scopes = [_scope(connection, str(name)) for (name,) in names]
    connection.execute(
        "CREATE TABLE lines AS "
        "SELECT unnest($names) AS scope, unnest($tails) AS tail, unnest($torsos) AS torso",
        {
            "names": [scope.name for scope in scopes],
            "tails": [scope.tail for scope in scopes],
            "torsos": [scope.torso for scope in scopes],
        },
    )
    return tuple(scopes)


def _scope(connection: duckdb.DuckDBPyConnection, name: str) -> Scope:
    def counted() -> Iterator[tuple[float, int]]:
        cursor = connection.cursor()
        cursor.execute(
            "SELECT popularity, entities FROM shares WHERE scope = ? ORDER BY popularity",
            [name],
        )
        while part := cursor.fetchmany(100_000):
            yield from part

    tail, torso = bucket_lines(counted)
    counts = connection.execute(
        """SELECT sum(entities) FILTER (popularity > $torso),
                  sum(entities) FILTER (popularity > $tail AND popularity <= $torso),
                  sum(entities) FILTER (popularity <= $tail)
           FROM shares WHERE scope = $name""",
        {"name": name, "tail": tail, "torso": torso},
    ).fetchone()
    assert counts is not None
    numbers = tuple(
        (bucket, int(n or 0)) for bucket, n in zip(BUCKETS, counts, strict=True)
    )
    return Scope(name=name, tail=tail, torso=torso, entities=numbers)


def draw(
    connection: duckdb.DuckDBPyConnection, filters: Filters, *, most: int, seed: int
) -> tuple[Stratum, ...]:
    """Draw up to ``most`` fit questions of each template and bucket, by template and from head to tail.

    Questions come in the order of the md5 of seed, relation id and subject, so neither the order of rows or
    templates nor the number of threads matters. A subject that stands for several entities
    (popularities or scopes) makes an ambiguous question.
    """
    single = "min(object) <> max(object)" if filters.answers == "single" else "false"
    inside = (
        "bool_or(contains(lower(replace(t.question, '[X]', subject)), lower(object)))"
    )
    gives_away = inside if filters.contained == "drop" else "false"
    foreign = (
        "strlen(subject) > length(subject) AND length(regexp_replace(subject, '[^\\x00-\\x7F]', '', 'g')) "
        f"<= {float(filters.ascii_share)!r} * length(subject)"
    )
    foreign = foreign if filters.ascii_share > 0 else "false"
    selected = connection.execute(
        f"""
        WITH questions AS (
            SELECT template, subject, min(scope) AS scope, max(popularity) AS popularity,
                min(object) AS answer, CASE
                WHEN min(popularity) < max(popularity) OR min(scope) <> max(scope) THEN 1
                WHEN {single} THEN 2
                WHEN {foreign} THEN 3
                WHEN {gives_away} THEN 4
                ELSE 0 END AS filter
            FROM rows JOIN templates AS t ON t.number = template WHERE reason = 0 GROUP BY template, subject
        )
        SELECT template,
            CASE WHEN popularity <= tail THEN 2 WHEN popularity <= torso THEN 1 ELSE 0 END AS bucket,
            count(*), count(*) FILTER (filter = 0),
            {", ".join(f"count(*) FILTER (filter = {n})" for n in range(1, len(FILTERS) + 1))},
            arg_min(
                {{'subject': subject, 'answer': answer, 'popularity': popularity}},
                md5(concat_ws(chr(31), $seed, t.relation, subject)), {most}
            ) FILTER (filter = 0)
        FROM questions JOIN lines USING (scope) JOIN templates AS t ON t.number = template
        GROUP BY 1, 2 ORDER BY 1, 2""",
        {"seed": str(seed)},
    ).fetchall()
    return tuple(
        Stratum(
            template=template,
            bucket=BUCKETS[bucket],
            questions=questions,
            fit=fit,
            left_out=tuple(zip(FILTERS, left_out, strict=True)),
            drawn=tuple(drawn or ()),
        )
        for template, bucket, questions, fit, *left_out, drawn in selected
    )


def all_answers(
    connection: duckdb.DuckDBPyConnection, questions: list[tuple[int, str]]
) -> dict[tuple[int, str], tuple[str, ...]]:
    """Return all objects of each (template number, subject), in the order of their code points."""
    connection.execute(
        "CREATE TABLE drawn AS SELECT unnest($numbers)::SMALLINT AS template, unnest($subjects) AS subject",
        {
            "numbers": [number for number, _ in questions],
            "subjects": [subject for _, subject in questions],
        },
    )
    selected = connection.execute("""
        SELECT template, subject, list(DISTINCT object) FROM rows JOIN drawn USING (template, subject)
        WHERE reason = 0 GROUP BY 1, 2""").fetchall()
    return {
        (template, subject): tuple(sorted(answers))
        for template, subject, answers in selected
    }
