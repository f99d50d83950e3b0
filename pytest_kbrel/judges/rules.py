"""Rules that say whether an answer is right, wrong or uninformative."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import Label

# Reliable KB, section 3.3 "unsure": the model says that it cannot answer or does not know.
_UNSURE = re.compile(
    r"^(unsure|unknown|not sure|no idea|not known|n a|none)\b"
    r"|\b(i am|i m|im|i am still|i m still) (not sure|unsure|uncertain|unable|just ai|ai)\b"
    r"|\b(i )?(do not|don t|dont|cannot|can not|can t|could not|couldn t|am unable to|m unable to)"
    r" (really )?(know|say|answer|tell|provide|determine|find|verify)\b"
    r"|\bnot (enough|sufficient) (information|context|data)\b"
    r"|\b(no|insufficient) (information|data|record|records) (is |are )?(available|found|given)?\b"
    r"|\bas ai\b"
)
_REPEATED_WORDS = 4


def label(answer: str, accepted: Sequence[str], question: str = "") -> Label:
    """Judge one answer.

    Uninformative comes first (Reliable KB, section 3.3: "unsure", "none", "repetition"), then equality with
    any of ``accepted`` after normalisation, else wrong. With nothing accepted (unseen knowledge) every
    informative answer is wrong.
    """
    if is_uninformative(answer, question):
        return "uninformative"
    said = normalise(answer)
    return "correct" if any(said == normalise(gold) for gold in accepted) else "wrong"


def is_uninformative(answer: str, question: str = "") -> bool:
    """Tell whether an answer says nothing: it is empty, unsure, the question again, or one thing repeated."""
    said = normalise(answer)
    if not said or _UNSURE.search(said):
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
