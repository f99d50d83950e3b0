"""Sound facts files of every format, all with the same facts, each with a suite that asks about them."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.plugin.conftest import CAPITALS, RELATIONS

_QUESTIONS = "reliability: {slices: [known-zero-shot], choices: 2, distractors: 4, gates: {cr: {min: 0.3}}}\n"
_FRAMES = "monitor: {negatives: 2, gates: {accuracy_base: {min: 0.3}}}\n"
_BUCKETS = "head_to_tail: {prompt: zero-shot, gates: {accuracy: {min: 0.3}}}\n"
_PLACES = [(country, city) for country, city, _ in CAPITALS]


def _asked(country: str) -> str:
    return f"What is the capital of {country}?"


@dataclass(frozen=True)
class Facts:
    """Files of one format under ``suites/``; ``lines``: those named ``.json`` hold a document a line."""

    files: dict[str, bytes] = field(repr=False)
    suite: str
    lines: bool = False


def _facts(
    form: str,
    at: str,
    files: dict[str, str | bytes],
    probes: str = _QUESTIONS,
    **more: bool,
) -> Facts:
    named = {
        f"suites/{name}": text.encode() if isinstance(text, str) else text
        for name, text in files.items()
    }
    relations = "relations: relations.yaml\n" if "relations.yaml" in files else ""
    return Facts(
        named, f"suite: t\nfacts: {at}\nformat: {form}\n{relations}{probes}", **more
    )


def _lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _table(rows: Iterable[Iterable[object]], delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _parquet() -> bytes:
    import tempfile
    from pathlib import Path

    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f.parquet"
        rows = ", ".join(
            f"('P36', '{country}', '{city}', {people}, ['The {city}'])"
            for country, city, people in CAPITALS
        )
        names = "relation, subject, object, popularity, aliases"
        duckdb.execute(
            f"COPY (SELECT * FROM (VALUES {rows}) AS t({names})) TO '{path}'"
        )
        return path.read_bytes()


def _own() -> Iterable[Facts]:
    keys = ("id", "relation", "subject", "object", "popularity", "aliases", "negatives")
    rows = [
        (f"i{at}", "P36", country, city, people, ["The " + city], ["Ulm", "Bonn"])
        for at, (country, city, people) in enumerate(CAPITALS)
    ]
    cells = [(*row[:5], json.dumps(row[5]), json.dumps(row[6])) for row in rows]
    probes = _FRAMES + _BUCKETS
    more = {
        "answer_range": None,
        "answer_type": "location",
        "valid_until": "",
        "language": "en",
    }
    written = [dict(zip(keys, row, strict=True)) | more for row in rows]
    for name, data in (
        ("jsonl", _lines(*written)),
        ("csv", _table([keys, *cells])),
        ("parquet", _parquet()),
    ):
        yield _facts(
            name, f"f.{name}", {f"f.{name}": data, "relations.yaml": RELATIONS}, probes
        )


def _public() -> Iterable[Facts]:
    cities = [city for _, city in _PLACES]
    header = {"relations": [_asked("[X]"), "Which city is the capital of [X]?"]}
    rows = [
        {
            "subject": country,
            "object": city,
            "taxonomy": [other for other in cities if other != city][:3],
        }
        for country, city in _PLACES
    ]
    yield _facts(
        "fktc",
        "P36-subclass.json",
        {"P36-subclass.json": _lines(header, *rows)},
        _FRAMES,
        lines=True,
    )

    iri = "<http://dbpedia.org/{}>".format
    document: dict[str, list[Any]] = {"head": [], "torso": [], "tail": []}
    for at, (country, city) in enumerate(_PLACES):
        key, name = (
            iri("ontology/capital"),
            iri(f"resource/{country.replace(' ', '_')}"),
        )
        document[list(document)[at % 3]].append(
            [[name, key, iri("x")], key, _asked(country), [city]]
        )
    yield _facts("head-to-tail", "h.json", {"h.json": json.dumps(document)}, _BUCKETS)

    columns = (
        "id",
        "subj",
        "prop",
        "obj",
        "s_pop",
        "o_pop",
        "question",
        "possible_answers",
    )
    table = [
        (
            at,
            country,
            "capital",
            city,
            10 + at,
            5,
            _asked(country),
            json.dumps([city, city.upper()]),
        )
        for at, (country, city) in enumerate(_PLACES)
    ]
    yield _facts(
        "popqa",
        "p.tsv",
        {"p.tsv": _table([columns, *table], "\t")},
        _QUESTIONS + _BUCKETS,
    )
    renamed = [
        {"input": _asked(country), "output": json.dumps([city]), "id": at, "s_pop": at}
        for at, (country, city) in enumerate(_PLACES)
    ]
    yield _facts(
        "popqa",
        "p.json",
        {"p.json": json.dumps({"dev": renamed[:6], "test": renamed[6:]})},
    )

    patterns = _lines(
        {"pattern": "The capital of [X] is [Y] ."},
        {"pattern": "[Y] is the capital of [X]."},
    )
    labels = _lines(
        *(
            {"sub_label": country, "obj_label": city, "uuid": city}
            for country, city in _PLACES
        )
    )
    files: dict[str, str | bytes] = {
        "graphs_json/P36.jsonl": patterns,
        "trex_lms_vocab/P36.jsonl": labels,
    }
    yield _facts(
        "pararel",
        "trex_lms_vocab/P36.jsonl",
        {**files, "relations.yaml": RELATIONS},
        _FRAMES,
    )
    yield _facts(
        "lama", "P36.jsonl", {"P36.jsonl": labels, "relations.yaml": RELATIONS}, _FRAMES
    )

    simple = [
        {"question": _asked(country), "answer": [city]} for country, city in _PLACES
    ]
    yield _facts("nq-open", "n.jsonl", {"n.jsonl": _lines(*simple)})
    trivia = [
        {
            "Question": _asked(country),
            "QuestionId": f"q{at}",
            "Answer": {"Value": city, "Aliases": [city]},
        }
        for at, (country, city) in enumerate(_PLACES)
    ]
    yield _facts(
        "triviaqa", "t.json", {"t.json": json.dumps({"Data": trivia, "Domain": "x"})}
    )
    about = (
        "{'topic': 'Geography', 'answer_type': 'Place', 'urls': ['https://a.example']}"
    )
    asked = [(about, _asked(country), city) for country, city in _PLACES]
    years = [
        (about, f"How old is {at}?", f"{at} (acceptable range: between 1 and {at + 9})")
        for at in range(3)
    ]
    head = ("metadata", "problem", "answer")
    yield _facts("simpleqa", "s.csv", {"s.csv": _table([head, *asked, *years])})
    more = [
        {
            "question": _asked(country),
            "answers": [city],
            "dataset": "d",
            "answer_type": "place",
            "id": f"k{at}",
        }
        for at, (country, city) in enumerate(_PLACES)
    ]
    yield _facts("qa", "q.jsonl", {"q.jsonl": _lines(*more)})
    yield _facts("qa", "q.json", {"q.json": json.dumps(more)})


@functools.cache
def facts_files() -> tuple[Facts, ...]:
    """Return the files of all formats."""
    return (*_own(), *_public())
