"""Parallel facts in eleven languages, named by CLDR: ``kbrel build languages``.

What is asked are the rows of ``parallel.tsv``, which ``recipe/languages.py`` chose; wordings are rows of
``languages.yaml``.
"""

from __future__ import annotations

from collections import Counter
from importlib import metadata
from pathlib import Path

from pytest_kbrel.facts.files import fact_line
from pytest_kbrel.outputs import write_text
from pytest_kbrel.records import Fact
from pytest_kbrel.resources import read_text, read_yaml, tsv_rows

# Written as they are, but for babel's version.
_FILES = ("relations.yaml", "languages.kb.yaml", "SOURCES.md")


def build_languages(folder: Path, *, force: bool) -> dict[str, int]:
    """Write facts, relations, the suite and SOURCES.md; return the number of parallel facts by relation.

    A fact that one language has no name for is in none. ``OSError`` where a file is there, without ``force``.
    """
    rows = read_yaml("facts/languages.yaml")
    languages = [Language(code) for code in rows["languages"]]
    facts, counts = [], Counter[str]()
    for row in tsv_rows("facts/parallel.tsv"):
        worded = [one.fact(*row) for one in languages]
        if all(fact.subject and fact.object for fact in worded):
            facts += worded
            counts[row[0]] += 1
    texts = {name: read_text(f"facts/parallel_files/{name}") for name in _FILES}
    unseen = read_text("facts/parallel_files/unseen.jsonl")
    texts["facts.jsonl"] = "".join(map(fact_line, facts)) + unseen
    for name, text in texts.items():
        version = metadata.version("babel")
        write_text(folder / name, text.replace("{babel}", version), force=force)
    return dict(counts)


class Language:
    """Names and wordings of one language; ``own`` are its rows."""

    def __init__(self, code: str) -> None:
        from babel import Locale

        self.rows = read_yaml("facts/languages.yaml")
        self.code, self.locale = code, Locale(code)
        self.own = self.rows["languages"][code]

    def fact(self, relation: str, subject: str, answer: str, popularity: str) -> Fact:
        """Return a fact about CLDR's codes in this language, with empty texts where it has no names."""
        of = self.rows["relations"][relation]
        asked, name = (
            self._name(of["subject"], subject),
            self._name(of["object"], answer),
        )
        short = self._unit(name, asked) if relation == "P38" else name
        # Zones keep older names: Kiev for Kyiv.
        others = [name, self._zone(answer)] if "/" in answer else [name]
        named = f"{relation}.{self.code}"
        return Fact(
            id=f"{named}:{subject}",
            relation=named,
            language=self.code,
            subject=asked,
            object=short,
            aliases=tuple(other for other in others if other not in (short, "")),
            popularity=float(popularity),
            source="CLDR",
            licence="Unicode-3.0",
            group=answer,
            parallel=f"{relation}:{subject}",
        )

    def _name(self, kind: str, code: str) -> str:
        name = getattr(self.locale, kind).get(code, "")
        if kind != "time_zones":
            return str(name)
        # Where the city is called as the zone is, CLDR has nothing.
        return str(dict(name or ()).get("city", self._zone(code)))

    def _zone(self, code: str) -> str:
        return code.rpartition("/")[2].replace("_", " ") if self.own["latin"] else ""

    def _unit(self, currency: str, country: str) -> str:
        """Return a currency without the country that it names: "Lek" of "Albanian Lek"."""
        words = currency.removeprefix(country).split() or [currency]
        # "доллар США" has its country behind it.
        at = 0 if words[-1].isupper() else self.own["unit"]
        return words[at].rpartition("-")[2]
