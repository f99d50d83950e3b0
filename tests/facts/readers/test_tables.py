"""The tables of the readers: names of keys, of relations and of answer types, each stated by hand."""

from __future__ import annotations

import json

import pytest

from pytest_kbrel.facts.readers import FORMATS, Relations
from pytest_kbrel.facts.readers.base import (
    answers,
    clean,
    popularity,
    relation_id,
    statement,
)
from pytest_kbrel.facts.readers.wikidata import PROPERTIES, add_property
from tests.facts.readers.conftest import Read, lines

WIKIDATA = {
    "person": "P6 P26 P50 P57 P58 P86 P162 P170 P175",
    "location": "P17 P19 P20 P27 P30 P36 P47 P131 P159 P190 P276 P495 P530 P740 P937 P1001 P1376",
    "other": "P31 P37 P39 P101 P103 P106 P108 P127 P136 P138 P140 P176 P178 P264 P279 P361 P364 P407 P413 "
    "P449 P463 P527 P1303 P1412",
}


def test_the_formats_there_are() -> None:
    assert {name for name, form in FORMATS.items() if form.folders} == {
        "fktc",
        "pararel",
        "lama",
    }
    assert {name for name, form in FORMATS.items() if form.own} == {
        "jsonl",
        "csv",
        "parquet",
    }
    assert set(FORMATS) == {
        *(
            "fktc",
            "head-to-tail",
            "popqa",
            "pararel",
            "lama",
            "nq-open",
            "triviaqa",
            "qa",
            "jsonl",
            "csv",
        ),
        *("parquet", "simpleqa"),
    }


@pytest.mark.parametrize("kind", WIKIDATA)
def test_the_answer_types_of_wikidata_properties(kind: str) -> None:
    assert {name for name, (_, result) in PROPERTIES.items() if result == kind} == set(
        WIKIDATA[kind].split()
    )


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("P6", "head of government"),
        ("P36", "capital"),
        ("P131", "located in the administrative territorial entity"),
        ("P1412", "languages spoken, written or signed"),
    ],
)
def test_a_wikidata_property_has_its_label_unless_the_source_has_one(
    name: str, label: str
) -> None:
    relations = Relations()
    assert relations[add_property(relations, name)].label == label
    relations = Relations()
    assert relations[add_property(relations, name, "own")].label == "own"
    assert relations[name].domain == "wikidata"
    assert relations[name].answer_type
    # What is known already stays.
    add_property(relations, name, "other")
    assert relations[name].label == "own"


def test_an_unknown_property_has_no_answer_type() -> None:
    relations = Relations()
    assert add_property(relations, "P999") == "P999"
    assert (
        relations["P999"].label,
        relations["P999"].domain,
        relations["P999"].answer_type,
    ) == (
        "P999",
        "wikidata",
        "",
    )


POPQA = {
    "person": [
        "father",
        "mother",
        "producer",
        "director",
        "screenwriter",
        "composer",
        "author",
    ],
    "location": ["place of birth", "country", "capital", "capital of"],
    "other": ["occupation", "genre", "color", "religion", "sport"],
}
COLUMNS = ["id", "subj", "prop", "obj", "s_pop", "question", "possible_answers"]
ROW = {
    "id": "7",
    "subj": "Ann",
    "prop": "author",
    "obj": "Li",
    "s_pop": "0",
    "question": "Who?",
}


@pytest.mark.parametrize(
    ("kind", "prop"), [(kind, prop) for kind in POPQA for prop in POPQA[kind]]
)
def test_the_answer_types_of_popqa(kind: str, prop: str, read_text: Read) -> None:
    row = [{**ROW, "prop": prop}.get(column, "[]") for column in COLUMNS]
    result = read_text(
        "popqa", "p.tsv", "\t".join(COLUMNS) + "\n" + "\t".join(row) + "\n"
    )
    assert (result.relation.label, result.relation.domain) == (prop, "popqa")
    assert result.relation.answer_type == kind
    # A popularity of 0 is known.
    assert result.facts[0].popularity == 0.0


@pytest.mark.parametrize("column", COLUMNS)
def test_a_table_of_popqa_needs_its_columns(column: str, read_text: Read) -> None:
    header = "\t".join(name for name in COLUMNS if name != column)
    with pytest.raises(
        Exception, match=f"not PopQA's header: the key '{column}' is missing"
    ):
        read_text("popqa", "p.tsv", header + "\n")


@pytest.mark.parametrize("column", ["id", "subj", "prop", "obj", "question"])
def test_a_row_of_popqa_needs_most_of_its_cells(column: str, read_text: Read) -> None:
    def text(without: str) -> str:
        row = [{**ROW, without: ""}.get(name, "[]") for name in COLUMNS]
        return "\t".join(COLUMNS) + "\n" + "\t".join(row) + "\n"

    (error,) = read_text("popqa", "p.tsv", text(column)).errors
    assert f"the key '{column}' is missing" in error
    assert read_text("popqa", "p.tsv", text("s_pop")).facts[0].popularity is None


@pytest.mark.parametrize("key", ["input", "output"])
def test_a_question_of_popqa_in_json_needs_both_keys(key: str, read_text: Read) -> None:
    row = {"input": "Who?", "output": ["Li"], "s_pop": 0}
    (error,) = read_text(
        "popqa", "p.jsonl", lines({k: v for k, v in row.items() if k != key})
    ).errors
    assert f"the key '{key}' is missing" in error
    (fact,) = read_text("popqa", "p.jsonl", lines(row)).facts
    assert fact.popularity == 0.0
    (error,) = read_text("popqa", "p.jsonl", lines({**row, "output": []})).errors
    assert "'output' must hold at least one answer, found none" in error


QA_NAMES = {
    "question": ["question", "query", "input", "prompt", "Question"],
    "answers": [
        "answers",
        "answer",
        "possible_answers",
        "output",
        "outputs",
        "target",
        "gold",
        "Answer",
    ],
    "id": ["id", "qid", "question_id", "QuestionId"],
    "dataset": ["dataset", "source"],
    "popularity": ["popularity", "s_pop"],
    "subject": ["subject", "subj"],
    "relation": ["relation", "prop"],
    "answer_type": ["answer_type"],
    "valid_until": ["valid_until"],
}
QA_ROW = {
    "question": "Who?",
    "answers": ["Li"],
    "id": "q7",
    "dataset": "own",
    "popularity": 0,
    "subject": "Ash",
    "relation": "made by",
    "answer_type": "person",
    "valid_until": "2031-01-01",
}


@pytest.mark.parametrize(
    ("key", "name"), [(key, name) for key in QA_NAMES for name in QA_NAMES[key]]
)
def test_a_key_of_a_question_file_by_each_of_its_names(
    key: str, name: str, read_text: Read
) -> None:
    row = {name if one == key else one: item for one, item in QA_ROW.items()}
    expected = read_text("qa", "q.jsonl", lines(QA_ROW)).facts
    assert [(f.id, f.subject, f.object, f.question, f.relation) for f in expected] == [
        ("q7", "Ash", "Li", "Who?", "made_by")
    ]
    assert [
        (f.popularity, f.dataset, f.answer_type, f.valid_until) for f in expected
    ] == [(0.0, "own", "person", "2031-01-01")]
    assert read_text("qa", "q.jsonl", lines(row)).facts == expected
    # Also where the suffix does not say that each line is a row.
    if key == "question":
        assert read_text("qa", "q.txt", lines(row)).facts == expected


@pytest.mark.parametrize("key", [key for key in QA_NAMES if len(QA_NAMES[key]) > 1])
def test_of_several_names_the_first_counts(key: str, read_text: Read) -> None:
    for first, second in zip(QA_NAMES[key], QA_NAMES[key][1:], strict=False):
        rest = {one: item for one, item in QA_ROW.items() if one != key}
        other = 9 if key == "popularity" else ["Lu"] if key == "answers" else "other"
        row = {second: other, **rest, first: QA_ROW[key]}
        assert (
            read_text("qa", "q.jsonl", lines(row)).facts
            == read_text("qa", "q.jsonl", lines(QA_ROW)).facts
        )


QA_TYPES = {
    "number": "number num numeric numerical quantity count",
    "person": "person people human name",
    "time": "time date year datetime",
    "location": "location place loc geography",
    "other": "other others misc entity",
}


@pytest.mark.parametrize(
    ("kind", "word"),
    [(kind, word) for kind in QA_TYPES for word in QA_TYPES[kind].split()],
)
def test_an_answer_type_by_each_of_its_names(
    kind: str, word: str, read_text: Read
) -> None:
    for written in (word, word.upper()):
        (fact,) = read_text(
            "qa", "q.jsonl", lines({**QA_ROW, "answer_type": written})
        ).facts
        assert fact.answer_type == kind


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "JSONL", "json", "txt"])
def test_a_question_file_of_any_suffix(suffix: str, read_text: Read) -> None:
    row = {"question": "Who?", "answers": ["Li"]}
    assert len(read_text("qa", f"q.{suffix}", lines(row, row)).facts) == 2
    assert len(read_text("qa", f"q.{suffix}", "\ufeff" + lines(row)).facts) == 1
    if suffix in ("json", "txt"):
        assert (
            len(read_text("qa", f"q.{suffix}", json.dumps({"data": [row, row]})).facts)
            == 2
        )


TRIVIA = ["Value", "Aliases", "HumanAnswers", "NormalizedValue", "NormalizedAliases"]


def test_all_answers_of_triviaqa_count_in_their_order(read_text: Read) -> None:
    answer = {name: f"A{place}" for place, name in enumerate(TRIVIA)}
    row = {
        "Question": "Who?",
        "QuestionId": "t",
        "Answer": dict(reversed(answer.items())),
    }
    (fact,) = read_text("triviaqa", "t.json", json.dumps({"Data": [row]})).facts
    assert (fact.object, fact.aliases) == ("A0", ("A1", "A2", "A3", "A4"))


@pytest.mark.parametrize("key", ["Question", "QuestionId"])
def test_a_question_of_triviaqa_needs_its_keys(key: str, read_text: Read) -> None:
    row = {"Question": "Who?", "QuestionId": "t", "Answer": {"Value": "x"}}
    del row[key]
    (error,) = read_text("triviaqa", "t.json", json.dumps({"Data": [row]})).errors
    assert f"the key '{key}' is missing" in error


@pytest.mark.parametrize("key", ["subject", "object", "taxonomy"])
def test_a_fact_of_fktc_needs_its_keys(key: str, read_text: Read) -> None:
    row = {"subject": "a", "object": "b", "taxonomy": ["c"]}
    (error,) = read_text(
        "fktc",
        "P1.json",
        lines({"relations": ["[X]?"]}, {k: v for k, v in row.items() if k != key}),
    ).errors
    assert f"the key '{key}' is missing" in error


HEADS = ["name", "title", "label", "key", "id"]


@pytest.mark.parametrize("place", range(5))
def test_an_entity_is_named_by_the_first_of_its_names(
    place: int, read_text: Read
) -> None:
    entity = {
        name: f"E{number}" for number, name in enumerate(HEADS) if number >= place
    }
    row = [dict(reversed(entity.items())), "t", "Who?", "x"]
    (fact,) = read_text("head-to-tail", "h.json", json.dumps({"head": [row]})).facts
    assert fact.subject == f"E{place}"
    # A name that is no text is passed over.
    if place < 4:
        row[0] = {**entity, HEADS[place]: ["x"]}
        (fact,) = read_text("head-to-tail", "h.json", json.dumps({"head": [row]})).facts
        assert fact.subject == f"E{place + 1}"


@pytest.mark.parametrize(
    ("entity", "domain"),
    [
        ("<http://dbpedia.org/resource/Ash>", "open"),
        ("Ash", "open"),
        ("tt00123", "movie"),
        ("nm00123", "movie"),
        ("tt0012", "open"),
        ("https://imdb.com/x", "movie"),
        ("https://goodreads.com/x", "book"),
        (["tt00123", "x"], "movie"),
        (["x", "tt00123"], "open"),
        ({"name": "tt00123"}, "academics"),
    ],
)
def test_the_domain_of_an_entity(entity: object, domain: str, read_text: Read) -> None:
    result = read_text(
        "head-to-tail", "h.json", json.dumps({"head": [[entity, "t", "Who?", "x"]]})
    )
    assert result.relation.domain == domain


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, None),
        ("", None),
        (0, 0.0),
        ("0", 0.0),
        (0.0, 0.0),
        ("2.5", 2.5),
        (-1, None),
        ("-0.1", None),
    ],
)
def test_a_popularity_of_nothing_is_not_an_unknown_one(
    value: object, result: float | None
) -> None:
    assert popularity("p", value) == result


@pytest.mark.parametrize("value", [True, False, "many", [], {}, 10**400])
def test_what_is_no_popularity(value: object) -> None:
    with pytest.raises(ValueError, match="'p' must be a number, found"):
        popularity("p", value)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a  b\n c", "a b c"), (0, "0"), (7, "7"), (7.0, "7"), (7.5, "7.5"), (" x ", "x")],
)
def test_a_text_or_a_number_becomes_one_line(value: object, text: str) -> None:
    assert clean("x", value) == text


@pytest.mark.parametrize("value", ["", " \n", None, True, False, [], ["x"], {}])
def test_what_is_no_text(value: object) -> None:
    with pytest.raises(ValueError, match="'x' must be text or a number, found"):
        clean("x", value)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, []),
        ("", []),
        ([], []),
        (0, ["0"]),
        ("x", ["x"]),
        (["x", "X", " x ", "y"], ["x", "y"]),
        (["", " ", None, "x"], ["x"]),
        ('["x", "y"]', ["x", "y"]),
        (' ["x"]', ["x"]),
        (("x", 7), ["x", "7"]),
    ],
)
def test_the_answers_of_a_source(value: object, result: list[str]) -> None:
    assert answers("x", value) == result


@pytest.mark.parametrize(
    ("name", "result"),
    [
        *(
            ("place of birth", "place_of_birth"),
            ("P36", "P36"),
            ("Übung-1", "Ubung_1"),
            ("a.b_c", "a.b_c"),
        ),
        *(("  x! ", "x"), ("_.x._", "x")),
    ],
)
def test_the_id_of_a_relation(name: str, result: str) -> None:
    assert relation_id(name) == result


@pytest.mark.parametrize("name", ["", "日本", "_.", "!"])
def test_a_relation_without_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="a relation needs a name"):
        relation_id(name)


@pytest.mark.parametrize("mark", ".,;:!?")
def test_a_statement_has_no_space_before_a_mark(mark: str) -> None:
    assert statement("s", f"[X] is  [Y] {mark}") == f"[X] is [Y]{mark}"
    assert statement("s", "[X] is [Y]..") == "[X] is [Y]."
    assert statement("s", "[X] is [Y]...") == "[X] is [Y]..."
    for wrong in ("[X] is", "is [Y]", "[X] [X] [Y]", "[X] [Y] [Y]"):
        with pytest.raises(ValueError, match="exactly once"):
            statement("s", wrong)
