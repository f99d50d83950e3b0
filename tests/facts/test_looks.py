"""What an answer looks like, form by form; and which names stand in quotes in YAML."""

from __future__ import annotations

import pytest

from pytest_kbrel.facts.answer_kinds import answer_type_of
from pytest_kbrel.facts.files import fact_line, read_relations, relations_text
from pytest_kbrel.records import Fact, Relation

MONTHS = "January February March April May June July August September October November December"


def looks(text: str) -> str:
    return answer_type_of(Fact(id="f", relation="r", subject="s", object=text), None)


@pytest.mark.parametrize("month", MONTHS.split())
def test_a_month_makes_a_time(month: str) -> None:
    for text in (
        month,
        month.upper(),
        f"5 {month}",
        f"5th of {month} 31",
        f"{month} 5, 2031",
        f"{month} 5th",
    ):
        assert looks(text) == "time"
    assert looks(f"{month}s") == looks(f"{month} Lee") == looks(f"{month}, Ann") == "other"


@pytest.mark.parametrize(
    "text",
    [
        *("1000", "1999", "2099", "c1850", "c.1850", "ca 1850", "ca. 1850", "circa 1850", "44 bc", "44bce"),
        *(
            "44 AD",
            "44 ce",
            "44 b.c.",
            "44 a.d.",
            "the 1960s",
            "1960's",
            "2010s",
            "1st century",
            "the 2nd century",
        ),
        *(
            "3rd century bc",
            "4th century BCE",
            "1st March",
            "2nd March",
            "3rd March",
            "2031-03-05",
            "5.3.2031",
        ),
        *("March 1st", "March 2nd", "March 3rd", "5/3/31", "25.12.1999", " 1999 "),
    ],
)
def test_a_time(text: str) -> None:
    assert looks(text) == "time"


@pytest.mark.parametrize(
    "text",
    [
        *("999", "2100", "900", "0", "-4", "+4", "$4", "€4", "£ 4", "3.5", "1,000", "1 000", "4%", "4 %"),
        *("4 percent", "4 hundred", "4 thousand", "4 million", "4 billion", "4 trillion", "12345"),
    ],
)
def test_a_number(text: str) -> None:
    assert looks(text) == "number"


@pytest.mark.parametrize(
    "text",
    [
        *("1965s", "c 1850 a", "44 bcd", "1st", "5th cent", "2031-3-05", "¥4", "4 dozen", "x4", "4x", "--4"),
        *("four", "", "4 percents", "1960s music", "44 b.c"),
    ],
)
def test_something_else(text: str) -> None:
    assert looks(text) == "other"


@pytest.mark.parametrize("name", ["true", "false", "yes", "no", "on", "off", "null", "y", "n"])
def test_a_name_that_yaml_takes_for_something_else_stands_in_quotes(name: str, tmp_path) -> None:
    for written in (name, name.upper(), name.title()):
        text = relations_text([Relation(id=written, label="l", domain="d", frames=())])
        assert f'\n"{written}":\n' in text
        path = tmp_path / "relations.yaml"
        path.write_text(text, "utf-8")
        assert read_relations(path)[0].id == written
    longer = f"{name}2"
    assert f"\n{longer}:\n" in relations_text([Relation(id=longer, label="l", domain="d", frames=())])


@pytest.mark.parametrize("name", ["1", "1e5", "2026.01"])
def test_a_name_that_begins_with_a_digit_stands_in_quotes(name: str) -> None:
    assert f'"{name}":\n' in relations_text([Relation(id=name, label="l", domain="d", frames=())])


def test_a_popularity_of_nothing_is_written(tmp_path) -> None:
    relation = Relation(id="P1", label="l", domain="d", frames=(), popularity=0.0)
    assert "  popularity: 0.0\n" in relations_text([relation])
    path = tmp_path / "relations.yaml"
    path.write_text(relations_text([relation]), "utf-8")
    assert read_relations(path) == (relation,)
    fact = Fact(id="a", relation="P1", subject="s", object="o", popularity=0.0)
    assert '"popularity": 0}' in fact_line(fact)
    assert '"popularity": 0.5}' in fact_line(
        Fact(id="a", relation="P1", subject="s", object="o", popularity=0.5)
    )


@pytest.mark.parametrize("value", ["-1", "-0.001", ".inf", ".nan", "yes", "many", "[1]"])
def test_what_is_no_popularity_of_a_relation(value: str, tmp_path) -> None:
    path = tmp_path / "relations.yaml"
    path.write_text(f"P1: {{label: l, domain: d, popularity: {value}}}\n", "utf-8")
    with pytest.raises(Exception, match=r"popularity must be a number from 0 to 1e\+300, found"):
        read_relations(path)


@pytest.mark.parametrize("kind", ["number", "person", "time", "location", "other"])
def test_the_answer_type_of_a_relation(kind: str, tmp_path) -> None:
    path = tmp_path / "relations.yaml"
    path.write_text(
        f"P1: {{label: l, domain: d, answer_type: {kind}}}\nP2: {{label: l, domain: d}}\n", "utf-8"
    )
    assert [relation.answer_type for relation in read_relations(path)] == [kind, ""]
    assert [relation.popularity for relation in read_relations(path)] == [None, None]
    path.write_text(f"P1: {{label: l, domain: d, answer_type: {kind.title()}}}\n", "utf-8")
    with pytest.raises(Exception, match="answer_type must be one of number, person, time, location, other"):
        read_relations(path)
