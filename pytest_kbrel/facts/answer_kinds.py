"""Kinds of short answers, by rules: a year, a date, a person, a place, the title of a work, ...

A file of questions brings no relations, so that nothing says which of its answers could stand for each other.
The kinds are finer than the answer types of a facts file: they say which answers look alike as options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from pytest_kbrel.records import AnswerType, Fact, Relation, record
from pytest_kbrel.resources import tsv_rows

Sort = Literal[
    "yes/no",
    "year",
    "date",
    "number",
    "quantity",
    "person",
    "place",
    "title",
    "name",
    "other",
    "unknown",
]
_Wanted = Literal["", "time", "number", "person", "place", "title"]


MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
TIME = re.compile(
    # A year alone; one with an era; a decade or century; a day with its month, in either order; ISO dates.
    r"(c(a|irca)?\.? ?)?(1[0-9]|20)\d\d"
    r"|\d{1,4} ?(bce?|ad|ce|b\.c\.|a\.d\.)"
    r"|(the )?(1[0-9]|20)\d0'?s|(the )?\d{1,2}(st|nd|rd|th) century( bce?)?"
    rf"|(\d{{1,2}}(st|nd|rd|th)? (of )?)?({MONTH})( \d{{1,2}}(st|nd|rd|th)?)?(,? \d{{1,4}})?"
    r"|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)
NUMBER = re.compile(
    r"[-+$€£]? ?\d[\d,. ]*( ?%| (percent|hundred|thousand|million|billion|trillion))?"
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_YEAR = re.compile(
    r"(?:in )?(?:c(?:a|irca)?\.? ?)?(?:(?:1\d|20)\d\d|\d{1,4} ?(?:bce?|ad|ce|b\.c\.|a\.d\.))"
)
_SOME_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_DATED = re.compile(
    rf"\b(?:{MONTH}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:1\d|20)?\d0'?s|century|centuries|[ap]\.?m)\b"
)
_BEHIND = re.compile(r"\s*\([^()]*\)\.?$")
_ABOUT = re.compile(
    r"(?:about|around|approximately|roughly|nearly|almost|over|up to|more than|at least|~)\s*"
)
_SIGNS = re.compile(r"[$€£¥₹%°]")
# A quantity is a number with few words behind it.
_LONGEST_QUANTITY = 6
_SETS = {name: words.split() for name, words in tsv_rows("facts/answer_kinds.tsv")}
_NUMERALS, _YES_NO, _PLACES, _QUESTIONS = (
    frozenset(_SETS[name]) for name in ("numerals", "yes-no", "places", "questions")
)
# Words behind "how" where a number is asked for; words before which a phrase ends; and those of "what type
# of dog" and "the name of the song", where the noun comes behind.
_MANY, _ARTICLES, _VERBS, _ENDS, _CALLED = (
    frozenset(_SETS[name]) for name in ("many", "articles", "verbs", "ends", "called")
)
# Names for one thing, and nouns by what they ask for.
_SAME = {
    word: name[5:]
    for name, words in _SETS.items()
    if name.startswith("same ")
    for word in words
}
_NOUNS: dict[str, _Wanted] = {
    word: kind for kind in get_args(_Wanted) for word in _SETS.get(f"noun {kind}", ())
}
# So many words at most stand between a question word and the noun that it belongs to.
_REACH = 4
_BY_TYPE: dict[str, _Wanted] = {
    "time": "time",
    "number": "number",
    "person": "person",
    "location": "place",
}
_SORTS: dict[_Wanted, Sort] = {
    "": "unknown",
    "time": "date",
    "number": "number",
    "person": "person",
    "place": "place",
    "title": "title",
}


@record
class Kind:
    """The kind of an answer.

    ``keyword`` is the word by which its question asks for it: the noun (``country`` of "In which country is
    Vale?") or what a person did (``sang``). It is empty where there is none or it cannot be told.
    """

    sort: Sort
    keyword: str = ""

    @property
    def closest(self) -> tuple[str, str]:
        """The key that is the same for answers which one question could ask for.

        "Rock" and "J-pop" are both genres, though only one of them looks like a name.
        """
        return (
            "other" if self.keyword and self.sort == "name" else self.sort
        ), self.keyword


def kind_of(
    answer: str | None, question: str, answer_type: str = "", *, cased: bool = True
) -> Kind:
    """Return the kind of an answer by its text and the question it answers.

    ``answer_type`` is that of the facts file, where it is known. Without an ``answer`` (a question that
    nobody can answer) the question alone tells. ``cased`` says that names in these data begin with capitals,
    so that an answer without any is none.
    """
    words = [word.casefold() for word in _WORD.findall(question)]
    keyword, wanted = _keyword(words)
    # A reader that goes by looks alone takes "1500" for a time, also behind "how many".
    if (answer_type, wanted) != ("time", "number"):
        wanted = _BY_TYPE.get(answer_type, wanted)
    text = " ".join((answer or "").split()).strip("\"“”'‘’.")
    if not text:
        return Kind(sort=_SORTS[wanted], keyword=keyword)
    if text.casefold() in _YES_NO and _QUESTIONS.isdisjoint(words):
        return Kind(sort="yes/no")
    sort = _by_looks(_BEHIND.sub("", text) or text, wanted)
    if (
        not sort
        and cased
        and wanted != "number"
        and text.isascii()
        and not any(map(str.isupper, text))
    ):
        sort = "other"
    return Kind(sort=sort or _by_question(text, words, wanted), keyword=keyword)


def answer_type_of(fact: Fact, relation: Relation | None) -> AnswerType:
    """Return the fact's own answer type, else its relation's, else what its object looks like.

    Only numbers and times can be told by their looks; all else is ``other``.
    """
    if fact.answer_type:
        return fact.answer_type
    if relation is not None and relation.answer_type:
        return relation.answer_type
    text = (fact.object or "").strip().casefold()
    if TIME.fullmatch(text):
        return "time"
    return "number" if NUMBER.fullmatch(text) else "other"


def _keyword(words: Sequence[str]) -> tuple[str, _Wanted]:
    """Return the word by which a question asks, empty where it is unclear, and what it asks for."""
    first, behind = "", words
    for index, word in enumerate(words):
        if word in _QUESTIONS:
            first, behind = word, words[index + 1 :]
            break
    noun, ended = _noun(behind)
    if first == "how":
        return "", "number" if behind and behind[0] in _MANY else ""
    if first in ("when", "where") or first.startswith("who"):
        wanted: _Wanted = (
            "time" if first == "when" else "place" if first == "where" else "person"
        )
        # Who sang it is a singer, who plays her an actor.
        done = (
            behind[0]
            if wanted == "person" and behind and behind[0] not in _VERBS
            else ""
        )
        return (noun if _NOUNS.get(noun) == wanted else done), wanted
    if noun not in _NOUNS:
        # "What is Ann Lee's occupation?"
        if len(words) > 1 and words[-2].endswith(("'s", "’s")):
            noun, ended = _SAME.get(words[-1], words[-1]), True
        # "What is the scientific name for ..." asks for anything.
        if not first or not ended or noun in _CALLED:
            noun = ""
    return noun, _NOUNS.get(noun, "")


def _noun(words: Iterable[str]) -> tuple[str, bool]:
    """Return the noun of the phrase that ``words`` begin with, and whether the phrase ends behind it.

    One of the nouns above goes before others: "film" of "film won the Oscar".
    """
    phrase: list[str] = []
    ended = False
    for word in words:
        if word in _ARTICLES or (word in _VERBS and not phrase):
            continue
        if word == "of" and phrase and phrase[-1] in _CALLED:
            continue
        ended = bool(phrase) and (word in _VERBS or word in _ENDS)
        if ended or len(phrase) == _REACH:
            break
        phrase.append(_SAME.get(word, word))
    if nouns := [word for word in phrase if word in _NOUNS]:
        return nouns[-1], True
    return (phrase[-1], ended) if phrase else ("", False)


def _by_looks(text: str, wanted: _Wanted) -> Sort | Literal[""]:
    """Return the kind of what is a time or a number by its text; else nothing."""
    folded = text.casefold()
    if wanted != "number":
        if _YEAR.fullmatch(folded):
            return "year"
        dated = _DATED.search(folded) and (
            wanted == "time" or (not wanted and any(map(str.isdigit, folded)))
        )
        if TIME.fullmatch(folded) or dated:
            return "date"
    if wanted == "time" and _SOME_YEAR.search(folded):
        return "year"
    bare = _ABOUT.sub("", folded, count=1) if _ABOUT.match(folded) else folded
    # "7 rings" is a song, and "50 Cent" a person.
    if wanted in ("title", "person") and not bare.isdecimal():
        return ""
    words = bare.split()
    if NUMBER.fullmatch(bare) or all(map(_is_number, re.split(r"[\s-]+", bare))):
        return "quantity" if _SIGNS.search(bare) or "percent" in bare else "number"
    plain = not any(word[:1].isupper() for word in text.split()[1:])
    # "20-year period", "8 bytes"
    if (
        words
        and _is_number(words[0].partition("-")[0])
        and plain
        and len(words) <= _LONGEST_QUANTITY
    ):
        return "quantity"
    return ""


def _is_number(word: str) -> bool:
    bare = _SIGNS.sub("", word).strip(".,")
    return bare in _NUMERALS or bare.replace(",", "").replace(".", "").isdecimal()


def _by_question(text: str, words: Sequence[str], wanted: _Wanted) -> Sort:
    if wanted:
        return "quantity" if wanted == "number" else _SORTS[wanted]
    named = [word.casefold() for word in _WORD.findall(text)]
    if named and (named[0] in _PLACES or named[-1] in _PLACES or _is_located(text)):
        return "place"
    parts = text.split()
    capitals = 2 <= len(parts) <= 3 and all(
        part[:1].isupper() and part.isalpha() for part in parts
    )
    return "person" if capitals and _QUESTIONS.isdisjoint(words) else "name"


def _is_located(text: str) -> bool:
    """Return True if a text names a place in another: "Dhaka, Bangladesh"."""
    parts = [part.strip() for part in text.split(",")]
    return len(parts) in (2, 3) and all(
        part[:1].isupper()
        and len(part.split()) <= 3
        and not any(map(str.isdigit, part))
        for part in parts
    )
