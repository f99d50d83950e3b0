"""Whether an answer is right, wrong or uninformative; ``docs/judging.md`` has an example of each rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pytest_kbrel.judges.comparing import compare
from pytest_kbrel.judges.options import chosen_option
from pytest_kbrel.judges.uninformative import is_not_applicable, is_uninformative, uninformative_kind
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import Label, record

__all__ = ["Judged", "chosen_option", "is_uninformative", "judge", "label", "uninformative_kind"]

_NEXT_QUESTION = re.compile(r"\n\s*(?:Q|Question)\s*\d*\s*[:.]", re.IGNORECASE)
_TAG = re.compile(r"</?\w{1,20}>")
_LABEL = re.compile(
    r"^[\s*]*(?:(?:the|my|final|short|correct)\s+)*(?:answer|response)[\s*]*[:=][\s*]*", re.IGNORECASE
)
# Golds come again with every answer; answers do not.
_normalised = lru_cache(maxsize=16384)(normalise)


@record
class Judged:
    """What an answer is, and which rule says so: ``equal``, ``date``, ``contained``, ``unsure``, ..."""

    label: Label
    rule: str


def label(answer: str, accepted: Sequence[str], question: str = "") -> Label:
    """Judge one answer; see :func:`judge`."""
    return judge(answer, accepted, question).label


def judge(
    answer: str,
    accepted: Sequence[str],
    question: str = "",
    *,
    answer_type: str = "",
    extra: Sequence[tuple[str, str]] = (),
) -> Judged:
    """Judge one answer and name the rule that decided.

    Equality with any of ``accepted`` after normalisation comes first, then uninformative (Reliable KB,
    section 3.3), then the rules for other ways of writing a gold (Head-to-Tail, section 2.2), else wrong. The
    paper lists uninformative first; but an answer that equals the gold is no way of saying nothing, be it
    "None" or "Duran Duran Duran Duran". With nothing accepted (unseen knowledge) every informative answer is
    wrong. Where a model goes on and asks itself the next question, only what comes before counts.
    ``answer_type`` says what is asked for where it is known; else the question's words tell. ``extra``
    are the user's own rules for uninformative answers: (kind, regular expression).
    """
    answer = _answer_proper(answer)
    said = normalise(answer)
    if said and not is_not_applicable(answer) and any(said == _normalised(gold) for gold in accepted):
        return Judged(label="correct", rule="equal")
    kind = uninformative_kind(answer, question, extra)
    if kind:
        return Judged(label="uninformative", rule=kind)
    if not accepted:
        return Judged(label="wrong", rule="no rule")
    rule, right = compare(answer, accepted, question, answer_type)
    return Judged(label="correct" if right else "wrong", rule=rule)


def _answer_proper(answer: str) -> str:
    """Return an answer without the frame a model puts around it: "Answer:", tags, the next question."""
    following = _NEXT_QUESTION.search(answer)
    if following and answer[: following.start()].strip():
        answer = answer[: following.start()]
    if "<" in answer:
        answer = _TAG.sub(" ", answer)
    return _LABEL.sub("", answer, count=1)
