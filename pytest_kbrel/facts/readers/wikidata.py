"""What the Wikidata properties of the public datasets are called, and what kind of answer they have."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.facts.readers.base import Relations
from pytest_kbrel.records import ANSWER_TYPES, AnswerType

DOMAIN = "wikidata"
_NAMES = """\
P6 person head of government
P17 location country
P19 location place of birth
P20 location place of death
P26 person spouse
P27 location country of citizenship
P30 location continent
P31 other instance of
P36 location capital
P37 other official language
P39 other position held
P47 location shares border with
P50 person author
P57 person director
P58 person screenwriter
P86 person composer
P101 other field of work
P103 other native language
P106 other occupation
P108 other employer
P127 other owned by
P131 location located in the administrative territorial entity
P136 other genre
P138 other named after
P140 other religion or worldview
P159 location headquarters location
P162 person producer
P170 person creator
P175 person performer
P176 other manufacturer
P178 other developer
P190 location twinned administrative body
P264 other record label
P276 location location
P279 other subclass of
P361 other part of
P364 other original language of film or TV show
P407 other language of work or name
P413 other position played on team
P449 other original broadcaster
P463 other member of
P495 location country of origin
P527 other has part
P530 location diplomatic relation
P740 location location of formation
P937 location work location
P1001 location applies to jurisdiction
P1303 other instrument
P1376 location capital of
P1412 other languages spoken, written or signed
"""


def _table() -> Mapping[str, tuple[str, AnswerType]]:
    table: dict[str, tuple[str, AnswerType]] = {}
    for line in _NAMES.splitlines():
        name, kind, label = line.split(" ", 2)
        table[name] = label, next(known for known in ANSWER_TYPES if known == kind)
    return table


PROPERTIES = _table()


def meet_property(relations: Relations, name: str, label: str = "") -> str:
    """Note the relation of a Wikidata property, under the name this table or the source has for it."""
    known = PROPERTIES.get(name)
    if known is None:
        return relations.meet(name, label or name, DOMAIN)
    return relations.meet(name, label or known[0], DOMAIN, answer_type=known[1])
