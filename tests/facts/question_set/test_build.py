"""Question sets from dumps: small ones worked out by hand, random ones against the same rules in Python."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.facts.files import read_relations
from pytest_kbrel.facts.readers import read_own_facts
from pytest_kbrel.facts.sampling import buckets

pytest.importorskip("duckdb")

TEMPLATES = """\
P36:
  question: What is the capital of [X]?
  label: capital
  domain: lands
  answer_type: location
P50:
  question: Who wrote [X]?
  domain: books
"""
Row = dict[str, Any]


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Write a dump and templates, run the command, and return what it wrote."""

    def run(
        rows: Sequence[Row] | Path,
        *options: str,
        templates: str = TEMPLATES,
        to: str = "set",
    ) -> Row:
        dump = (
            rows if isinstance(rows, Path) else write_csv(tmp_path / "dump.csv", rows)
        )
        (tmp_path / "templates.yaml").write_text(templates, encoding="utf-8")
        output = tmp_path / to
        code = main(
            ["build", "head-to-tail", str(dump), "--templates", str(tmp_path / "templates.yaml"),
             "--output", str(output), *options]
        )  # fmt: skip
        assert code == 0
        return {
            "facts": read_own_facts(output / "facts.jsonl"),
            "relations": read_relations(output / "relations.yaml"),
            "manifest": json.loads(
                (output / "manifest.json").read_text(encoding="utf-8")
            ),
            "bytes": {path.name: path.read_bytes() for path in output.iterdir()},
        }

    return run


def write_csv(path: Path, rows: Sequence[Row], **more: Any) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), **more)
        writer.writeheader()
        writer.writerows(rows)
    return path


def triple(
    subject: str,
    popularity: Any,
    relation: str = "P36",
    answer: str | None = None,
    **more: Any,
) -> Row:
    given = {"subject": subject, "relation": relation, "popularity": popularity}
    return {
        **given,
        "object": f"City of {subject}!" if answer is None else answer,
        **more,
    }


def lands(*popularity: Any) -> list[Row]:
    return [
        triple(f"Land {n}", value, answer=f"City {n}")
        for n, value in enumerate(popularity)
    ]


# Of 36: sums 1 3 6 10 15 21 28 36, so 5 crosses 12 and 7 crosses 24.
EIGHT = lands(1, 2, 3, 4, 5, 6, 7, 8)


def test_by_hand(build: Callable[..., Row]) -> None:
    built = build(EIGHT)
    assert built["manifest"]["buckets"] == [
        {
            "name": "lands",
            "tail": 5.0,
            "torso": 7.0,
            "entities": [["head", 1], ["torso", 2], ["tail", 5]],
        }
    ]
    # One question a bucket, since the head has one.
    assert [fact.bucket for fact in built["facts"]] == ["head", "torso", "tail"]
    head = built["facts"][0]
    assert (head.id, head.subject, head.object, head.popularity) == (
        "P36:Land 7",
        "Land 7",
        "City 7",
        8,
    )
    assert head.question == "What is the capital of Land 7?"
    assert (head.answer_type, head.dataset) == ("location", "dump")
    (relation,) = built["relations"]
    assert (relation.id, relation.label, relation.domain) == ("P36", "capital", "lands")
    assert (relation.frames, relation.popularity) == (
        ("What is the capital of [X]?",),
        8,
    )
    capital, author = built["manifest"]["templates"]
    assert (capital["questions"], capital["fit"], capital["taken"]) == (
        [1, 2, 5],
        [1, 2, 5],
        1,
    )
    assert (author["rows"], author["fit"], author["taken"]) == (0, [0, 0, 0], 0)


def test_years_after_the_cut_and_none_at_all_are_left_out_before_bucketing(
    build: Callable[..., Row],
) -> None:
    rows = [
        {**row, "year": year}
        for row, year in zip(
            EIGHT, ["1999", "-44", "2020-12-31"] + [1] * 5, strict=True
        )
    ]
    rows += [triple("New", 5, year=2021), triple("Undated", 1000, year="")]
    built = build(rows)
    assert built["manifest"]["buckets"][0]["entities"] == [
        ["head", 1],
        ["torso", 2],
        ["tail", 5],
    ]
    skipped = built["manifest"]["skipped"]
    assert (skipped["newer than the year cut"], skipped["year absent"]) == (1, 1)
    assert built["manifest"]["columns"]["year"] == "year"
    later = build(rows, "--until", "2021", to="later")["manifest"]
    assert (later["rules"]["until"], later["skipped"]["newer than the year cut"]) == (
        2021,
        0,
    )


def crowd(**more: Any) -> list[Row]:
    """Ninety lands, of which each ten share a popularity."""
    return [
        triple(f"{name} {n}", popularity + n // 10, answer=f"City {n}", **more)
        for name, popularity in (("Rare", 100), ("Middling", 130), ("Famous", 145))
        for n in range(30)
    ]


@pytest.mark.parametrize(("options", "fit"), [((), 24), (("--answers", "all"), 30)])
def test_facts_with_several_answers(
    build: Callable[..., Row], options: tuple[str, ...], fit: int
) -> None:
    rows = crowd()
    more = [triple(f"{name} {n}", row["popularity"], answer=f"{word} City")
            for name in ("Rare", "Middling", "Famous") for n in range(6) for word in ("Second", "A third")
            for row in rows if row["subject"] == f"{name} {n}"]  # fmt: skip
    # The same again is no second answer.
    same = [row for row in rows if row["subject"].endswith(" 29")]
    built = build(rows + more + same, *options)
    entities = dict(built["manifest"]["buckets"][0]["entities"])
    assert built["manifest"]["templates"][0]["questions"] == [
        entities[b] for b in ("head", "torso", "tail")
    ]
    several = {f.subject: f.accepted for f in built["facts"] if len(f.accepted) > 1}
    left_out = built["manifest"]["templates"][0]["left_out"]["several answers"]
    if not options:
        assert (left_out, several) == (18, {})
    else:
        assert left_out == 0
        assert several
        for subject, answers in several.items():
            assert answers == (
                "A third City",
                f"City {subject.split()[1]}",
                "Second City",
            )
    assert sum(built["manifest"]["templates"][0]["fit"]) == 3 * fit


def expected(rows: list[Row], seed: int, cap: int) -> list[tuple[str, str, str]]:
    """The paper's rules for single-valued facts of one domain a relation, in a few lines of Python."""
    result = []
    for relation in dict.fromkeys(row["relation"] for row in rows):
        own = [row for row in rows if row["relation"] == relation]
        entities = list(
            dict.fromkeys((row["subject"], float(row["popularity"])) for row in own)
        )
        bucket_of = dict(
            zip(
                entities,
                buckets([popularity for _, popularity in entities]),
                strict=True,
            )
        )
        answers = defaultdict(set)
        for row in own:
            answers[row["subject"]].add(row["object"])
        names = [subject for subject, _ in entities]
        strata: dict[str, list[str]] = {"head": [], "torso": [], "tail": []}
        for entity, bucket in bucket_of.items():
            subject = entity[0]
            if names.count(subject) == 1 and len(answers[subject]) == 1:
                strata[bucket].append(subject)
        count = min(cap, *map(len, strata.values()))
        for bucket, subjects in strata.items():
            subjects.sort(
                key=lambda s: hashlib.md5(
                    f"{seed}\x1f{relation}\x1f{s}".encode()
                ).hexdigest()
            )
            result += [(relation, bucket, subject) for subject in subjects[:count]]
    return result


@pytest.mark.parametrize("seed", range(8))
def test_random_dumps_against_the_rules_in_python(
    build: Callable[..., Row], seed: int
) -> None:
    rng = random.Random(seed)
    rows = []
    for relation in ("P36", "P50"):
        for n in range(rng.randrange(40, 400)):
            whole = rng.random() < 0.5
            popularity = rng.paretovariate(1.5)
            popularity = min(int(4 * popularity) if whole else popularity, 40)
            for _ in range(rng.choice((1, 1, 1, 2))):
                rows.append(
                    triple(
                        f"S{n % 370}",
                        popularity,
                        relation,
                        f"Object {rng.randrange(9)}",
                    )
                )
    rng.shuffle(rows)
    want = expected(sorted(rows, key=lambda row: row["relation"]), seed, 11)
    assert want
    built = build(rows, "--seed", str(seed), "--cap", "11")
    assert [
        (fact.relation, fact.bucket, fact.subject) for fact in built["facts"]
    ] == want


def test_every_format_gives_the_same_facts(
    build: Callable[..., Row], tmp_path: Path
) -> None:
    import duckdb

    rows = crowd()
    rows[0] |= {"subject": 'The "old" land, of Łódź', "object": "A\\B 'C'"}
    want = build(write_csv(tmp_path / "dump.csv", rows))["facts"]
    jsonl = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "dump.jsonl").write_text(jsonl, encoding="utf-8")
    (tmp_path / "dump.ndjson.gz").write_bytes(gzip.compress(jsonl.encode()))
    write_csv(tmp_path / "dump.tsv", rows, delimiter="\t")
    write_csv(tmp_path / "dump.txt", rows, delimiter="\t")
    with duckdb.connect() as connection:
        source = str(tmp_path / "dump.csv")
        connection.execute(
            f"COPY (FROM read_csv('{source}')) TO '{tmp_path / 'dump.parquet'}' (FORMAT parquet)"
        )
    for name, *options in (
        ("jsonl",),
        ("ndjson.gz",),
        ("tsv",),
        ("txt", "--format", "tsv"),
        ("parquet",),
    ):
        assert build(tmp_path / f"dump.{name}", *options, to=name)["facts"] == want, (
            name
        )


def test_a_table_has_a_column_for_each_relation(build: Callable[..., Row]) -> None:
    rows = [
        {
            "title": f"Film {n}",
            "Directed by": f"Person {n}",
            "land": f"Land {n}" if n != 4 else "",
            "votes": n,
        }
        for n in range(1, 9)
    ]
    templates = (
        'director: {question: "Who directed [X]?", from: Directed by, domain: films}\n'
        'land: {question: "Which land is [X] from?", domain: films}\n'
    )
    built = build(
        rows,
        "--table",
        "--subject",
        "title",
        "--popularity",
        "votes",
        templates=templates,
    )
    manifest = built["manifest"]
    assert manifest["rows"] == 8
    assert manifest["buckets"][0]["entities"] == [
        ["head", 1],
        ["torso", 2],
        ["tail", 5],
    ]
    assert [
        (t["relation"], t["rows"], t["fit"], t["taken"]) for t in manifest["templates"]
    ] == [
        ("director", 8, [1, 2, 5], 1),
        ("land", 7, [1, 2, 4], 1),
    ]
    assert {(fact.id, fact.object) for fact in built["facts"]} >= {
        ("director:Film 8", "Person 8"),
        ("land:Film 8", "Land 8"),
    }
