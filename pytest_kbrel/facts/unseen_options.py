"""What the wrong options of unanswerable questions are drawn from: the facts, or names everybody knows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

from pytest_kbrel.records import Fact

DISTRACTORS = 20
# For facts that offer fewer than 20 options of a type.
_FALLBACK: Mapping[str, str] = {
    "cities": "Ankara|Athens|Berlin|Bogotá|Cairo|Dakar|Dublin|Hanoi|Havana|Helsinki|Kabul|Kyoto|Lagos|"
    "Lima|Lisbon|Lyon|Madrid|Manila|Milan|Mumbai|Nairobi|Oslo|Paris|Porto|Prague|Quito|Rabat|Riga|Rome|"
    "Seoul|Sofia",
    "countries": "Angola|Argentina|Austria|Bolivia|Brazil|Canada|Chile|China|Cuba|Denmark|Egypt|Estonia|"
    "Finland|France|Ghana|Greece|India|Iran|Iraq|Italy|Japan|Kenya|Laos|Mexico|Nepal|Norway|Oman|Peru|"
    "Poland|Spain",
    "persons": "Ada Lovelace|Agatha Christie|Albert Camus|Amartya Sen|Anton Chekhov|Bram Stoker|"
    "Carl Jung|Charles Darwin|David Hume|Emmy Noether|Franz Kafka|George Eliot|George Orwell|"
    "Herman Melville|Isaac Newton|Jack London|James Joyce|Jane Austen|Jules Verne|Leo Tolstoy|"
    "Marie Curie|Mark Twain|Max Planck|Niels Bohr",
    "languages": "Arabic|Bengali|Bulgarian|Czech|Danish|Dutch|English|Finnish|French|German|Greek|"
    "Hebrew|Hindi|Hungarian|Italian|Japanese|Korean|Norwegian|Persian|Polish|Portuguese|Russian|Spanish|"
    "Swedish|Thai|Turkish",
    "companies": "Adobe|Airbus|Amazon|Apple|BMW|Boeing|Canon|Casio|Fiat|Ford|Honda|Intel|Kia|Lego|"
    "Lenovo|Mattel|Mazda|Microsoft|Nike|Nintendo|Nissan|Nokia|Samsung|Sega|Sony|Toyota|Yamaha",
    "instruments": "accordion|bagpipes|banjo|bassoon|cello|clarinet|cornet|double bass|drums|flute|"
    "guitar|harp|harmonica|harpsichord|horn|lute|mandolin|oboe|organ|piano|recorder|saxophone|sitar|"
    "trombone|trumpet|tuba|viola",
}
# Where in the facts the options of a kind are found: the subjects or objects of these relations.
_WHERE: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cities": (("P17", "subject"), ("P36", "object"), ("P1376", "subject")),
    "countries": (("P17", "object"), ("P36", "subject"), ("P1376", "object")),
    "persons": (("P50", "object"), ("P101", "subject")),
    "languages": (("P37", "object"),),
    "companies": (("P176", "object"),),
}
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def dates_of(year: int) -> tuple[str, ...]:
    """Return the days of a year as ``5 March 2031``, without the last days of the months."""
    return tuple(f"{day} {month} {year}" for month in _MONTHS.split("|") for day in range(1, 29))


def option_pools(facts: Iterable[Fact], as_of: datetime.date) -> dict[str, tuple[str, ...]]:
    """Return the options of every sort but ``dates``, sorted; more than 20 each.

    ``as_of`` is the day the questions are made: years of the past lie before it.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for fact in facts:
        found.setdefault((fact.relation, "subject"), set()).add(fact.subject)
        if fact.object is not None:
            found.setdefault((fact.relation, "object"), set()).add(fact.object)
    pools = {
        "small numbers": tuple(str(number) for number in range(2, 42)),
        "years": tuple(str(year) for year in range(as_of.year - 180, as_of.year - 20)),
    }
    for options, fallback in _FALLBACK.items():
        names = [sorted(found.get(place, ())) for place in _WHERE.get(options, ())]
        pool = {name.casefold(): name for group in names for name in group}
        # One more than is drawn, for the subject itself may not be an option.
        if len(pool) <= DISTRACTORS:
            pool = {**{name.casefold(): name for name in fallback.split("|")}, **pool}
        pools[options] = tuple(sorted(pool.values()))
    return pools
