"""The same numbers as a GGUF file, as safetensors and behind llama.cpp's server give the same run."""

from __future__ import annotations

import pytest

from tests.real.smollm2 import GGUF, as_checkpoint


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
def gated(gate, model, server):
    """Return a function that gates the model on a few facts: as what, and in which form of prompts."""

    def run(kind, form):
        chat, flags = form == "chat", ["--kb-limit=1"]
        if kind == "gguf":
            flags += [f"--kb-model={model}", f"--kb-model-args=gguf_file={GGUF}"]
        elif kind == "server":
            # MONITOR reads a chat's tokens with the model's own tokenizer.
            how = f"tokenizer={as_checkpoint()}" if chat else "endpoint=completions"
            flags.append("--kb-model=openai/smollm2")
            flags.append(f"--kb-model-args=base_url={server},{how}")
        else:
            flags.append(f"--kb-model={as_checkpoint()}")
        if chat and kind != "server":
            flags.append("--kb-apply-chat-template")
        return gate(*flags)

    return run


@pytest.mark.parametrize("form", ["chat", "raw"])
@pytest.mark.parametrize("kind", ["gguf", "server"])
def test_it_answers_as_the_checkpoint_does(gated, kind, form):
    # It first: meanwhile the other process makes the checkpoint.
    other, checkpoint = gated(kind, form), gated("safetensors", form)
    texts, largest = differences(checkpoint, other)
    assert not texts
    assert largest <= 1e-3
    assert other.verdicts == checkpoint.verdicts
    assert other.code == checkpoint.code
