"""Facts about cities and capitals, from GeoNames."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from pytest_kbrel.records import Fact
from recipe.sources import Place, Sources, fold, has_words

CITIES, US_CITIES = 3000, 500
UK_PARTS = {"ENG": "England", "SCT": "Scotland", "WLS": "Wales", "NIR": "Northern Ireland"}


def fame(city: Place) -> float:
    """Return how well known a city is: sqrt(population) x number of alternate names in GeoNames."""
    # Some small capitals have no population in GeoNames.
    return math.sqrt(max(1000, int(city["population"]))) * max(1, len(city["alternatenames"]))


def _most_famous(cities: Iterable[Place], count: int) -> list[Place]:
    return sorted(cities, key=lambda c: (-fame(c), c["name"], c["geonameid"]))[:count]


def cities(sources: Sources) -> list[Fact]:
    """P17, city to country."""
    named: dict[str, list[Place]] = defaultdict(list)
    for city in sources.places:
        named[fold(city["name"]).casefold()].append(city)
    clear = []
    for cities in named.values():
        first, *others = sorted(cities, key=lambda c: (-c["population"], c["geonameid"]))
        # A namesake elsewhere is no trouble when nobody would think of it.
        rivals = [c for c in others if c["countrycode"] != first["countrycode"]]
        if all(first["population"] >= 10 * c["population"] for c in rivals):
            clear.append(first)
    sovereign = [
        c
        for c in clear
        if c["countrycode"] not in sources.hand["dependent"]
        and not has_words(c["name"], sources.names(c["countrycode"])[0])
    ]
    facts = []
    for city in _most_famous(sovereign, CITIES):
        code = city["countrycode"]
        part = [UK_PARTS[city["admin1code"]]] if code == "GB" and city["admin1code"] in UK_PARTS else []
        answers = [*sources.names(code), *part]
        facts.append(
            sources.fact("P17", str(city["geonameid"]), city["name"], answers, fame(city), "GeoNames")
        )
    return facts


def us_cities(sources: Sources) -> list[Fact]:
    """P131, city of the United States to state."""
    named: dict[str, list[Place]] = defaultdict(list)
    for city in sources.places:
        if city["countrycode"] == "US" and city["name"] not in sources.hand["not_cities"]:
            named[city["name"]].append(city)
    clear = []
    for cities in named.values():
        first, *others = sorted(cities, key=lambda c: (-c["population"], c["geonameid"]))
        state = sources.states.get(first["admin1code"])
        if state and first["name"] not in sources.states.values() and not first["name"].startswith("Borough"):
            rivals = [c for c in others if c["admin1code"] != first["admin1code"]]
            if all(first["population"] >= 5 * c["population"] for c in rivals):
                clear.append(first)
    facts = []
    for city in _most_famous(clear, US_CITIES):
        state = sources.states[city["admin1code"]]
        answers = [state, f"{state} State"] if state in {"New York", "Washington"} else [state]
        facts.append(
            sources.fact("P131", str(city["geonameid"]), city["name"], answers, fame(city), "GeoNames")
        )
    return facts


def capitals(sources: Sources) -> list[Fact]:
    """P1376, capital to country."""
    by_name: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for city in sources.places:
        by_name[city["countrycode"], fold(city["name"]).casefold()].append(city)
    facts = []
    for code in sources.land:
        if code in sources.hand["no_capital"] or code in sources.hand["dependent"]:
            continue
        names = sources.capital(code)
        found = [c for n in names for c in by_name[code, fold(n).casefold()]]
        if found:
            city = max(found, key=lambda c: (c["population"], -c["geonameid"]))
            facts.append(
                sources.fact(
                    "P1376", str(city["geonameid"]), names[0], sources.names(code), fame(city), "GeoNames"
                )
            )
    return facts
