from __future__ import annotations

import numpy as np
import pytest

from pytest_kbrel.metrics.base import difference, mean, quotient, ratio
from tests.metrics import value_of


def test_a_ratio_is_that_of_each_pair_and_undefined_over_nothing() -> None:
    halves, wholes = np.array([1.0, 3.0, 0.0]), np.array([2.0, 0.0, 0.0])
    assert ratio(halves, wholes) == pytest.approx(
        np.array([0.5, np.nan, np.nan]), nan_ok=True
    )
    assert ratio(np.array(1.0), np.array([2.0, 4.0])).tolist() == [0.5, 0.25]
    assert ratio(np.array([[2.0, 4.0]]), np.array([[2.0], [4.0]])).tolist() == [
        [1.0, 2.0],
        [0.5, 1.0],
    ]


def test_a_metric_of_columns_by_hand() -> None:
    rows = [[1.0, 0.5], [0.0, 1.0], [1.0, 0.0], [1.0, 0.5]]
    assert value_of(mean("m", "a", better="higher"), [row[:1] for row in rows]) == 3 / 4
    assert value_of(quotient("q", "a", "b", better="higher"), rows) == 3 / 2
    assert value_of(difference("d", "a", "b", better="higher"), rows) == (3 - 2) / 4
    assert value_of(
        difference("d", "a", "b", 5, better="higher"), rows
    ) == pytest.approx((3 - 2) / 4 / 5)


def test_without_facts_a_metric_is_undefined() -> None:
    for metric in (
        mean("m", "a", better="lower"),
        quotient("q", "a", "b", better="lower"),
        difference("d", "a", "b", better="higher"),
    ):
        assert np.isnan(value_of(metric, [])), metric.name
