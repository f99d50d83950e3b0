"""Which way of sharing each architecture gets, and that every way gives the numbers of plain batches."""

from __future__ import annotations

import random

import pytest

from pytest_kbrel.models.base import in_order
from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.models.hf.scorer import Scorer, score_batch
from pytest_kbrel.models.hf.sharing import best_sharing_mode
from pytest_kbrel.models.tokens import Pair
from pytest_kbrel.records import Failed, ScoreRequest
from tests.models.tiny_checkpoints import ALL, CAUSAL, ENCODER_DECODER

EXPECTED = {
    **dict.fromkeys(CAUSAL, "packed"),
    "bloom": "prefix",
    "falcon-alibi": "prefix",
    "rwkv": "plain",
    "mamba": "plain",
    # Their encoder reads a prompt once.
    **dict.fromkeys(ENCODER_DECODER, "prefix"),
}


def pairs_of(seed=0, *, prefix=20, contexts=12, answers=3):
    draw = random.Random(seed)

    def tokens(most):
        return tuple(draw.randrange(4, 390) for _ in range(draw.randint(1, most)))

    start = tuple(draw.randrange(4, 390) for _ in range(prefix))
    result = []
    for _ in range(contexts):
        context = (*start, *tokens(8))
        result += [
            Pair(prompt=context, context=context, targets=tokens(5))
            for _ in range(answers)
        ]
    return result


@pytest.fixture(scope="module", params=ALL)
def kind(request):
    return request.param


@pytest.fixture
def scorer(kind, model_of):
    parts = model_of(kind).parts
    return Scorer(parts.model, Batcher(128), longest=parts.max_length)


def test_the_rung_is_the_highest_that_the_architecture_allows(kind, scorer):
    assert scorer.sharing_mode == EXPECTED[kind]


def test_sharing_gives_the_numbers_of_plain_batches(kind, model_of, scorer):
    model = model_of(kind).parts.model
    # The second lot lies within the sliding windows, the first beyond.
    for pairs in (pairs_of(), pairs_of(1, prefix=3)):
        expected = [score_batch(model, [pair])[0] for pair in pairs]
        for result, wanted in zip(in_order(scorer.ready(pairs)), expected, strict=True):
            assert result == pytest.approx(wanted, rel=1e-3)


def test_a_mask_that_is_not_obeyed_is_noticed(model_of):
    model = model_of("llama").parts.model
    plain = [score_batch(model, [pair])[0] for pair in pairs_of(3)]

    def right(pairs):
        return [score_batch(model, [pair])[0] for pair in pairs]

    def wrong(pairs):
        # As though every sequence saw one token of its neighbour.
        moved = [
            Pair(prompt=p.prompt, context=(9, *p.context), targets=p.targets)
            for p in pairs
        ]
        return right(moved)

    def closed(pairs):
        raise RuntimeError("no such argument")

    assert plain
    assert (
        best_sharing_mode(
            model, {"packed": right, "prefix": right, "plain": right}, 256
        )
        == "packed"
    )
    assert (
        best_sharing_mode(
            model, {"packed": wrong, "prefix": right, "plain": right}, 256
        )
        == "prefix"
    )
    assert (
        best_sharing_mode(
            model, {"packed": closed, "prefix": wrong, "plain": right}, 256
        )
        == "plain"
    )
    assert (
        best_sharing_mode(
            model, {"packed": right, "prefix": right, "plain": closed}, 256
        )
        == "plain"
    )


@pytest.mark.slow
def test_what_does_not_fit_into_memory_is_cut_and_answered(model_of, monkeypatch):
    from pytest_kbrel.models.hf import scorer as hf_scorer

    model = model_of("llama").parts.model
    scorer = Scorer(model, Batcher(4096), longest=256)
    assert scorer.sharing_mode == "packed"
    real, sizes = hf_scorer.score_rows, []

    def tight(model, before, prefix, rows, pairs, *, packed):
        size = sum(len(row.tokens) for row in rows)
        sizes.append(size)
        if size > 300:
            raise RuntimeError("CUDA out of memory")
        return real(model, before, prefix, rows, pairs, packed=packed)

    monkeypatch.setattr(hf_scorer, "score_rows", tight)
    pairs = pairs_of(contexts=120)
    result = in_order(scorer.ready(pairs))
    assert max(sizes) > 300 >= sizes[-1]
    for pair, answer in zip(pairs, result, strict=True):
        assert answer == pytest.approx(score_batch(model, [pair])[0], rel=1e-3)


def test_a_row_that_fails_is_answered_by_the_plain_way_and_told(model_of, monkeypatch):
    from pytest_kbrel.models.hf import scorer as hf_scorer

    model = HfModel(model_of("llama").parts)
    asked = [
        ScoreRequest(prompt="Oslo is in", continuation=f" {word}")
        for word in ("Norway", "Italy")
    ]
    assert model._scorer.sharing_mode == "packed"

    def broken(*_, **__):
        raise ValueError("a bug")

    monkeypatch.setattr(hf_scorer, "score_rows", broken)
    with pytest.warns(
        RuntimeWarning,
        match="plain ones answered: right, but slow \\(ValueError: a bug\\)",
    ):
        assert not any(isinstance(answer, Failed) for answer in model.score(asked))
    # Once is enough: no second warning, which would be an error here.
    assert not any(isinstance(answer, Failed) for answer in model.score(asked))
