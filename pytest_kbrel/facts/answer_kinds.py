"""Kinds of short answers, by rules: a year, a date, a person, a place, the title of a work, ...

A file of questions brings no relations, so that nothing says which of its answers could stand for each other.
The kinds are finer than the answer types of a facts file: they say which answers look alike as options. The
rules are data, in ``answer_kinds.tsv``.
"""

from __future__ import annotations

import re

from pytest_kbrel.records import AnswerType, Fact, Relation, record
from pytest_kbrel.resources import tsv_rows

_SETS = {}
# Names for one thing, and nouns and question words by what they ask for.
_SAME: dict[str, str] = {}
_WANTED: dict[str, str] = {}
_LOOKS = []


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\{([a-z]+)\}", lambda name: _SETS[name[1]], text))


for _kind, _name, _text in tsv_rows("facts/answer_kinds.tsv"):
    if _kind == "set":
        _SETS[_name] = f"(?:{_pattern(_text).pattern})"
    elif _kind in ("same", "noun"):
        table = _SAME if _kind == "same" else _WANTED
        table |= dict.fromkeys(_text.split(), _name)
    else:
        _LOOKS.append((_kind, _name, _pattern(_text)))
_TIME, _NUMBER = _pattern("{time}"), _pattern("{figure}")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_BEHIND = re.compile(r"(?<=.)\s*\([^()]*\)\.?$")
_ARTICLE = _pattern(r"(?<!\S){articles} ")
_FIRST = _pattern(r"(?<!\S)({questions})(?!\S) ?")
# Up to four words, of which the last is the noun where the phrase ends behind it.
_PHRASE = _pattern(
    r"(?:{verbs} )*(?:{called} of )?((?:(?!(?:{verbs}|{ends})(?!\S))\S+ ?){1,4})((?:{verbs}|{ends})(?!\S))?"
)


@record
class Kind:
    """The kind of an answer: its ``sort``, one of those in the table.

    ``keyword`` is the word by which its question asks for it: the noun (``country`` of "In which country is
    Vale?") or what a person did (``sang``). It is empty where there is none or it cannot be told.
    """

    sort: str
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
    keyword, wanted = _keyword(question)
    # A reader that goes by looks alone takes "1500" for a time, also behind "how many".
    if answer_type not in ("", "other") and (answer_type, wanted) != ("time", "number"):
        wanted = "place" if answer_type == "location" else answer_type
    text = _BEHIND.sub("", " ".join((answer or "").split()).strip("\"“”'‘’."))
    sort = next(
        sort
        for of, sort, looks in _LOOKS
        if wanted in of.split() and (cased or sort != "other") and looks.fullmatch(text)
    )
    return Kind(sort=sort, keyword="" if sort == "yes/no" else keyword)


def answer_type_of(fact: Fact, relation: Relation | None) -> AnswerType:
    """Return the fact's own answer type, else its relation's, else what its object looks like.

    Only numbers and times can be told by their looks; all else is ``other``.
    """
    if fact.answer_type:
        return fact.answer_type
    if relation is not None and relation.answer_type:
        return relation.answer_type
    text = (fact.object or "").strip().casefold()
    if _TIME.fullmatch(text):
        return "time"
    return "number" if _NUMBER.fullmatch(text) else "other"


def _keyword(question: str) -> tuple[str, str]:
    """Return the word by which a question asks, empty where it is unclear, and what it asks for."""
    text = _ARTICLE.sub("", " ".join(_WORD.findall(question.casefold())))
    first = _FIRST.search(text)
    word = first[1] if first else ""
    if word.startswith("how"):
        # "How many", and other words of number.
        return "", "number" if " " in word else "-"
    phrase = _PHRASE.match(text, first.end() if first else 0)
    words = phrase[1].split() if phrase else []
    nouns = [_SAME.get(noun, noun) for noun in words]
    known = [noun for noun in nouns if noun in _WANTED][-1:]
    if word in _WANTED:
        wanted = _WANTED[word]
        # Who sang it is a singer, who plays her an actor.
        is_done = wanted == "person" and phrase and phrase.start(1) == phrase.start()
        done = words[0] if is_done else ""
        return (known[0] if [wanted] == [*map(_WANTED.get, known)] else done), wanted
    if known:
        return known[0], _WANTED[known[0]]
    # "What is Ann Lee's occupation?"
    if owned := re.search(r"['’]s (\S+)$", text):
        nouns = [_SAME.get(owned[1], owned[1])]
    elif phrase and not phrase[2]:
        nouns = []
    # "What is the scientific name for ..." asks for anything.
    noun = nouns[-1] if nouns and first else ""
    noun = "" if re.fullmatch(_SETS["called"], noun) else noun
    return noun, _WANTED.get(noun, "-" if first else "none")
