"""Which way of sharing each architecture gets, and that every way gives the numbers of plain batches."""

from __future__ import annotations

import random
import re
from functools import partial

import pytest
import torch
import transformers

from pytest_kbrel.models.base import in_order
from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.hf import scorer as hf_scorer
from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.models.hf.scorer import Scorer, score_batch
from pytest_kbrel.models.hf.sharing import best_sharing_mode
from pytest_kbrel.models.tokens import Pair
from pytest_kbrel.records import Failed, ScoreRequest
from tests.models.hf.test_decode_loop import EXPECTED
from tests.models.tiny_checkpoints import ALL


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

    def mode(**functions):
        refused = []
        return best_sharing_mode(model, functions, 256, refused), refused

    assert mode(packed=right, prefix=right, plain=right) == ("packed", [])
    found, refused = mode(packed=wrong, prefix=right, plain=right)
    assert found == "prefix"
    assert re.fullmatch(r"packed: .+ nats from plain batches, allowed 0\.001", *refused)
    found, refused = mode(packed=closed, prefix=wrong, plain=right)
    assert (found, refused[0]) == ("plain", "packed: RuntimeError: no such argument")
    assert mode(packed=right, prefix=right, plain=closed)[0] == "plain"


def test_a_trial_without_memory_is_tried_again(model_of):
    model = model_of("llama").parts.model
    calls = []

    def tight(pairs):
        calls.append(pairs)
        if len(calls) < 3:
            raise RuntimeError("CUDA out of memory")
        return score_batch(model, pairs)

    functions = {"packed": tight, "plain": partial(score_batch, model)}
    assert best_sharing_mode(model, functions, 256, []) == "packed"


def in_bfloat16(kind, logit):
    """Return a random model whose greatest logit is about ``logit``."""
    torch.manual_seed(1)
    sizes = {
        "vocab_size": 2048,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 4,
    }
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2}
    transformers_of = {
        "llama": lambda: transformers.LlamaConfig(**sizes, **heads),
        "gemma3": lambda: transformers.Gemma3TextConfig(
            **sizes, **heads, head_dim=16, query_pre_attn_scalar=16
        ),
        "bloom": lambda: transformers.BloomConfig(
            vocab_size=2048, hidden_size=128, n_layer=4, n_head=8
        ),
        "bart": lambda: transformers.BartConfig(
            vocab_size=2048,
            d_model=128,
            encoder_layers=2,
            decoder_layers=2,
            encoder_ffn_dim=256,
            decoder_ffn_dim=256,
        ),
    }
    config = transformers_of[kind]()
    config.tie_word_embeddings = False
    seq2seq = config.is_encoder_decoder
    auto = "AutoModelForSeq2SeqLM" if seq2seq else "AutoModelForCausalLM"
    model = getattr(transformers, auto).from_config(config).eval()
    model.generation_config.pad_token_id = 0
    ids = torch.tensor([[5, 6, 7, 8]])
    decoder = {"decoder_input_ids": ids} if seq2seq else {}
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2)
        greatest = model(ids, **decoder).logits.abs().max()
        model.get_output_embeddings().weight.mul_(logit / greatest)
    return model.to(torch.bfloat16)


@pytest.mark.parametrize("logit", [5, 85])
@pytest.mark.parametrize("kind", ["llama", "gemma3", "bloom", "bart"])
def test_in_half_precision_rounding_does_not_decide(kind, logit, monkeypatch):
    model = in_bfloat16(kind, logit)
    scorer = Scorer(model, Batcher(4096), longest=None)
    expected = EXPECTED.get(kind, "packed")
    assert (scorer.sharing_mode, expected) == (expected, expected), scorer.refused
    if expected != "packed":
        return

    def masked_wrongly(model, rows, before, *, packed, inputs=hf_scorer.row_inputs):
        given = inputs(model, rows, before, packed=packed)
        if packed:
            # Every token sees all before it in the row.
            width, length = given["attention_mask"].shape[-2:]
            mask = torch.full((width, length), torch.finfo(model.dtype).min)
            mask = mask.triu(length - width + 1).to(model.dtype)
            given["attention_mask"] = mask.expand_as(given["attention_mask"])
        return given

    monkeypatch.setattr(hf_scorer, "row_inputs", masked_wrongly)
    again = Scorer(model, Batcher(4096), longest=None)
    assert again.sharing_mode == "prefix"
    assert again.refused[0].startswith("packed: ")


@pytest.mark.slow
def test_what_does_not_fit_into_memory_is_cut_and_answered(model_of, monkeypatch):
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
    pairs = pairs_of(contexts=40)
    result = in_order(scorer.ready(pairs))
    assert max(sizes) > 300 >= sizes[-1]
    for pair, answer in zip(pairs, result, strict=True):
        assert answer == pytest.approx(score_batch(model, [pair])[0], rel=1e-3)


def test_a_row_that_fails_is_answered_by_the_plain_way_and_told(model_of, monkeypatch):
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
