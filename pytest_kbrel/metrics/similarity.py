"""How much questions have in common by their words: TF-IDF and its cosine, nothing to download."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from pytest_kbrel.metrics.base import Array
from pytest_kbrel.metrics.text import normalise


def tfidf_cosine(queries: Sequence[str], documents: Sequence[str]) -> Array:
    """Return the cosine similarity (0..1) of every query with every document, shape (queries, documents).

    A word weighs its count times ln((1 + n) / (1 + df)) + 1, with df of the n documents that have it; words
    of a query that no document has are left out. So a query's similarities depend on no other query. Words
    are those of :func:`~pytest_kbrel.metrics.text.normalise`.
    """
    counts = [Counter(normalise(document).split()) for document in documents]
    found = Counter(word for count in counts for word in count)
    weight = {word: math.log((1 + len(documents)) / (1 + df)) + 1 for word, df in found.items()}
    places: dict[str, list[int]] = {word: [] for word in found}
    shares: dict[str, list[float]] = {word: [] for word in found}
    for place, count in enumerate(counts):
        norm = _norm(count, weight)
        for word, times in count.items():
            places[word].append(place)
            shares[word].append(times * weight[word] / norm)
    index = {word: (np.array(places[word]), np.array(shares[word])) for word in found}
    similar = np.zeros((len(queries), len(documents)))
    for row, query in zip(similar, queries, strict=True):
        count = Counter(word for word in normalise(query).split() if word in weight)
        # Sums of floats depend on their order.
        for word in sorted(count):
            where, share = index[word]
            row[where] += count[word] * weight[word] / _norm(count, weight) * share
    return similar


def cosine(queries: Array, documents: Array) -> Array:
    """Return the cosine similarity (-1..1) of vectors, (q, d) and (n, d) to (q, n); 0 with a zero vector."""
    return _unit(queries) @ _unit(documents).T


def _unit(vectors: Array) -> Array:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: Array = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return units


def _norm(count: Counter[str], weight: dict[str, float]) -> float:
    return math.sqrt(sum((count[word] * weight[word]) ** 2 for word in sorted(count)))
