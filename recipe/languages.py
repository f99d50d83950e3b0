"""Rows of the parallel facts in eleven languages: ``python -m recipe.languages`` writes them.

From CLDR, through ``babel`` (Unicode licence v3), and ``languages.yaml`` beside this. A fact is kept where every
language can ask for it: its names are fit, and the question gives the answer away in none.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml
from babel import Locale
from babel.core import get_global

from pytest_kbrel.facts import parallel
from pytest_kbrel.facts.files import fact_line
from pytest_kbrel.records import Fact
from pytest_kbrel.resources import read_yaml

# A script is no question where nearly all answers are "Latin": so many facts may share one.
MOST_OF_A_SCRIPT = 40
# The country with most speakers has so many times those of the next.
CLEARLY = 2
FILE = Path(parallel.__file__).with_suffix(".tsv")
FOLDER = FILE.with_name("parallel_files")
# Brackets, abbreviations, lists, and names of which CLDR says that they are two.
_UNFIT = re.compile(r"[()\[\]（）,.\d/&]|о-в| - |’s")
_ARTICLE = re.compile(r"\bال")
_LATIN = re.compile(r"[A-Za-z]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
Row = tuple[str, str, str, str]


def rows() -> list[Row]:
    """Return relation, CLDR's codes of subject and object, and popularity of each fact."""
    known = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    languages = [
        parallel.Language(code)
        for code in read_yaml("facts/languages.yaml")["languages"]
    ]
    worded: dict[Row, list[Fact]] = {}
    left_out = known["left_out"].split()
    for row in _candidates(known["states"].split(), left_out):
        if f"{row[0]}.{row[1]}" in left_out:
            continue
        facts = [one.fact(*row) for one in languages]
        fit = [fact for fact in facts if is_fit(fact) and not gives_away(fact)]
        if len(fit) == len(languages):
            worded[row] = fit
    asked = Counter(
        (fact.relation, folded(fact.subject)) for of in worded.values() for fact in of
    )
    clear = [
        row
        for row, of in worded.items()
        if all(asked[fact.relation, folded(fact.subject)] == 1 for fact in of)
    ]
    return _balanced(clear)


def _candidates(states: list[str], left_out: list[str]) -> Iterator[Row]:
    people, capitals = {}, {}
    for text in states:
        code, thousands, *zone = text.split(":")
        people[code], capitals[code] = int(thousands), "".join(zone)

    def row(relation: str, subject: str, answer: str, size: float) -> Row:
        # A heavy-tailed proxy would leave the head empty.
        return relation, subject, answer, f"{math.sqrt(size):.3f}"

    currencies = get_global("territory_currencies")
    spoken = get_global("territory_languages")
    speakers: dict[str, dict[str, float]] = defaultdict(dict)
    for code, size in people.items():
        if capital := capitals[code]:
            yield row("P36", code, capital, size)
            yield row("P1376", capital, code, size)
        tender = [name for name, _, end, legal in currencies[code] if legal and not end]
        if len(tender) == 1 and code not in left_out:
            yield row("P38", code, tender[0], size)
        for language, of in spoken[code].items():
            speakers[language][code] = size * of["population_percent"] / 100
        official = [
            language
            for language, of in spoken[code].items()
            if of["official_status"] in ("official", "de_facto_official")
        ]
        if len(official) == 1:
            yield row("P37", code, official[0], size)
    territories, aliases = get_global("zone_territories"), get_global("zone_aliases")
    # Russian has a name for every zone.
    for zone in sorted(Locale("ru").time_zones):
        code = territories.get(zone) or territories.get(aliases.get(zone, ""), "")
        if code in people and zone not in left_out:
            yield row("P17", zone, code, people[code])
    scripts = get_global("likely_subtags")
    for language, by_state in sorted(speakers.items()):
        ranked = sorted(((of, code) for code, of in by_state.items()), reverse=True)
        (most, first), (next_most, _) = [*ranked, (0.0, "")][:2]
        if most >= CLEARLY * next_most:
            yield row("speakers", language, first, most)
        script = scripts.get(language, "__").split("_")[1]
        if script and script not in left_out:
            yield row("P282", language, script, sum(by_state.values()))


def is_fit(fact: Fact) -> bool:
    """Return True if subject and answer have names that can stand in a question, in their own script."""
    texts = (fact.subject, fact.object or "", *fact.aliases[:1])
    own = read_yaml("facts/languages.yaml")["languages"][fact.language]
    is_foreign = not own["latin"] and _LATIN.search(" ".join(texts))
    return all(texts) and not (is_foreign or any(map(_UNFIT.search, texts)))


def gives_away(fact: Fact) -> bool:
    """Return True if a word of the answer and one of the subject begin alike.

    Without spaces between words: if two signs of the answer stand in the subject, three where all are syllables.
    """
    answer, subject = folded(fact.object or ""), folded(fact.subject)
    if _UNSPACED.search(answer + subject):
        parts = (
            answer[at : at + size]
            for size in (2, 3)
            for at in range(len(answer) - size + 1)
        )
        shared = [part for part in parts if part in subject]
        return answer in subject or any(
            len(part) == 3 or _HAN.search(part) for part in shared
        )
    return any(
        min(len(one), len(other)) > 2 and one[:4] == other[:4]
        for one in re.findall(r"\w+", answer)
        for other in re.findall(r"\w+", subject)
    )


def folded(text: str) -> str:
    """Return a text in small letters without accents and Arabic articles."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(char for char in letters if not unicodedata.combining(char))
    return _ARTICLE.sub("", plain)


def _balanced(facts: list[Row]) -> list[Row]:
    """Return the facts, of scripts no more than :data:`MOST_OF_A_SCRIPT` with the same one."""
    drawn: Counter[str] = Counter()
    kept = set()
    for row in sorted(facts, key=lambda row: hashlib.sha256(row[1].encode()).digest()):
        drawn[row[2]] += row[0] == "P282"
        if row[0] != "P282" or drawn[row[2]] <= MOST_OF_A_SCRIPT:
            kept.add(row)
    return [row for row in facts if row in kept]


def texts() -> dict[Path, str]:
    """Return the files that the package has: the rows, and questions about invented countries."""
    lines = "".join("\t".join(row) + "\n" for row in rows())
    head = "# relation, CLDR's codes of subject and object, popularity (recipe/languages.py)\n"
    unseen = "".join(map(fact_line, _unseen()))
    return {FILE: head + lines, FOLDER / "unseen.jsonl": unseen}


def _unseen() -> Iterator[Fact]:
    invented = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))[
        "invented"
    ]
    for code in read_yaml("facts/languages.yaml")["languages"]:
        names = invented.get(code, invented["en"]).split(", ")
        for relation in (f"{name}.{code}" for name in ("P36", "P38", "P37")):
            (frame, *_) = read_yaml("facts/parallel_files/relations.yaml")[relation][
                "frames"
            ]
            for name in names:
                yield Fact(
                    id=f"{relation}:{name}",
                    relation=relation,
                    subject=name,
                    object=None,
                    question=frame.replace("[X]", name),
                    language=code,
                )


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
