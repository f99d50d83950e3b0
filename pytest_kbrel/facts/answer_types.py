"""Of which sort a fact's answer is: a number, a person, a time, a location or something else."""

from __future__ import annotations

import re

from pytest_kbrel.records import AnswerType, Fact, Relation

MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
TIME = re.compile(
    # A year alone; one with an era; a decade or century; a day with its month, in either order; ISO dates.
    r"(c(a|irca)?\.? ?)?(1[0-9]|20)\d\d"
    r"|\d{1,4} ?(bce?|ad|ce|b\.c\.|a\.d\.)"
    r"|(the )?(1[0-9]|20)\d0'?s|(the )?\d{1,2}(st|nd|rd|th) century( bce?)?"
    rf"|(\d{{1,2}}(st|nd|rd|th)? (of )?)?({MONTH})( \d{{1,2}}(st|nd|rd|th)?)?(,? \d{{1,4}})?"
    r"|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
)
NUMBER = re.compile(r"[-+$€£]? ?\d[\d,. ]*( ?%| (percent|hundred|thousand|million|billion|trillion))?")


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
