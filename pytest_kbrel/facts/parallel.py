"""Parallel facts in eleven languages, from CLDR: ``kbrel build languages``.

A fact is kept where every language can ask for it: its names have no brackets, abbreviations or letters of
another script, and the question does not give the answer away. Wordings are rows of ``languages.yaml``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.facts.files import fact_line, relations_text
from pytest_kbrel.facts.sampling import first_drawn
from pytest_kbrel.outputs import write_text
from pytest_kbrel.records import BUCKETS, Fact, Relation, record
from pytest_kbrel.resources import read_yaml

# A script is no question where nearly all answers are "Latin": so many facts may share one.
MOST_OF_A_SCRIPT = 40
# The country with most speakers has so many times those of the next.
CLEARLY = 2
_UNFIT = re.compile(r"[()\[\]（）,.\d/&]|о-в| - |’s")
_LATIN = re.compile(r"[A-Za-z]")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_LICENCE = "Unicode-3.0"


@record
class _Pair:
    """A fact before it is worded: what CLDR calls subject and object, as (kind, code)."""

    relation: str
    key: str
    subject: tuple[str, str]
    object: tuple[str, str]
    popularity: float

    @property
    def name(self) -> str:
        """The name of the fact in all languages."""
        return f"{self.relation}:{self.key}"


def rows() -> Any:
    """Return the rows of ``languages.yaml``."""
    return read_yaml("facts/languages.yaml")


def build_languages(folder: Path) -> dict[str, int]:
    """Write facts, relations, the suite and SOURCES.md; return the number of parallel facts by relation.

    ``KbrelError`` where the folder is there and not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise KbrelError(
            f"{folder}: exists already; allowed: a folder that does not, or an empty one"
        )
    languages = {code: _Language(code) for code in rows()["languages"]}
    worded = (
        [fact for one in languages.values() if (fact := one.fact(pair))]
        for pair in _pairs()
    )
    everywhere = [group for group in worded if len(group) == len(languages)]
    kept = _balanced(_unambiguous(everywhere))
    facts = [fact for group in kept for fact in group]
    facts += [fact for language in languages.values() for fact in language.unseen()]
    counts = Counter(group[0].parallel.partition(":")[0] for group in kept)
    relations = [of for one in languages.values() for of in one.relations()]
    for name, text in (
        ("facts.jsonl", "".join(map(fact_line, facts))),
        ("relations.yaml", relations_text(relations)),
        ("languages.kb.yaml", _suite(list(languages))),
        ("SOURCES.md", _sources(counts)),
    ):
        write_text(folder / name, text, force=False)
    return dict(counts)


def _pairs() -> Iterator[_Pair]:
    from babel import Locale
    from babel.core import get_global

    left_out = rows()["left_out"].split()
    states = {}
    for row in rows()["states"].split():
        code, thousands, *zone = row.split(":")
        states[code] = int(thousands), "".join(zone)

    def pair(relation: str, key: str, subject: str, answer: str, size: float) -> _Pair:
        # A heavy-tailed proxy would leave the head empty.
        one, other = _KINDS[relation]
        root = round(math.sqrt(size), 3)
        return _Pair(
            relation=relation,
            key=key,
            subject=(one, subject),
            object=(other, answer),
            popularity=root,
        )

    currencies = get_global("territory_currencies")
    spoken = get_global("territory_languages")
    speakers: dict[str, dict[str, float]] = defaultdict(dict)
    for code, (people, capital) in states.items():
        if capital:
            yield pair("P36", code, code, capital, people)
            yield pair("P1376", code, capital, code, people)
        tender = [name for name, _, end, legal in currencies[code] if legal and not end]
        if len(tender) == 1 and code not in left_out:
            yield pair("P38", code, code, tender[0], people)
        for language, of in spoken[code].items():
            speakers[language][code] = people * of["population_percent"] / 100
        official = [
            language
            for language, of in spoken[code].items()
            if of["official_status"] in ("official", "de_facto_official")
        ]
        if len(official) == 1:
            yield pair("P37", code, code, official[0], people)
    territories, aliases = get_global("zone_territories"), get_global("zone_aliases")
    # Russian has a name for every zone.
    for zone in sorted(Locale("ru").time_zones):
        code = territories.get(zone) or territories.get(aliases.get(zone, ""), "")
        if code in states and zone not in left_out:
            yield pair("P17", zone, zone, code, states[code][0])
    scripts = get_global("likely_subtags")
    for language, by_state in sorted(speakers.items()):
        (most, first), (next_most, _) = sorted(
            ((of, code) for code, of in (*by_state.items(), ("", 0.0))), reverse=True
        )[:2]
        if most >= CLEARLY * next_most:
            yield pair("speakers", language, language, first, most)
        script = scripts.get(language, "__").split("_")[1]
        if script and script not in left_out:
            yield pair("P282", language, language, script, sum(by_state.values()))


# What CLDR has the names of subject and object under.
_KINDS = {
    "P36": ("territories", "time_zones"),
    "P1376": ("time_zones", "territories"),
    "P38": ("territories", "currencies"),
    "P37": ("territories", "languages"),
    "P17": ("time_zones", "territories"),
    "speakers": ("languages", "territories"),
    "P282": ("languages", "scripts"),
}
# The relations that are asked about invented countries.
_UNSEEN = ("P36", "P38", "P37")


class _Language:
    """Names and wordings of one language."""

    def __init__(self, code: str) -> None:
        from babel import Locale

        self.code, self.locale = code, Locale(code)
        own = rows()["languages"][code]
        self.frames, self.checked = own["frames"], own["checked"]
        self.unit = own.get("unit")
        self.is_latin = bool(_LATIN.search(self.frames["P36"][0].replace("[X]", "")))

    def relations(self) -> Iterator[Relation]:
        """Yield the relations, each with the language as its domain."""
        for name, of in rows()["relations"].items():
            yield Relation(
                id=f"{name}.{self.code}",
                label=f"{of['label']} ({self.code})",
                domain=self.code,
                answer_type=of["type"],
                frames=tuple(self.frames[name]),
                checked=self.checked,
            )

    def fact(self, pair: _Pair) -> Fact | None:
        """Return a fact in this language, ``None`` where it has no fit names for it."""
        subject, answer = self._name(*pair.subject), self._name(*pair.object)
        if not (subject and answer):
            return None
        short = self._unit(answer, subject) if pair.relation == "P38" else answer
        if any(_common(short, subject)) or not short:
            return None
        return Fact(
            id=f"{pair.relation}.{self.code}:{pair.key}",
            relation=f"{pair.relation}.{self.code}",
            subject=subject,
            object=short,
            aliases=() if short == answer else (answer,),
            popularity=pair.popularity,
            source="CLDR",
            licence=_LICENCE,
            language=self.code,
            group=pair.object[1],
            parallel=pair.name,
        )

    def unseen(self) -> Iterator[Fact]:
        """Yield questions about invented countries."""
        invented = rows()["invented"]
        names = invented.get(self.code, invented["en"]).split(", ")
        for relation in _UNSEEN:
            for number, name in enumerate(names, 1):
                yield Fact(
                    id=f"{relation}.{self.code}:unseen{number}",
                    relation=f"{relation}.{self.code}",
                    subject=name,
                    object=None,
                    question=self.frames[relation][0].replace("[X]", name),
                    language=self.code,
                    parallel=f"{relation}:unseen{number}",
                )

    def _name(self, kind: str, code: str) -> str:
        """Return CLDR's name, ``""`` where there is none that can stand in a question."""
        name = getattr(self.locale, kind).get(code, "")
        if kind == "time_zones":
            # Where the city is called as the zone is, CLDR has nothing.
            own = code.rpartition("/")[2].replace("_", " ") if self.is_latin else ""
            name = dict(name or ()).get("city", own)
        is_foreign = not self.is_latin and _LATIN.search(name)
        return "" if _UNFIT.search(name) or is_foreign else name

    def _unit(self, currency: str, country: str) -> str:
        """Return a currency without the country that it names: "Lek" of "Albanian Lek"."""
        if self.unit is None:
            return currency.removeprefix(country).strip().rpartition(" ")[2]
        words = currency.split()
        unit = words[self.unit]
        # "доллар США" has its country behind it.
        return words[0] if unit.isupper() else unit.rpartition("-")[2]


def _common(answer: str, subject: str) -> Iterator[bool]:
    """Yield True for each pair of words, or of letters without spaces, that begins alike."""
    answer, subject = _folded(answer), _folded(subject)
    if _UNSPACED.search(answer + subject):
        yield answer in subject
        yield from (
            answer[at : at + 2] in subject for at in range(max(len(answer) - 1, 0))
        )
        return
    for one in re.findall(r"\w+", answer):
        for other in re.findall(r"\w+", subject):
            yield min(len(one), len(other)) > 2 and one[:4] == other[:4]


def _folded(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in letters if not unicodedata.combining(char))


def _unambiguous(groups: list[list[Fact]]) -> list[list[Fact]]:
    """Return the facts whose question, in no language, is that of another one."""
    asked = Counter(
        (fact.relation, _folded(fact.subject)) for group in groups for fact in group
    )
    return [
        group
        for group in groups
        if all(asked[fact.relation, _folded(fact.subject)] == 1 for fact in group)
    ]


def _balanced(groups: list[list[Fact]]) -> list[list[Fact]]:
    """Return the facts, of scripts no more than :data:`MOST_OF_A_SCRIPT` with the same one."""
    by_script: dict[str, list[Fact]] = defaultdict(list)
    for first, *_ in groups:
        if first.relation.startswith("P282."):
            by_script[first.object or ""].append(first)
    dropped = {
        fact.parallel
        for facts in by_script.values()
        for fact in {*facts} - {*first_drawn(facts, MOST_OF_A_SCRIPT, 0, "fact")}
    }
    return [group for group in groups if group[0].parallel not in dropped]


def _suite(languages: list[str]) -> str:
    """Return the suite: slices by language, and by popularity or whether a question has an answer."""
    buckets = ", ".join(f"{one}-{of}" for one in languages for of in BUCKETS)
    kinds = ", ".join(f"{of}-{one}" for one in languages for of in ("known", "unseen"))
    return f"""\
# Made by `kbrel build languages`: docs/languages.md. The wordings were not checked by native speakers.
suite: languages
facts: facts.jsonl
head_to_tail:
  slices: [{buckets}]
  instructions: translated
  cluster: group
  gates:
    accuracy: {{max_drop: {{within: 0.08, beyond: 0.02}}}}
    hallucination: {{max_drop: {{within: 0.08, beyond: 0.02}}}}
  overall:
    gates:
      accuracy: {{max_drop: {{within: 0.04, beyond: 0.01}}}}
      hallucination: {{max_drop: {{within: 0.04, beyond: 0.01}}}}
reliability:
  slice_by: language
  slices: [{kinds}]
  instructions: translated
  cluster: group
  limit: 100
  choices: 5
  gates:
    ncr: {{max_drop: {{within: 0.15, beyond: 0.04}}}}
    ur: {{max_drop: {{within: 0.15, beyond: 0.04}}}}
overall:
  gates:
    consistency: {{max_drop: {{within: 0.04, beyond: 0.01}}}}
    agreement: {{max_drop: {{within: 0.04, beyond: 0.01}}}}
"""


def _sources(counts: Counter[str]) -> str:
    labels = rows()["relations"]
    listed = "\n".join(
        f"| {name} | {labels[name]['label']} | {count} |"
        for name, count in counts.items()
    )
    unchecked = ", ".join(
        code for code, of in rows()["languages"].items() if not of["checked"]
    )
    return f"""\
# Sources

Names, currencies, languages, scripts and places: Unicode CLDR through babel {metadata.version("babel")}
(Unicode License v3, https://www.unicode.org/license.txt). What is dated is so by that release.
Inhabitants of states, to two digits: GeoNames, https://www.geonames.org, CC BY 4.0.

`popularity` is the square root of the inhabitants of the country, or of the speakers of the language, in thousands:
good for countries, weak for places.

Questions were worded by the makers of pytest-kbrel and **not checked by a native speaker** in: {unchecked}.

| relation | | facts in each language |
|---|---|--:|
{listed}
| | all | {sum(counts.values())} |
"""
