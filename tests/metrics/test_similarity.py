from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.metrics.text import cosine, tfidf_cosine

DOCUMENTS = ("red house", "red red car", "blue bird")


def test_by_hand() -> None:
    # n = 3: "red" is in two documents, all other words in one.
    red, rare = math.log(4 / 3) + 1, math.log(4 / 2) + 1
    house = math.hypot(red, rare)
    car = math.hypot(2 * red, rare)
    result = tfidf_cosine(["Red house!", "a red sky", "green"], DOCUMENTS)
    expected = [
        [1.0, (red * 2 * red + 0) / (house * car), 0.0],
        [red / house, 2 * red / car, 0.0],
        [0, 0, 0],
    ]
    assert result == pytest.approx(np.array(expected))


def test_a_query_is_compared_with_the_documents_alone() -> None:
    many = tfidf_cosine(["red house", "blue car", "bird"], DOCUMENTS)
    assert (tfidf_cosine(["blue car"], DOCUMENTS)[0] == many[1]).all()


def test_cosine_of_vectors() -> None:
    result = cosine(
        np.array([[3.0, 4.0], [0.0, 0.0]]),
        np.array([[4.0, 3.0], [-6.0, -8.0], [0.0, 0.0]]),
    )
    assert result == pytest.approx(np.array([[24 / 25, -1.0, 0.0], [0.0, 0.0, 0.0]]))
