from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_kbrel.errors import MissingExtraError, SuiteError
from pytest_kbrel.records import Fact
from tests.facts.readers.conftest import Read, found_in, lines

FULL = Fact(
    id="x",
    relation="P36",
    subject="Peru",
    object="Lima",
    aliases=("Ciudad, de los Reyes",),
    popularity=3.5,
    negatives=("Cusco", "Quito"),
    question="Where?",
    source="own",
    answer_type="location",
    dataset="d",
    bucket="tail",
)
BARE = Fact(
    id="P36:Mali:7", relation="P36", subject="Mali", object="7", answer_type="number"
)
HEADER = "id,relation,subject,object,aliases,popularity,negatives,question,source,answer_type,dataset,bucket\n"
FULL_ROW = 'x,P36,Peru,Lima,"[""Ciudad, de los Reyes""]",3.5,"[""Cusco"", ""Quito""]",Where?,own,location,d,tail\n'


def test_csv(read_text: Read) -> None:
    result = read_text("csv", "f.csv", HEADER + FULL_ROW + ",P36,Mali,7,,-1,,,,,,\n")
    assert result.facts == [FULL, BARE]
    assert result.relation.id == "P36"


def test_parquet(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "f.parquet"
    duckdb.execute(
        "COPY (SELECT 'x' AS id, 'P36' AS relation, 'Peru' AS subject, 'Lima' AS object, "
        "['Ciudad, de los Reyes'] AS aliases, 3.5 AS popularity, ['Cusco', 'Quito'] AS negatives, "
        "'Where?' AS question, 'own' AS source, 'location' AS answer_type, 'd' AS dataset, 'tail' AS bucket "
        "UNION ALL SELECT NULL, 'P36', 'Mali', '7', NULL, -1, NULL, NULL, NULL, NULL, NULL, NULL "
        f"UNION ALL SELECT NULL, 'P36', '', 'y', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL) TO '{path}'"
    )
    result = found_in("parquet", path)
    assert result.facts == [FULL, BARE]
    assert result.errors == [
        f"{path}:3: the key 'subject' is missing; found: relation, object, popularity, id; "
        "needed: relation, subject, object"
    ]


@pytest.mark.parametrize("data", [b"", b"PAR1 and no more"])
def test_what_is_no_parquet(data: bytes, read_text: Read) -> None:
    with pytest.raises(SuiteError, match=r"f\.parquet: cannot be read as Parquet: "):
        read_text("parquet", "f.parquet", data)


def test_without_duckdb_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(
        MissingExtraError, match=r'needs duckdb: pip install "pytest-kbrel\[data\]"'
    ):
        found_in("parquet", tmp_path / "f.parquet")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",P36,a,b,text,,,,,,,\n", "'aliases' holds a JSON list"),
        (
            ',P36,a,b,"{""a"": 1}",,,,,,,\n',
            "'aliases' must hold a JSON list, found a mapping",
        ),
        (",P36,a,b,,many,,,,,,\n", "'popularity' must be a number, found 'many'"),
        (",P36,,b,,,,,,,,\n", "the key 'subject' is missing"),
        (',P36,a,b,,,"[""b""]",,,,,\n', "'negatives' must be wrong answers, found 'b'"),
        (",P36,a,b,,,,,,,,middle\n", "'bucket' must be one of head, torso, tail"),
    ],
)
def test_a_broken_row_of_a_table(
    row: str, message: str, read_text: Read, tmp_path: Path
) -> None:
    (error,) = read_text("csv", "f.csv", HEADER + row).errors
    assert error.startswith(f"{tmp_path / 'f.csv'}:2: ")
    assert message in error


def test_columns(read_text: Read) -> None:
    with pytest.raises(
        SuiteError,
        match=r":1: unknown column 'subjct'; allowed: .*did you mean 'subject'",
    ):
        read_text("csv", "f.csv", "relation,subjct,object\n")
    with pytest.raises(
        SuiteError,
        match=r":1: not a facts table's header: the key 'object' is missing; found: relat",
    ):
        read_text("csv", "f.csv", "relation,subject\n")


def test_jsonl_keeps_what_it_says_and_takes_the_relations_beside_it(
    read_text: Read, tmp_path: Path
) -> None:
    (tmp_path / "relations.yaml").write_text(
        "P36: {label: capital, domain: world, frames: ['What of [X]?']}\n"
    )
    rows = [
        {"relation": "P36", "subject": "a", "object": "b"},
        {"relation": "P36", "subject": "a", "object": "c"},
        {"relation": "P36", "subject": "a", "object": "b"},
        {"relation": "P36", "subject": "u", "object": None, "question": "Who?"},
        {"relation": "P36", "subject": "u", "object": None},
    ]
    result = read_text("jsonl", "f.jsonl", lines(*rows))
    assert [(fact.id, fact.duplicate_of) for fact in result.facts] == [
        ("P36:a", ""),
        ("P36:a#2", ""),
        ("P36:a#3", "P36:a"),
        ("P36:u", ""),
    ]
    assert result.relation.frames == ("What of [X]?",)
    assert result.errors == [
        f"{tmp_path / 'f.jsonl'}:5: 'object' must be text of one line without NUL or space around it, found nothing"
    ]


def test_a_range_stands_as_json_in_its_cell(read_text: Read) -> None:
    text = 'relation,subject,object,answer_range\nP1,a,120,"[118, 122.5]"\nP1,b,7,\nP1,c,5,five\n'
    result = read_text("csv", "f.csv", text)
    assert [fact.answer_range for fact in result.facts] == [(118.0, 122.5), None]
    assert "f.csv:4: " in result.errors[0]
    assert "'answer_range' holds two numbers: [118, 122]" in result.errors[0]


def test_a_range_of_a_typed_table(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "f.parquet"
    duckdb.execute(
        "COPY (SELECT 'P1' AS relation, 'a' AS subject, '120' AS object, [118, 122.5] AS answer_range) "
        f"TO '{path}'"
    )
    (fact,) = found_in("parquet", path).facts
    assert fact.answer_range == (118.0, 122.5)


@pytest.mark.parametrize(
    "raw",
    [
        "Q42",
        "_:genid123",
        "_:b7",
        "http://www.wikidata.org/entity/Q350",
        "<https://www.wikidata.org/wiki/Q350>",
        "http://www.wikidata.org/.well-known/genid/0a1b",
        "wd:Q350",
    ],
)
@pytest.mark.parametrize("key", ["subject", "object"])
def test_what_wikidata_has_in_place_of_a_label_is_refused(
    key: str, raw: str, read_text: Read
) -> None:
    fact = {"relation": "P19", "subject": "Ann Lee", "object": "Ulm", key: raw}
    table = "relation,subject,object\n" + ",".join(fact.values()) + "\n"
    lama = {"predicate_id": "P19", "sub_label": fact["subject"]}
    for form, name, text in (
        ("jsonl", "f.jsonl", lines("", fact)),
        ("csv", "f.csv", table),
        ("lama", "P19.jsonl", lines("", {**lama, "obj_label": fact["object"]})),
    ):
        (error,) = read_text(form, name, text).errors
        assert f"{name}:2: {key!r} must be a name, found {raw!r}; allowed: " in error


def test_names_that_only_look_like_those_of_wikidata(read_text: Read) -> None:
    own = {"relation": "P", "subject": "Q7", "object": "https://www.wikidata.org/"}
    assert read_text("jsonl", "f.jsonl", lines(own)).errors == []
    free = {"question": "Which gate is it?", "answer": "Q42"}
    assert read_text("qa", "q.jsonl", lines(free)).errors == []
