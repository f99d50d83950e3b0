"""How alike two short answers are: normalisation, token F1 and ROUGE-L.

Head-to-Tail (arXiv 2308.10168, section 2.2) cites both scores and states no normalisation; ours is SQuAD's
(lower case, no punctuation, no articles), made to work beyond ASCII.
"""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

_ARTICLES = frozenset({"a", "an", "the"})
_TO_SPACE = str.maketrans(string.punctuation, " " * len(string.punctuation))


def normalise(text: str) -> str:
    """Return ``text`` in NFKC, case folded, punctuation as space, without English articles, squeezed.

    An answer that consists of articles only keeps them ("The The" stays an answer). Normalising twice
    changes nothing.
    """
    # Most texts are ASCII, where the slow way below comes to the same.
    if text.isascii():
        spaced = text.lower().translate(_TO_SPACE)
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        spaced = "".join(" " if _is_punctuation(character) else character for character in folded)
    words = spaced.split()
    return " ".join([word for word in words if word not in _ARTICLES] or words)


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def token_f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    """Return the F1 (0..1) of two bags of tokens, each token counted as often as both have it (SQuAD).

    Two empty sequences agree (1); an empty and a non-empty one do not (0).
    """
    return _f_measure((Counter(answer) & Counter(gold)).total(), answer, gold)


def rouge_l(answer: Sequence[str], gold: Sequence[str]) -> float:
    """Return the ROUGE-L F measure (0..1): F1 of the longest common subsequence of two token sequences.

    Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004, with beta = 1. Empty sequences are
    treated as in :func:`token_f1`.
    """
    lengths = [0] * (len(gold) + 1)
    for token in answer:
        diagonal = 0
        for place, other in enumerate(gold, start=1):
            above = lengths[place]
            lengths[place] = diagonal + 1 if token == other else max(above, lengths[place - 1])
            diagonal = above
    return _f_measure(lengths[-1], answer, gold)


def _f_measure(common: int, answer: Sequence[str], gold: Sequence[str]) -> float:
    tokens = len(answer) + len(gold)
    return 2 * common / tokens if tokens else 1.0


def best_f1(answer: str, golds: Iterable[str]) -> float:
    """Return the highest :func:`token_f1` of ``answer`` with one of ``golds``, normalised; 0 without any.

    Golds of which normalisation leaves nothing do not count.
    """
    return _best(token_f1, answer, golds)


def best_rouge_l(answer: str, golds: Iterable[str]) -> float:
    """Return the highest :func:`rouge_l` of ``answer`` with one of ``golds``, normalised; 0 without any.

    Golds of which normalisation leaves nothing do not count.
    """
    return _best(rouge_l, answer, golds)


def _best(score: Callable[[Sequence[str], Sequence[str]], float], answer: str, golds: Iterable[str]) -> float:
    tokens = normalise(answer).split()
    spelt = (words for gold in golds if (words := normalise(gold).split()))
    return max((score(tokens, words) for words in spelt), default=0.0)
