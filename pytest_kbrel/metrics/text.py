"""Similarity of short texts: normalisation, exact match, token F1, ROUGE-L, TF-IDF and cosine.

Head-to-Tail (arXiv 2308.10168, section 2.2) cites the scores and states no normalisation. Exact match and F1
have that of SQuAD's evaluation script (Rajpurkar et al. 2016), ROUGE-L the words of the package rouge_score
without its stemmer; both are made to work beyond ASCII. ``normalise`` is what the judges compare by.
"""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from pytest_kbrel.metrics.base import Array, ratio

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
        spaced = "".join(
            " " if _is_punctuation(character) else character
            for character in _folded(text)
        )
    return " ".join(_without_articles(spaced.split()))


def squad_tokens(text: str) -> list[str]:
    """Return the tokens that SQuAD's script compares: lower case, punctuation deleted, no English articles.

    "It's a U.S.-made car" has the tokens its, usmade, car. What is punctuation in Unicode counts as well, and
    a text of articles only keeps them.
    """
    return _without_articles(
        "".join(
            character for character in _folded(text) if not _is_punctuation(character)
        ).split()
    )


def rouge_tokens(text: str) -> list[str]:
    """Return the tokens of rouge_score without its stemmer: runs of letters and digits in lower case."""
    # Vowel signs are marks and no letters in Unicode.
    return "".join(
        of if of.isalnum() or unicodedata.category(of)[0] == "M" else " "
        for of in _folded(text)
    ).split()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _without_articles(words: list[str]) -> list[str]:
    return [word for word in words if word not in _ARTICLES] or words


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character)[0] == "P"


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
        for column, other in enumerate(gold, start=1):
            above = lengths[column]
            lengths[column] = (
                diagonal + 1 if token == other else max(above, lengths[column - 1])
            )
            diagonal = above
    return _f_measure(lengths[-1], answer, gold)


def _f_measure(common: int, answer: Sequence[str], gold: Sequence[str]) -> float:
    tokens = len(answer) + len(gold)
    return 2 * common / tokens if tokens else 1.0


def exact_match(answer: str, golds: Iterable[str]) -> bool:
    """Return True if ``answer`` has the :func:`squad_tokens` of one of ``golds``, and any at all."""
    tokens = squad_tokens(answer)
    return bool(tokens) and any(tokens == squad_tokens(gold) for gold in golds)


def best_f1(answer: str, golds: Iterable[str]) -> float:
    """Return the highest :func:`token_f1` of the whole ``answer`` with one of ``golds``; 0 without any.

    The tokens are those of :func:`squad_tokens`; golds without any do not count.
    """
    return _best(token_f1, squad_tokens, answer, golds)


def best_rouge_l(answer: str, golds: Iterable[str]) -> float:
    """Return the highest :func:`rouge_l` of the whole ``answer`` with one of ``golds``; 0 without any.

    The tokens are those of :func:`rouge_tokens`; golds without any do not count.
    """
    return _best(rouge_l, rouge_tokens, answer, golds)


def _best(
    score: Callable[[Sequence[str], Sequence[str]], float],
    tokens_of: Callable[[str], list[str]],
    answer: str,
    golds: Iterable[str],
) -> float:
    tokens = tokens_of(answer)
    spelt = (words for gold in golds if (words := tokens_of(gold)))
    return max((score(tokens, words) for words in spelt), default=0.0)


def tfidf_cosine(queries: Sequence[str], documents: Sequence[str]) -> Array:
    """Return the cosine similarity (0..1) of every query with every document, shape (queries, documents).

    A word weighs its count times ln((1 + n) / (1 + df)) + 1, with df of the n documents that have it; words
    of a query that no document has are left out. So a query's similarities depend on no other query. Words
    are those of :func:`~pytest_kbrel.metrics.text.normalise`.
    """
    from scipy import sparse

    split = [
        [normalise(text).split() for text in texts] for texts in (documents, queries)
    ]
    column = {word: at for at, word in enumerate(sorted({*chain(*split[0])}))}
    counts = []
    for texts in split:
        places = [
            (row, column[word])
            for row, words in enumerate(texts)
            for word in words
            if word in column
        ]
        at = np.array(places, dtype=int).reshape(-1, 2).T
        shape = len(texts), len(column)
        counts.append(sparse.csr_array((np.ones(len(places)), at), shape))
    frequencies = (counts[0] > 0).sum(axis=0)
    weights = np.log((1 + len(documents)) / (1 + frequencies)) + 1
    # Products of sparse rows depend on no other row.
    known, asked = (count.multiply(weights).tocsr() for count in counts)
    norms = (np.sqrt(of.multiply(of).sum(axis=1)) for of in (asked, known))
    return _over((asked @ known.T).toarray(), *norms)


def cosine(queries: Array, documents: Array) -> Array:
    """Return the cosine similarity (-1..1) of vectors, (q, d) and (n, d) to (q, n); 0 with a zero vector."""
    norms = (np.linalg.norm(of, axis=1) for of in (queries, documents))
    return _over(queries @ documents.T, *norms)


def _over(products: Array, *norms: npt.ArrayLike) -> Array:
    return np.nan_to_num(ratio(products, np.multiply.outer(*norms)))
