"""Rules that say whether an answer is right, wrong or uninformative."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import Label, record

# Normalisation would make it "n", which is an answer.
_NOT_APPLICABLE = re.compile(r"\W*n\s*/\s*a\W*", re.IGNORECASE)
# Reliable KB, section 3.3 "unsure": the model says that it cannot answer or does not know.
_UNSURE = re.compile(
    r"^(unsure|not sure|no idea|not known)\b"
    # Titles and names begin like these, too ("Unknown Soldier"): they must be the whole answer.
    r"|^((it|answer|that|this) is |it s |there is |there s )?(unknown|none|not applicable|no answer)"
    r"( (of (above|these|those|them)|known|to me|at this time|available|given|found))*$"
    r"|\b(i am|i m|im|i am still|i m still) (not sure|unsure|uncertain|unable|just ai|ai)\b"
    r"|\b(i )?(do not|don t|dont|cannot|can not|can t|could not|couldn t|am unable to|m unable to)"
    r" (really )?(know|say|answer|tell|provide|determine|find|verify)\b"
    r"|\bi (have|ve) no (idea|clue)\b"
    r"|\bnot (enough|sufficient) (information|context|data)\b"
    r"|\b(no|insufficient) (information|data|records?)"
    r"($| (is|are|was|available|found|given|known|provided|about|on|of|for|regarding|to|that)\b)"
    r"|\bas ai\b"
)
_REPEATED_WORDS = 4


@record
class Judged:
    """What an answer is, and which rule says so: ``equal``, ``uninformative``, ``no rule``, ..."""

    label: Label
    rule: str


def judge(
    answer: str,
    accepted: Sequence[str],
    question: str = "",
    *,
    answer_type: str = "",
    extra: Sequence[tuple[str, str]] = (),
) -> Judged:
    """Judge one answer and name the rule that decided.

    ``extra`` are the user's own rules for uninformative answers: (kind, regular expression).
    """
    found = label(answer, accepted, question)
    rules: dict[Label, str] = {"correct": "equal", "uninformative": "uninformative", "wrong": "no rule"}
    return Judged(label=found, rule=rules[found])


def label(answer: str, accepted: Sequence[str], question: str = "") -> Label:
    """Judge one answer.

    Equality with any of ``accepted`` after normalisation comes first, then uninformative (Reliable KB,
    section 3.3: "unsure", "none", "repetition"), else wrong. The paper lists uninformative first; but an
    answer that equals the gold is no way of saying nothing, be it "None" or "Duran Duran Duran Duran". With
    nothing accepted (unseen knowledge) every informative answer is wrong.
    """
    said = normalise(answer)
    if said and not _NOT_APPLICABLE.fullmatch(answer) and any(said == normalise(gold) for gold in accepted):
        return "correct"
    return "uninformative" if is_uninformative(answer, question) else "wrong"


def is_uninformative(answer: str, question: str = "") -> bool:
    """Tell whether an answer says nothing: it is empty, unsure, the question again, or one thing repeated."""
    said = normalise(answer)
    if not said or _NOT_APPLICABLE.fullmatch(answer) or _UNSURE.search(said):
        return True
    if question and said == normalise(question):
        return True
    return _is_repetition(said.split())


def _is_repetition(words: list[str]) -> bool:
    if len(words) < _REPEATED_WORDS:
        return False
    longest = max(Counter(words).values())
    return longest >= _REPEATED_WORDS and longest / len(words) >= 0.5


_LETTER = re.compile(r"^\(?([A-J])(?:[).:]+\s*(.*)|\s*)$", re.DOTALL)


def chosen_option(reply: str, options: Sequence[str]) -> int | None:
    """Return the index of the option a reply picks, ``None`` when it cannot be told.

    A reply may be an option's text, its letter, or both (``B) Paris``). The text is tried first, since an
    option may itself be a letter. When letter and text disagree the reply picks nothing.
    """
    said = reply.strip()
    texts = [normalise(option) for option in options]
    by_text = _index(texts, normalise(said))
    if by_text is not None:
        return by_text
    match = _LETTER.match(said)
    if match is None:
        return None
    letter = ord(match.group(1)) - ord("A")
    if letter >= len(options):
        return None
    rest = normalise(match.group(2) or "")
    if rest and rest != texts[letter]:
        return None
    return letter


def _index(texts: list[str], said: str) -> int | None:
    return texts.index(said) if said and said in texts else None
