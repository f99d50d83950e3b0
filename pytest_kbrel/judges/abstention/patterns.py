"""Abstention patterns: find where an answer says that the model does not know, and what else it states."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import count

from pytest_kbrel.judges.text.lexicon import word_set
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import record

_BLANKED = re.compile(r"quoted(\d{1,4})z")
_SENTENCE = re.compile(r"(?<=[.!?…؟۔])\s+|(?<=[。！？｡।])\s*|\n+")
_CLAUSE = re.compile(r"[,;:()\[\]]\s+|[，；：、،؛]\s*|\s[-–—]+\s|[—]|[()](?=\W|$)|\s(?=but\s)", re.IGNORECASE)
_CLAUSE_END = re.compile(r"[,:]\s+|[，：、،]\s*")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]|「[^」]*」|『[^』]*』")
_APOSTROPHES = str.maketrans(dict.fromkeys("´`ʼ′’‘", "'"))
_APART = re.compile(r"\s+(n't)\b", re.IGNORECASE)
_CONTRAST = re.compile(r"^\W*(?:but|however|though|still|nevertheless)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_][\w']*")
_SMALL = word_set("a an and as at but by de for from in is la le of on or the to with")
_TITLE_WORDS = 5
_FRAMES = 4
# An adverbial in front of the sentence proper; a relative clause speaks of what stands before it.
_LEAD = 3
_RELATIVE = re.compile(
    r"(?:who|whom|whose|which|that|where|der|die|das|dessen|deren|qui|que|dont|che|cui|quem|котор\w+)\b"
)


@record
class AbstentionPatterns:
    """Compiled abstention patterns of ``uninformative.yaml``; all are matched against normalised texts."""

    patterns: tuple[re.Pattern[str], ...]
    denials: tuple[re.Pattern[str], ...]
    frames: tuple[re.Pattern[str], ...]
    hedges: tuple[re.Pattern[str], ...]
    asides: re.Pattern[str]


@record
class Abstention:
    """Whether an answer abstains, and what else it states.

    ``besides`` is ``""`` where that is nothing or a guess, and where no clause abstains.
    """

    abstains: bool
    besides: str


def read_abstention(answer: str, rules: AbstentionPatterns) -> Abstention:
    """Read an answer: the first sentence that is no mere frame tells whether it abstains.

    Quoted text and titles (five words and more with a capital each) are no abstention. One that goes on with
    "but" and a statement about something else than the model or the reader is none either.
    """
    answer = _APART.sub(r"\1", answer.translate(_APOSTROPHES))
    quoted = _QUOTED.findall(answer)
    if _WORD.search(_QUOTED.sub("", answer)):
        places = count()
        blanked = _QUOTED.sub(lambda _: f" quoted{next(places)}z ", answer)
    else:
        blanked = answer.translate(dict.fromkeys(map(ord, '"“”«»„')))
    abstention = _read(blanked, rules)
    besides = _BLANKED.sub(
        lambda name: quoted[int(name[1])] if int(name[1]) < len(quoted) else name[0], abstention.besides
    )
    return Abstention(abstains=abstention.abstains, besides=besides)


def _read(blanked: str, rules: AbstentionPatterns) -> Abstention:
    sentences = [part for part in _SENTENCE.split(blanked) if _WORD.search(part)]
    if not sentences:
        return Abstention(abstains=False, besides="")
    first = _first_that_says(sentences, rules)
    clauses = [clause for clause in _CLAUSE.split(sentences[first]) if clause.strip()]
    refusing = [_abstains(clause, rules, whole=False) for clause in clauses]
    if rules.denials and (index := _denial(clauses, rules)) is not None:
        refusing[index] = True
    if not any(refusing) and not _abstains(sentences[first], rules, whole=True):
        other = [
            part
            for part in sentences
            if not any(_abstains(c, rules, whole=False) for c in _CLAUSE.split(part))
        ]
        return Abstention(abstains=False, besides=" ".join(other) if len(other) < len(sentences) else "")
    if not any(refusing):
        refusing = [True] * len(clauses)
    rest = clauses[refusing.index(True) + 1 :]
    after = [clause for sentence in sentences[first + 1 :] for clause in _CLAUSE.split(sentence)]
    stated = _is_contrasted([*rest, *after], rules)
    # "I am not sure, Paris" and "Paris, I am not sure" are guesses.
    while rest and not _CONTRAST.match(rest[0]):
        rest = rest[1:]
    informative = [
        clause
        for clause in (*rest, *after)
        if _bare(clause, rules) and not _abstains(clause, rules, whole=False)
    ]
    besides = ". ".join(clause.strip(" .") for clause in informative)
    guessed = "?" in besides or _matches(rules.hedges, normalise(besides))
    return Abstention(abstains=not (stated and not guessed), besides="" if guessed else besides)


def strip_frames(answer: str, rules: AbstentionPatterns, folded: Callable[[str], str]) -> str:
    """Return an answer from the first clause on that is no mere frame; all of it where there is none.

    ``folded`` writes a clause as the patterns have it.
    """
    for _ in range(_FRAMES):
        end = _CLAUSE_END.search(answer)
        if end is None or not answer[end.end() :].strip() or not _WORD.search(answer[: end.start()]):
            return answer
        if _bare(folded(answer[: end.start()]), rules):
            return answer
        answer = answer[end.end() :]
    return answer


def _denial(clauses: Sequence[str], rules: AbstentionPatterns) -> int | None:
    """Return the place of the clause that denies what the question takes for granted.

    It is the first one that says something, or the next one behind a few words ("In 2032, ...").
    """
    informative = [index for index, clause in enumerate(clauses) if _bare(clause, rules)]
    for number, index in enumerate(informative[:2]):
        bare = _bare(clauses[index], rules)
        if number and (len(_bare(clauses[informative[0]], rules).split()) > _LEAD or _RELATIVE.match(bare)):
            return None
        if not _is_title(clauses[index]) and _matches(rules.denials, bare):
            return index
    return None


def _first_that_says(sentences: Sequence[str], rules: AbstentionPatterns) -> int:
    """Return the place of the first sentence that is neither a frame nor a question before another."""
    for index, sentence in enumerate(sentences):
        polite = sentence.endswith("?") and not _abstains(sentence, rules, whole=True)
        if _bare(sentence, rules) and not (polite and index + 1 < len(sentences)):
            return index
    return 0


def _bare(text: str, rules: AbstentionPatterns) -> str:
    """Return a text normalised and without frames ("Sorry, but", "as an AI")."""
    normal = normalise(text)
    # One frame stands behind another ("Sorry, but unfortunately"); nobody means more than a few.
    for _ in range(_FRAMES):
        before = normal
        for frame in rules.frames:
            normal = " ".join(frame.sub(" ", normal).split())
        if normal == before:
            break
    return normal


def _abstains(text: str, rules: AbstentionPatterns, *, whole: bool) -> bool:
    """Return True if a clause, or with ``whole`` a sentence, abstains; a sentence that is all frame does."""
    bare = _bare(text, rules)
    if not bare:
        # "So" and "However" say nothing and are titles.
        return whole and (" " in normalise(text) or "sorry" in normalise(text))
    if _is_title(text):
        return False
    return any(
        pattern.search(bare) or (whole and pattern.search(normalise(text)))
        for pattern in rules.patterns
        if whole or not pattern.pattern.endswith("$")
    )


def _is_title(text: str) -> bool:
    words = [word for word in _WORD.findall(text) if word.lower() not in _SMALL]
    return len(words) >= _TITLE_WORDS and all(word[0].isupper() for word in words) and not text.isupper()


def _is_contrasted(clauses: Sequence[str], rules: AbstentionPatterns) -> bool:
    """Return True if a statement of something else than the model or the reader follows with "but"."""
    contrast = False
    for clause in clauses:
        contrast = contrast or bool(_CONTRAST.match(clause))
        bare = _bare(clause, rules)
        if not bare:
            continue
        if _abstains(clause, rules, whole=False):
            # "But I can't tell" states nothing, and what follows it needs a "but" of its own.
            contrast = False
        elif contrast:
            return not rules.asides.search(bare)
    return False


def _matches(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)
