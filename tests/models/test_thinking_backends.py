"""Thoughts of random checkpoints: some token that they write anyway is said to end a thought."""

from __future__ import annotations

import pytest

from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.records import GenerateRequest
from tests.models.tiny_checkpoints import EOS, Plain

PROMPTS = (
    "Who wrote the play Hamlet?",
    "Paris is",
    "The capital of Japan is",
    "Question: Which river",
)
LONG = 24


@pytest.fixture
def opened(checkpoint_of, vllm_of):
    def make(backend, kind, args):
        if backend == "vllm":
            return vllm_of(kind, args)
        return load(parse_spec(str(checkpoint_of(kind)), args, device="cpu"), threads=1)

    return make


def closing_of(plain):
    """Return a token that some of what the checkpoint writes holds, and others do not, with its text."""
    written = [plain.greedy(ids_of(plain, prompt), LONG, {EOS}) for prompt in PROMPTS]
    for ids in written:
        for token in ids[2:10]:
            text = plain.tokenizer.decode([token])
            alone = plain.tokenizer.encode(text, add_special_tokens=False) == [token]
            holding = sum(text in plain.tokenizer.decode(ids) for ids in written)
            if alone and text.strip() and text.isascii() and 0 < holding < len(written):
                return text
    raise AssertionError("no token will do")


def ids_of(plain, prompt):
    return plain.tokenizer(prompt)["input_ids"]


@pytest.mark.parametrize(
    ("backend", "kind"), [("hf", "llama"), ("hf", "gpt2"), ("vllm", "llama")]
)
def test_what_stands_behind_the_thought_is_what_the_model_writes_there(
    opened, checkpoint_of, backend, kind
):
    plain = Plain(checkpoint_of(kind))
    closing = closing_of(plain)
    model = opened(
        backend, kind, f"think_end_token='{closing}',max_thinking_tokens={LONG}"
    )
    requests = [
        GenerateRequest(prompt=prompt, max_new_tokens=5, stop=("\n",))
        for prompt in PROMPTS
    ]
    for prompt, result in zip(PROMPTS, model.generate(requests), strict=True):
        ids = ids_of(plain, prompt)
        thought = plain.greedy(ids, LONG, {EOS})
        ends = [
            n
            for n in range(1, len(thought) + 1)
            if closing in plain.tokenizer.decode(thought[:n])
        ]
        if not ends and thought[-1] == EOS:
            # It ended, and was no thought.
            assert list(result.token_ids) == plain.greedy(ids, 5, {EOS})
            continue
        if not ends:
            assert (result.text, result.finish, result.thought_tokens) == (
                "",
                "length",
                LONG,
            )
            continue
        answer = plain.greedy([*ids, *thought[: ends[0]]], 5, {EOS})
        assert list(result.token_ids) == answer[: len(result.token_ids)]
        assert result.thought_tokens == ends[0]
        assert (
            result.thought
            == plain.tokenizer.decode(thought[: ends[0]]).split(closing)[0].strip()
        )
    model.close()
