from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.catalogue.probes import RELIABILITY
from pytest_kbrel.metrics import reliability
from tests.metrics import value_of


def test_a_model_that_says_unsure_to_all_unseen_is_fully_reliable_there() -> None:
    metrics = {of.name: of for of in reliability.reliability_metrics("unseen")}
    assert value_of(metrics["iur"], [[0.0], [0.0]]) == 1.0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("known", "known"),
        ("unseen", "unseen"),
        ("unseen-zero-shot", "unseen"),
        ("known-zero-shot", "known"),
        ("unseen-number-four-shot", "unseen"),
        ("known-nq-unseen-zero-shot", "known"),
        ("nq", "known"),
    ],
)
def test_the_kind_of_a_slice(name: str, kind: str) -> None:
    assert RELIABILITY.kind(name) == kind


@pytest.mark.parametrize(
    ("known", "unseen", "both"),
    [
        (0.2, 0.4, 0.3),
        (0.2, math.nan, 0.2),
        (math.nan, 0.4, 0.4),
        (math.nan, math.nan, math.nan),
    ],
)
def test_the_overall_consistency_of_wrong_answers_is_undefined_only_where_there_are_none(
    known: float, unseen: float, both: float
) -> None:
    result = float(reliability.c_wrong(np.array(known), np.array(unseen)))
    assert result == pytest.approx(both, nan_ok=True)
