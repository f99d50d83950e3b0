"""Architectures whose numbers depend on the rows they are fed in, each held against one sequence alone."""

from __future__ import annotations

import random
import sys

import pytest
import torch
import tqdm
import transformers as tf

from pytest_kbrel.models.base import in_order
from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.checkpoint.endings import Endings
from pytest_kbrel.models.hf.generator import Generator
from pytest_kbrel.models.hf.lm_head import head_is_last
from pytest_kbrel.models.hf.scorer import Scorer
from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.models.tokens import Pair, Prompt
from pytest_kbrel.records import GenerateRequest
from tests.models import tiny_checkpoints as tiny

SMALL = {**tiny._SMALL, "max_position_embeddings": 128}
ROPE = {"rope_theta": 10000.0, "original_max_position_embeddings": 32}


def gpt_neo():
    kinds = [[["global", "local"], 1]]
    return tf.GPTNeoConfig(
        vocab_size=400,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        window_size=64,
        attention_types=kinds,
        max_position_embeddings=256,
        bos_token_id=1,
        eos_token_id=2,
    )


def mpt():
    return tf.MptConfig(
        vocab_size=400, d_model=32, n_heads=4, n_layers=2, max_seq_len=256
    )


def dynamic():
    # The length that the checkpoint was made for; more is asked of it.
    small = {**SMALL, "max_position_embeddings": 32}
    return tf.LlamaConfig(
        **small,
        rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4},
    )


def longrope():
    factors = {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
    return tf.Phi3Config(
        **SMALL,
        original_max_position_embeddings=32,
        rope_parameters={"rope_type": "longrope", **factors, **ROPE},
    )


def built(config, scale=0.3):
    torch.manual_seed(0)
    with quiet():
        model = tf.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                parameter.copy_(torch.randn_like(parameter) * scale)
    model.generation_config = tf.GenerationConfig(pad_token_id=0, eos_token_id=2)
    return model


def tokens(draw, count):
    return tuple(draw.randrange(4, 390) for _ in range(count))


def likeliest(model, context):
    with torch.inference_mode():
        return Pair(
            prompt=context,
            context=context,
            targets=(int(model(torch.tensor([context])).logits[0, -1].argmax()),),
        )


def alone(model, pair):
    with torch.inference_mode():
        logits = model(torch.tensor([pair.context]), use_cache=False).logits
    return logits[0, -1].softmax(-1)[pair.targets[0]].item()


@pytest.mark.parametrize("shared", [5, 20, 40, 52])
def test_a_window_that_counts_places_in_the_row(shared):
    """GPT-Neo: no sequence is as long as its window, but a packed row is."""
    model, draw = built(gpt_neo()), random.Random(1)
    start = tokens(draw, shared)
    pairs = [likeliest(model, (*start, *tokens(draw, 6))) for _ in range(60)]
    result = in_order(Scorer(model, Batcher(4096), longest=256).ready(pairs))
    assert [one[0] for one in result] == pytest.approx(
        [alone(model, pair) for pair in pairs], abs=1e-4
    )


def test_texts_of_a_model_whose_window_counts_places(tmp_path):
    model, draw = built(gpt_neo()), random.Random(1)
    tiny.make_tokenizer(tmp_path)
    endings = Endings(tf.AutoTokenizer.from_pretrained(tmp_path), eos_ids=(2,))
    start = tokens(draw, 40)
    request = GenerateRequest(prompt="", max_new_tokens=5, stop=())
    prompts = [
        Prompt(ids=(*start, *tokens(draw, 6)), request=request) for _ in range(30)
    ]
    generator = Generator(model, endings, Batcher(4096), longest=256)
    texts = [one.token_ids for one in in_order(generator.ready(prompts))]
    assert generator.trouble == ""
    for prompt, result in zip(prompts, texts, strict=True):
        ids = list(prompt.ids)
        for token in result:
            with torch.inference_mode():
                assert int(model(torch.tensor([ids])).logits[0, -1].argmax()) == token
            ids.append(token)


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 4096])
def test_what_a_checkpoint_allows_does_not_depend_on_the_budget(budget):
    """MPT takes no positions; rows too short to branch would not show it."""
    model, draw = built(mpt()), random.Random(1)
    start = tokens(draw, 20)
    pairs = [likeliest(model, (*start, *tokens(draw, 1 + n % 4))) for n in range(20)]
    scorer = Scorer(model, Batcher(budget), longest=256)
    result = in_order(scorer.ready(pairs))
    assert scorer.sharing_mode == "prefix"
    assert [one[0] for one in result] == pytest.approx(
        [alone(model, pair) for pair in pairs], abs=1e-4
    )


@pytest.mark.parametrize("config", [dynamic, longrope])
@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("budget", [1, 1300])
def test_positions_that_turn_by_the_longest_text_so_far(config, shares, budget):
    model, draw = built(config(), scale=0.2), random.Random(1)
    pairs = [
        likeliest(built(config(), scale=0.2), tokens(draw, count))
        for count in (10, 20, 40, 60, 100)
    ]
    expected = [alone(built(config(), scale=0.2), pair) for pair in pairs]
    scorer = Scorer(model, Batcher(budget), longest=128)
    if not shares:
        scorer.sharing_mode = "plain"
    for order in ([0, 1, 2, 3, 4], [4, 2, 0], [3, 1]):
        result = in_order(scorer.ready([pairs[n] for n in order]))
        assert [one[0] for one in result] == pytest.approx(
            [expected[n] for n in order], abs=1e-4
        )


@pytest.mark.parametrize("size", [0.0, 0.02, 0.3])
def test_what_is_added_to_the_logits_is_not_lost(size):
    config = tf.MarianConfig(
        vocab_size=400,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
    )
    torch.manual_seed(0)
    with quiet():
        model = tf.AutoModelForSeq2SeqLM.from_config(config).eval()
    model.final_logits_bias.fill_(0).add_(torch.linspace(-size, size, 400))
    assert head_is_last(model) == (size == 0)


@pytest.mark.parametrize("budget", [1, 60, 4096])
def test_numbers_that_are_none_spoil_no_other_answer(budget):
    model, draw = built(tf.LlamaConfig(**SMALL), scale=0.25), random.Random(1)
    with torch.no_grad():
        model.model.embed_tokens.weight[399] = float("inf")
    start = tokens(draw, 20)
    contexts = [(*start, 399 if n == 3 else 7, *tokens(draw, 2)) for n in range(60)]
    pairs = [Pair(prompt=one, context=one, targets=tokens(draw, 2)) for one in contexts]
    result = in_order(Scorer(model, Batcher(budget), longest=128).ready(pairs))
    assert [
        n for n, values in enumerate(result) if any(value != value for value in values)
    ] == [3]


def test_bars_of_any_library_are_silenced_and_other_lines_are_kept(capsys):
    with quiet():
        print("first", file=sys.stderr)
        for _ in tqdm.tqdm(range(3)):
            pass
        with quiet():
            print("second", file=sys.stderr)
    assert capsys.readouterr().err == "first\nsecond\n"
