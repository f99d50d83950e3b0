"""Lexicon: sets of words that the rules treat alike, and tables of synonyms.

They are read from ``word_sets.tsv`` and ``word_forms.tsv``, in the spelling of :mod:`tokens`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.resources import tsv_rows


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text, each once."""
    return frozenset(words.split())


def _words(text: str) -> list[str]:
    return [word.replace("_", " ") for word in text.split()]


def _sets() -> Mapping[str, frozenset[str]]:
    sets: dict[str, list[str]] = {}
    for name, words in tsv_rows("judges/text/word_sets.tsv"):
        sets.setdefault(name, []).extend(_words(words))
    return {name: frozenset(words) for name, words in sets.items()}


def _forms(table: str) -> Mapping[str, tuple[str, ...]]:
    """Return for each form of a table, the main one among them, the words it may stand for."""
    forms: dict[str, list[str]] = {}
    for name, main, others in _FORMS:
        if name == table:
            for form in _words(f"{main} {others}"):
                forms.setdefault(form, []).extend(_words(main))
    return {form: tuple(words) for form, words in forms.items()}


_SETS = _sets()
FUNCTION = _SETS["function"]
PLACES = _SETS["places"]
HONORIFICS = _SETS["honorifics"]
TITLES = _SETS["titles"]
REGIONS = _SETS["regions"]
GIVEN = _SETS["given"]
SUFFIXES = _SETS["suffixes"]
INSTITUTIONS = _SETS["institutions"]
COMPANY = _SETS["company"]
DISTINGUISHING = _SETS["distinguishing"]
MODIFIERS = _SETS["modifiers"]
NEGATIONS = _SETS["negations"]
FRAMES = _SETS["frames"]
BESIDE = _SETS["beside"]
FALSE = _SETS["false"]
CORRECTING = _SETS["correcting"]
AWAY = _SETS["away"]
DIRECTIONS = _SETS["directions"]
SURROUNDINGS = _SETS["surroundings"]
RELATIONS = _SETS["relations"]
RELATED = _SETS["related"]
CITIES = _SETS["cities"]
PERSONS = _SETS["persons"]
LEADING = _SETS["leading"]
OPENERS = _SETS["openers"]
PARTICLES = _SETS["particles"]
NATIONALITY = _SETS["nationality"]
WORKS = _SETS["works"]
MOUNTAINS = _SETS["mountains"]
EXACT_DAY = _SETS["exact_day"]
_FORMS = tsv_rows("judges/text/word_forms.tsv")
FULL_NAMES = {form: frozenset(names) for form, names in _forms("name").items()}
UNITS = {form: units[0] for form, units in _forms("unit").items()}
UNIT_NAMES = frozenset(UNITS.values())
SPELLINGS = {form: words[0] for form, words in _forms("spelling").items()}
LONG_TITLES = {form: titles[0] for form, titles in _forms("title").items()}
NATIONS = {form: countries[-1] for form, countries in _forms("nation").items()}
# "A French physicist" names no other thing than "a physicist".
NATIONAL = frozenset(
    form for form, country in NATIONS.items() if form != country and " " not in form
)
NUMBER_WORDS = {
    word: int(digits) for table, digits, word in _FORMS if table == "number"
}
ORDINALS = {word: digits for table, digits, word in _FORMS if table == "ordinal"}
# Several words that stand for one, longest first. "US" and "us" are told apart by their capitals.
PHRASES: Mapping[tuple[str, ...], str] = {
    ("united", "states", "of", "america"): "usa",
    ("united", "states"): "usa",
    ("u", "s", "a"): "usa",
    ("u", "s"): "usa",
    ("united", "kingdom"): "uk",
    ("u", "k"): "uk",
}
