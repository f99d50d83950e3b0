"""Language support: answers in ten languages are put into English, for which the rules are written.

The small words of an answer (articles, "not", "or"), read from ``languages/``, and its dates are put in
English, the accepted answers in it as the facts file writes them; the English rules then see negations,
lists and dates.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from pytest_kbrel.judges.text.dates import in_english_dates
from pytest_kbrel.judges.text.tokens import (
    APOSTROPHES,
    SIGNS,
    fold_letters,
    has_no_case,
    is_unspaced,
    normalise_letters,
    unspaced_pattern,
)
from pytest_kbrel.records import DEFAULT_LANGUAGE, LANGUAGES, base_language, record

# The last letters of a noun in the nominative, and what may stand in their place: singular only.
_RUSSIAN = (
    ("ия", ("ия", "ии", "ию", "ией")),
    ("ие", ("ие", "ия", "ию", "ием", "ии")),
    ("ая", ("ая", "ой", "ую")),
    ("яя", ("яя", "ей", "юю")),
    ("ое", ("ое", "ого", "ому", "ым", "ом")),
    ("ый", ("ый", "ого", "ому", "ым", "ом")),
    (
        "ий",
        ("ий", "ия", "ию", "ием", "ии", "ого", "ому", "им", "ом", "его", "ему", "ем"),
    ),
    ("й", ("й", "я", "ю", "ем", "е")),
    ("а", ("а", "ы", "и", "е", "у", "ой")),
    ("я", ("я", "и", "е", "ю", "ей")),
    ("ь", ("ь", "я", "ю", "ем", "е", "и", "ью")),
)
_CONSONANT = re.compile(r"[бвгджзклмнпрстфхцчшщ]$", re.IGNORECASE)
_CASES = ("", "а", "у", "ом", "ем", "е")
_CYRILLIC = re.compile(r"[а-яА-ЯёЁ-]+")
_ARABIC = re.compile(r"[\u0621-\u064a ]+")
_LEAST_STEM = 3
_LEAST_ARABIC = 4


def inflected_pattern(gold: str, language: str) -> str:
    """Return a regular expression for the inflected forms of ``gold``, ``""`` where there is no safe one.

    Russian: the cases of the singular by the ending of each word, so that Niger is not found in Nigeria.
    Arabic: "and", "in", "for" and "as", which are written together with the word.
    """
    if language == "ru":
        words = gold.split()
        if not words or not all(_CYRILLIC.fullmatch(word) for word in words):
            return ""
        forms = [_russian(word) for word in words]
        return rf"(?<!\w){' '.join(forms)}(?!\w)" if all(forms) else ""
    if language == "ar" and _ARABIC.fullmatch(gold) and len(gold) >= _LEAST_ARABIC:
        joined = f"|لل{re.escape(gold[2:])}" if gold.startswith("ال") else ""
        return rf"(?<!\w)(?:[وبلكف]{re.escape(gold)}{joined})(?!\w)"
    return ""


def _russian(word: str) -> str:
    for ending, forms in _RUSSIAN:
        if word.lower().endswith(ending):
            stem = word[: -len(ending)]
            return (
                f"{re.escape(stem)}(?:{'|'.join(forms)})"
                if len(stem) >= _LEAST_STEM
                else ""
            )
    if _CONSONANT.search(word) and len(word) >= _LEAST_STEM:
        return f"{re.escape(word)}(?:{'|'.join(_CASES)})"
    return re.escape(word)


_SENTENCE_START = re.compile(r"(?:^|[.!?:。！？।]\s*)\W*$")
_TELLING = ("new", "north", "south", "city")
# Languages whose "not" stands behind what it denies.
_POSTPOSING = ("ja", "hi")
_DENIED_LAST = re.compile(
    r"[,;、]\s*(?:and\s+|but\s+)*not\s+(?!only\b)[^,.;:!?。।\n]{1,60}(?=[\s.!?。।]*$)"
)
_DENIED_BEFORE = re.compile(
    r"[,;、.!?。।]\s*(?!it\b|that\b|this\b|それ|これ)[^,.;:!?。।\n]{1,60}\snot(?: but)?(?=[\s.!?。।]*$)"
)
_DASH = re.compile(r"\s+[—–]\s+(?=(?:это|не)\b)")
_CAPITAL = re.compile(r"\s+[A-ZÀ-ÖØ-ÞА-Я]")
_APPOSITION = re.compile(r"\bthe ([^\W\d_a-zäöüß])(\w+)(?= [^\W\d_a-zäöüß])")
_WORD = rf"(?<![\w{SIGNS}'’-])(WORDS)(?![\w{SIGNS}'’-])"

# Without spaces an accepted answer is found in its own denial: so much is known of a language without rules.
_UNSPACED = {"th": {"ไม่ใช่": "not", "หรือ": "or"}}


@record
class Language:
    """One language: patterns over normalised, folded answers, and what its small words are in English.

    ``patterns`` are those for ``unsure``, ``denials``, ``lacks``, ``frames`` and ``hedges``. They,
    ``counting`` and ``asides`` are as in ``uninformative.yaml``. ``contrast`` is "but", ``label`` what stands
    before an answer, ``words`` the small words with their English ones, ``elided`` those in front of an
    apostrophe, ``unspaced`` those in a script without spaces; ``letters`` are written out before patterns are
    searched ("ä" as "ae").
    """

    code: str
    patterns: Mapping[str, Sequence[re.Pattern[str]]]
    asides: str = ""
    counting: re.Pattern[str] | None = None
    contrast: re.Pattern[str] | None = None
    label: re.Pattern[str] | None = None
    words: Mapping[str, str]
    word: re.Pattern[str] | None = None
    elided: Mapping[str, str]
    elision: re.Pattern[str] | None = None
    unspaced: Mapping[str, str]
    alternatives: re.Pattern[str] | None = None
    letters: Mapping[int, str]

    def folded(self, text: str) -> str:
        """Return a text without accents and with one spelling where a script has several."""
        return normalise_letters(text.translate(self.letters))

    def without_label(self, answer: str) -> str:
        """Return an answer without what the language calls one ("Antwort:")."""
        return self.label.sub("", answer) if self.label else answer


def is_english(tag: str) -> bool:
    """Return True if a tag, empty where nothing is stated, is English."""
    return base_language(tag) == DEFAULT_LANGUAGE


@lru_cache(maxsize=64)
def language_of(tag: str) -> Language:
    """Return the patterns and words of a language; only its tag for English or a language without rules."""
    code = base_language(tag)
    if code == DEFAULT_LANGUAGE or code not in LANGUAGES:
        unspaced = _UNSPACED.get(code, {})
        return Language(
            code=code, patterns={}, words={}, elided={}, unspaced=unspaced, letters={}
        )
    import yaml

    text = (
        resources.files("pytest_kbrel.judges")
        .joinpath(f"languages/{code}.yaml")
        .read_text("utf-8")
    )
    data: Any = yaml.safe_load(text)
    letters = str.maketrans(data.get("fold", {}))

    def folded(pattern: str) -> str:
        return normalise_letters(pattern.translate(letters))

    def any_of(words: Iterable[str], pattern: str) -> re.Pattern[str]:
        longest = sorted(words, key=len, reverse=True)
        return re.compile(
            pattern.replace("WORDS", "|".join(map(re.escape, longest))), re.IGNORECASE
        )

    words, unspaced = (
        {
            word: english
            for english, all_ in data.get(key, {}).items()
            for word in all_.split()
        }
        for key in ("words", "unspaced")
    )
    words = {_plain(word): english for word, english in words.items()}
    elided = data.get("elided", {})
    contrast = data["contrast"]
    return Language(
        code=code,
        patterns={
            key: [re.compile(folded(pattern)) for pattern in data.get(key, ())]
            for key in ("unsure", "denials", "lacks", "frames", "hedges")
        },
        asides=folded(data["asides"]),
        counting=re.compile(data["counting"], re.IGNORECASE),
        contrast=re.compile(f"({'|'.join(contrast)})")
        if unspaced
        else any_of(map(folded, contrast), _WORD),
        label=any_of(data["labels"], r"^[\s*]*(?:WORDS)[\s*]*[:：=][\s*]*"),
        words=words,
        word=any_of(words, _WORD) if words else None,
        elided=elided,
        elision=any_of(elided, r"(?<!\w)(WORDS)['’](?=\w)") if elided else None,
        unspaced=unspaced,
        alternatives=re.compile(data["alternatives"], re.IGNORECASE)
        if "alternatives" in data
        else None,
        letters=letters,
    )


def to_english(
    texts: Sequence[str], accepted: Sequence[str], tag: str
) -> tuple[list[str], list[str]]:
    """Return answer and question, and the accepted answers, with small words and dates put in English.

    An accepted answer that stands in one of ``texts`` without spaces around it or, in Russian, in another
    case, is put there as a word of its own as the facts file has it.
    """
    code = base_language(tag)
    separated = _separator(tuple(accepted), code)
    put = []
    for text in map(_plain, texts):
        # What begins with an accepted name may begin with a small word ("São Tomé") that is none.
        named = any(
            text.startswith(_plain(gold)) for gold in accepted if gold[:1].isupper()
        )
        # What is denied at the end goes: "Lima, not Cusco", in Hindi "Lima, Cusco not".
        english = _DENIED_LAST.sub("", _put(separated(text), tag, sentence=not named))
        put.append(_DENIED_BEFORE.sub("", english) if code in _POSTPOSING else english)
    return put, [_put(gold, tag, sentence=False) for gold in accepted]


# Golds come again with every answer, and the question with every attempt.
@lru_cache(maxsize=8192)
def _put(text: str, tag: str, sentence: bool) -> str:
    text, language = in_english_dates(_plain(text), tag), language_of(tag)
    if language.elision is not None:
        text = language.elision.sub(
            lambda match: f"{language.elided[match[1].lower()]} ", text
        )
    if language.word is None:
        return text
    # In Russian a dash stands for "is".
    text = language.word.sub(
        lambda match: _in_english(match, language, sentence), _DASH.sub(" ", text)
    )
    if language.code == "de":
        # All nouns have capitals: in "der Dichter Goethe" only the second one may be a name.
        text = _APPOSITION.sub(lambda match: f"the {match[1].lower()}{match[2]}", text)
    return text


def _plain(text: str) -> str:
    return fold_letters(unicodedata.normalize("NFKC", text.translate(APOSTROPHES)))


@lru_cache(maxsize=1024)
def _separator(accepted: tuple[str, ...], code: str) -> Callable[[str], str]:
    """Return a function that puts each accepted answer that stands in a text there as a word of its own."""
    language, golds = language_of(code), list(map(_plain, accepted))
    inflected = [
        (re.compile(pattern, re.IGNORECASE), f" {gold} ".replace("\\", r"\\"))
        for gold in golds
        if (pattern := inflected_pattern(gold, code))
    ]
    # One character is mostly part of another word.
    unspaced = [gold for gold in golds if is_unspaced(gold) and len(gold) > 1]
    caseless = {gold for gold in golds if has_no_case(gold) and len(gold) > 1}
    names = _countries(code) if caseless else frozenset()
    longer = {
        name for name in names if any(gold in name for gold in caseless)
    } - caseless
    parts = re.compile(unspaced_pattern([*unspaced, *longer, *language.unspaced]))

    def separated(match: re.Match[str]) -> str:
        name = match[0]
        return name if name in longer else f" {language.unspaced.get(name, name)} "

    def separate(text: str) -> str:
        # Where capitals do not tell a longer name, it becomes one word.
        for name in sorted(
            (name for name in longer if " " in name), key=len, reverse=True
        ):
            text = text.replace(name, name.replace(" ", ""))
        if language.alternatives is not None:
            text = language.alternatives.sub(" or ", text)
        for pattern, gold in inflected:
            text = pattern.sub(gold, text)
        return (
            parts.sub(separated, text) if parts.pattern and is_unspaced(text) else text
        )

    return separate


@lru_cache(maxsize=16)
def _countries(code: str) -> frozenset[str]:
    """Return the names of countries: Sudan is not meant where South Sudan is written without a space."""
    from babel import Locale, UnknownLocaleError

    try:
        return frozenset(map(_plain, Locale.parse(code).territories.values()))
    except (UnknownLocaleError, ValueError):
        return frozenset()


def _in_english(match: re.Match[str], language: Language, sentence: bool) -> str:
    """Return the English for a small word, or the word where it is part of a name: "El Salvador", "IN".

    Where the text is no ``sentence``, its first word begins with a capital only where that is a name's.
    """
    word, text = match[0], match.string
    english = language.words[word.lower()]
    if len(word) > 1 and word.isupper() and word.lower() != word:
        return english if text.isupper() else word
    # German nouns have capitals, so that a capital tells no name there.
    if language.code == "de" or not word[0].isupper():
        return english
    # They tell names apart, and are names' first words: "Nueva Zelanda", "Южный Судан".
    if english in _TELLING:
        return english
    if not _SENTENCE_START.search(text, 0, match.start()) or not (
        sentence or match.start()
    ):
        return word
    return (
        word
        if english in ("the", "a") and _CAPITAL.match(text, match.end())
        else english
    )
