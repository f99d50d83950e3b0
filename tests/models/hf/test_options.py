"""Options of how a checkpoint computes: read strictly, told in the fingerprint, and never other numbers."""

from __future__ import annotations

import pytest

from pytest_kbrel.models.cache.store import digest_of
from pytest_kbrel.models.checkpoint.spec import (
    parse_spec,
)
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.records import Scored, ScoreRequest

SCORES = [
    ScoreRequest(prompt=f"The capital of {country} is", continuation=f" {city}")
    for country in ("Japan", "France")
    for city in ("Tokyo", "Paris", "Cairo, a very large city")
]


@pytest.fixture
def spec_of(checkpoint_of):
    def get(args):
        return parse_spec(str(checkpoint_of("llama")), args, device="cpu")

    return get


@pytest.mark.parametrize(
    ("args", "near"), [("attn_implementation=eager", 1e-5), ("dtype=bfloat16", 0.08)]
)
def test_options_are_told_and_give_the_same_answers(spec_of, model_of, args, near):
    plain, model = model_of("llama"), load(spec_of(args), threads=1)
    described = model.describe()
    assert args.removeprefix("attn_implementation=").removeprefix("dtype=") in (
        f"{described.derived} {described.dtype}"
    )
    # What an option may change is never taken for the same answer.
    assert digest_of(described) != digest_of(plain.describe())
    for one, other in zip(model.score(SCORES), plain.score(SCORES), strict=True):
        assert isinstance(one, Scored)
        assert one.probabilities == pytest.approx(other.probabilities, abs=near)
