"""Texts continued in one loop are those of plain batches, whatever comes in, leaves, or does not fit."""

from __future__ import annotations

import random

import pytest
import torch

from pytest_kbrel.models.base import in_order
from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf import decode_loop
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.generator import Generator
from pytest_kbrel.models.hf.stopping import generate_batch
from pytest_kbrel.models.tokens import Prompt
from pytest_kbrel.records import Failed, Generated, GenerateRequest
from tests.models.tiny_checkpoints import ALL, CAUSAL, ENCODER_DECODER

EXPECTED = {
    **dict.fromkeys(CAUSAL, "packed"),
    # A mask of one's own is no place for their distances.
    "bloom": "prefix",
    "rwkv": "plain",
    "mamba": "plain",
    # Their encoder reads a prompt once.
    **dict.fromkeys(ENCODER_DECODER, "prefix"),
}


def prompts_of(seed=0, *, shared=9, count=24, most=7, steps=True):
    """Return prompts that share a beginning, some of them more: fact by fact, and frame by frame."""
    draw = random.Random(seed)

    def tokens(number):
        return tuple(draw.randrange(4, 390) for _ in range(number))

    start = tokens(shared)
    facts = [(*start, *tokens(1 + n % 4)) for n in range(4)]
    stops = ((), ("a", "e"), ("in",))
    return [
        Prompt(
            ids=(*draw.choice(facts), *tokens(draw.randint(1, 6))),
            request=GenerateRequest(
                prompt="",
                max_new_tokens=draw.randint(1, most),
                stop=stops[n % 3],
                steps=steps and n % 4 != 1,
                watch=tokens(2) if steps and n % 4 == 0 else (),
            ),
        )
        for n in range(count)
    ]


def generator_of(model, budget=4096):
    return Generator(
        model.parts.model,
        model._generator._endings,
        Batcher(budget),
        longest=model.parts.max_length,
    )


def alone(model, prompts):
    """Return what plain batches of one prompt each answer."""
    endings = model._generator._endings
    return [
        generate_batch(model.parts.model, [prompt], endings)[0] for prompt in prompts
    ]


def same_as_plain(model, prompts, answers, wanted=None):
    for expected, answer in zip(wanted or alone(model, prompts), answers, strict=True):
        assert isinstance(answer, Generated)
        assert (answer.token_ids, answer.text, answer.finish) == (
            expected.token_ids,
            expected.text,
            expected.finish,
        )
        assert [step.token for step in answer.steps] == [
            step.token for step in expected.steps
        ]
        for name in ("probability", "watched"):
            result, wanted = (
                [getattr(step, name) for step in a.steps] for a in (answer, expected)
            )
            assert [value is None for value in result] == [
                value is None for value in wanted
            ]
            assert [v or 0.0 for v in result] == pytest.approx(
                [v or 0.0 for v in wanted], abs=1e-4
            )
    return True


@pytest.fixture(scope="module", params=ALL)
def kind(request):
    return request.param


def test_the_way_is_the_highest_that_the_architecture_allows(kind, model_of):
    generator = generator_of(model_of(kind))
    assert generator.sharing_mode == EXPECTED[kind]


def test_texts_and_steps_are_those_of_plain_batches(kind, model_of):
    model = model_of(kind)
    # The second lot lies within the sliding windows, the first beyond.
    for prompts in (
        prompts_of(count=9),
        prompts_of(1, shared=2, most=3, count=9),
        prompts_of(3, shared=0, count=6),
    ):
        wanted = alone(model, prompts)
        for budget in (60, 4096):
            generator = generator_of(model, budget)
            assert same_as_plain(
                model, prompts, in_order(generator.ready(prompts)), wanted
            )
            assert not generator.trouble


@pytest.mark.slow
def test_batches_stay_within_their_budget_and_rows_within_what_the_model_takes(
    model_of, monkeypatch
):
    model = model_of("gpt2")
    sizes, real = [], decode_loop.rearranged_cache

    def noted(rows, slots, room, before, moves):
        sizes.append((rows, room))
        return real(rows, slots, room, before, moves)

    monkeypatch.setattr(decode_loop, "rearranged_cache", noted)
    prompts = prompts_of(shared=60, count=40, most=9)
    wanted = alone(model, prompts)
    for budget in (300, 9000):
        sizes.clear()
        generator = generator_of(model, budget)
        answers = in_order(generator.ready(prompts))
        assert same_as_plain(model, prompts, answers, wanted)
        assert not generator.trouble
        assert max(rows * room for rows, room in sizes) <= budget
        assert max(room for _, room in sizes) <= 256
    assert max(rows for rows, _ in sizes) > 4


@pytest.mark.slow
def test_what_does_not_fit_into_memory_is_cut_and_answered(model_of, monkeypatch):
    model = model_of("llama")
    prompts = prompts_of(count=24, shared=20)
    generator = generator_of(model)
    assert generator.sharing_mode == "packed"
    real, sizes = decode_loop.rearranged_cache, []

    def tight(rows, slots, room, before, moves):
        sizes.append(rows * room)
        if rows * room > 400:
            raise RuntimeError("CUDA out of memory")
        return real(rows, slots, room, before, moves)

    monkeypatch.setattr(decode_loop, "rearranged_cache", tight)
    assert same_as_plain(model, prompts, in_order(generator.ready(prompts)))
    assert max(sizes) > 400 >= sizes[-1]
    assert not generator.trouble


def test_what_fails_is_answered_by_plain_batches_and_told(model_of, monkeypatch):
    model = model_of("llama")
    generator = generator_of(model)
    assert generator.sharing_mode == "packed"

    def broken(*_):
        raise ValueError("a bug")

    monkeypatch.setattr(decode_loop, "rearranged_cache", broken)
    prompts = prompts_of()
    assert same_as_plain(model, prompts, in_order(generator.ready(prompts)))
    assert generator.trouble == "ValueError: a bug"


def test_numbers_that_are_none_spoil_no_other_text(checkpoint_of):
    model = load(parse_spec(str(checkpoint_of("llama")), device="cpu"))
    generator = generator_of(model)
    assert generator.sharing_mode == "packed"
    prompts = [prompt for prompt in prompts_of(count=30) if 399 not in prompt.ids]
    spoilt = Prompt(ids=(*prompts[0].ids[:-1], 399), request=prompts[0].request)
    with torch.no_grad():
        model.parts.model.get_input_embeddings().weight[399] = float("nan")
    *others, answer = in_order(generator.ready([*prompts, spoilt]))
    assert isinstance(answer, Failed)
    assert same_as_plain(model, prompts, others)


def test_beams_are_those_of_each_prompt_alone(kind, model_of):
    model = model_of(kind)
    generator = generator_of(model)
    prompts = [
        Prompt(
            ids=prompt.ids,
            request=GenerateRequest(
                prompt="", max_new_tokens=5, num_beams=3, stop=("a",), steps=n % 2 == 0
            ),
        )
        for n, prompt in enumerate(prompts_of(5, shared=5, count=4))
    ]
    assert same_as_plain(model, prompts, in_order(generator.ready(prompts)))
