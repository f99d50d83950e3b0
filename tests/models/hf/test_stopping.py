"""Where generation ends. A scripted head makes the tiny model write a given text."""

from __future__ import annotations

import pytest
import torch

from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.records import Failed, GenerateRequest, ScoreRequest
from tests.models.tiny_checkpoints import BOS, EOS, change_json


@pytest.fixture(scope="module")
def writer(checkpoint_of):
    """Return a function that loads a llama which writes a given text after the prompt, then EOS."""
    model = load(parse_spec(str(checkpoint_of("llama")), device="cpu"), threads=1)
    inner, tokenizer = model.parts.model, model.parts.tokenizer
    script: list[int] = []
    # Before there is a script: what the checkpoint allows is tried at the first question.
    model.generate([ask(count=1), ask(count=1, num_beams=2)])

    def head(module, args, output):
        if not script:
            return output
        forced = torch.full_like(output, -50.0)
        forced[..., script[head.step] if head.step < len(script) else EOS] = 0.0
        head.step += 1
        return forced

    handle = inner.get_output_embeddings().register_forward_hook(head)

    def write(text, *requests):
        script[:] = tokenizer(text, add_special_tokens=False)["input_ids"]
        head.step = 0
        return model.generate(requests)

    write.steps_taken = lambda: head.step
    yield write
    handle.remove()


def ask(count=40, stop=("\n",), **options):
    return GenerateRequest(prompt="Who", max_new_tokens=count, stop=stop, **options)


@pytest.mark.parametrize("stop", ["Question:", "é", " ", "</s>"])
def test_stops_at_strings(writer, stop):
    text = "Paris" if stop == " " else "Tokyo, a very large city"
    written = f"{text}{stop} Paris is the capital of Japan"
    (answer,) = writer(written, ask(stop=("\n", stop)))
    assert (answer.text, answer.finish) == (text, "stop")
    assert writer.steps_taken() == len(answer.token_ids), (
        "it should stop where the text ends, not later"
    )


def test_stops_at_max_new_tokens(writer):
    (answer,) = writer(" Paris is the capital of France", ask(count=2))
    assert (answer.finish, len(answer.token_ids)) == ("length", 2)
    assert answer.text
    assert " Paris is the capital".strip().startswith(answer.text)


@pytest.mark.parametrize("blank", ["\n", "\n\n", " \n", "\n \n "])
@pytest.mark.parametrize("beams", [1, 2])
def test_white_space_in_front_of_an_answer_does_not_end_it(writer, blank, beams):
    (answer,) = writer(
        f"{blank}Paris\nTokyo", ask(num_beams=beams, stop=("\n", "Question:"))
    )
    assert (answer.text, answer.finish) == ("Paris", "stop")


def test_a_stop_string_behind_white_space_leaves_nothing(writer):
    (answer,) = writer("\nQuestion: Who", ask(stop=("\n", "Question:")))
    assert (answer.text, answer.finish) == ("", "stop")


def test_special_tokens_are_not_text(writer):
    (answer,) = writer(" Paris<s><unk> is\n", ask())
    assert answer.text == "Paris is"
    assert BOS in answer.token_ids


def test_steps_end_with_the_token_that_ends_the_text(writer):
    (answer,) = writer(" Paris\nTokyo", ask(steps=True))
    assert tuple(step.token_id for step in answer.steps) == answer.token_ids
    assert "".join(step.token for step in answer.steps) == " Paris\n"


def test_own_sampling_settings_do_not_leak_in(checkpoint_of, llama):
    request = GenerateRequest(prompt="Paris is the capital", max_new_tokens=12, stop=())
    (expected,) = load(parse_spec(str(checkpoint_of("llama")), device="cpu")).generate(
        [request]
    )
    change_json(
        llama / "generation_config.json",
        do_sample=True,
        temperature=5.0,
        repetition_penalty=9.0,
        no_repeat_ngram_size=1,
        num_beams=4,
        forced_bos_token_id=5,
        suppress_tokens=list(expected.token_ids),
        min_new_tokens=12,
    )
    change_json(llama / "config.json", repetition_penalty=9.0, num_beams=2)
    (answer,) = load(parse_spec(str(llama), device="cpu")).generate([request])
    assert answer == expected


def test_further_eos_tokens_of_the_checkpoint_count(checkpoint_of, llama):
    request = GenerateRequest(prompt="Paris is the capital", max_new_tokens=6, stop=())
    (before,) = load(parse_spec(str(llama), device="cpu")).generate([request])
    change_json(
        llama / "generation_config.json", eos_token_id=[EOS, before.token_ids[2]]
    )
    (answer,) = load(parse_spec(str(llama), device="cpu")).generate([request])
    assert answer.token_ids == before.token_ids[:3]
    assert answer.finish == "stop"


def test_too_long(model_of):
    model = model_of("llama")
    long = "Paris is the capital of France. " * 60
    scored, fine = model.score(
        [
            ScoreRequest(prompt=long, continuation="a"),
            ScoreRequest(prompt="Paris", continuation=" is"),
        ]
    )
    assert isinstance(scored, Failed)
    assert "the model takes 256" in scored.error
    assert not isinstance(fine, Failed)
    answers = model.generate(
        [GenerateRequest(prompt=long, max_new_tokens=1), ask(count=255)]
    )
    assert [isinstance(answer, Failed) for answer in answers] == [True, True]


def test_no_limit_where_the_architecture_has_none(model_of):
    long = "Paris is the capital of France. " * 60
    for kind in ("mamba", "t5"):
        (answer,) = model_of(kind).score([ScoreRequest(prompt=long, continuation="a")])
        assert not isinstance(answer, Failed)


def test_senseless_requests_fail_alone(model_of):
    bad = [
        GenerateRequest(prompt="Paris", max_new_tokens=0),
        GenerateRequest(prompt="Paris", max_new_tokens=2, steps=True, watch=(10**6,)),
    ]
    good = GenerateRequest(prompt="Paris", max_new_tokens=2, steps=True)
    answers = model_of("llama").generate([*bad, good])
    assert [isinstance(answer, Failed) for answer in answers] == [True, True, False]


def test_a_step_without_text_is_an_end_of_the_model_and_nothing_else():
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    from pytest_kbrel.models.checkpoint.endings import Endings

    vocabulary = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "Paris": 4, "Ċ": 5}
    inner = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
    )
    # A checkpoint may name a token with a text as one of its ends; its embedding may have further rows.
    pieces = [Endings(tokenizer, [EOS, 5]).piece(token) for token in range(8)]
    assert pieces == ["<pad>", "<s>", "", "<unk>", "Paris", "", "<6>", "<7>"]
    assert Endings(tokenizer, [EOS]).piece(5) == "\n"


def test_eos_is_known_from_the_tokenizer_alone(checkpoint_of, llama):
    (llama / "generation_config.json").unlink()
    change_json(llama / "config.json", eos_token_id=None)
    model = load(parse_spec(str(llama), device="cpu"))
    assert model.parts.model.generation_config.eos_token_id == [EOS]
