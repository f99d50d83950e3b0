"""The same numbers as a GGUF file, as safetensors and behind llama.cpp's server give the same run."""

from __future__ import annotations

import pytest

from tests.real.smollm2 import GGUF

FORMS = ("chat", "raw")
CHAT = "--kb-apply-chat-template"


def differences(one, other):
    """Return the answers whose text differs, and the largest difference of a probability."""
    assert one.responses.keys() == other.responses.keys()
    texts, largest = [], 0.0
    for key, row in one.responses.items():
        ours, theirs = row["response"], other.responses[key]["response"]
        assert row["request"] == other.responses[key]["request"]
        if "probabilities" in ours:
            pairs = zip(ours["probabilities"], theirs["probabilities"], strict=True)
            largest = max(largest, *(abs(left - right) for left, right in pairs))
        elif ours["text"] != theirs["text"]:
            texts.append((key, ours["text"], theirs["text"]))
    return texts, largest


@pytest.fixture
def gated(gate, model, checkpoint, server):
    """Return a function that gates the model on a few facts: as what, and in which form of prompts."""

    def run(kind, form):
        args, location = [], checkpoint
        if kind == "gguf":
            args, location = [f"gguf_file={GGUF}"], model
        elif kind == "server":
            args, location = [f"base_url={server}"], "openai/smollm2"
            # MONITOR reads a chat's tokens with the model's own tokenizer.
            args += (
                [f"tokenizer={checkpoint}"]
                if form == "chat"
                else ["endpoint=completions"]
            )
        flags = [CHAT] if form == "chat" and kind != "server" else []
        if args:
            flags.append(f"--kb-model-args={','.join(args)}")
        return gate(f"--kb-model={location}", "--kb-limit=4", *flags)

    return run


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["gguf", "server"])
def test_it_answers_as_the_checkpoint_does(gated, kind, form):
    checkpoint, other = gated("safetensors", form), gated(kind, form)
    texts, largest = differences(checkpoint, other)
    assert not texts
    assert largest <= 1e-3
    assert other.verdicts == checkpoint.verdicts
    assert other.code == checkpoint.code
