from __future__ import annotations

import pytest

from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.spec import parse_openai
from pytest_kbrel.records import (
    Failed,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
)
from tests.models.openai.gguf_files import write_gguf
from tests.models.openai.llama_cpp import serve

pytestmark = pytest.mark.slow

SCORES = [
    ScoreRequest(prompt=prompt, continuation=continuation)
    for prompt in (
        "The capital of France is",
        "Question: Which river flows through Cairo?\nAnswer:",
        "Wer?\n",
    )
    for continuation in (" Paris", " the Nile, they say", " San Jose: 12,345")
]
TEXTS = [
    GenerateRequest(prompt=request.prompt, max_new_tokens=8) for request in SCORES[::3]
]


@pytest.fixture(scope="module")
def server(checkpoint_of, tmp_path_factory):
    """llama.cpp's own server on loopback, with the weights of the tiny llama checkpoint in float32."""
    return serve(
        write_gguf(
            checkpoint_of("llama"), tmp_path_factory.mktemp("gguf") / "llama.gguf"
        )
    )


@pytest.fixture(params=["/tokenize", "tokenizer"])
def served(server, checkpoint_of, request, monkeypatch):
    """The model of that server, tokenised by it and by the checkpoint's tokenizer."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    args = f"base_url={server.listening_address}/v1,endpoint=completions"
    if request.param == "tokenizer":
        args += f",tokenizer={checkpoint_of('llama')}"
    model = OpenAIModel(parse_openai("openai/llama", args))
    yield model
    model.close()


def test_the_same_weights_have_the_same_probabilities_over_llama_cpp(served, model_of):
    assert not served.unscorable
    assert "/completion of llama.cpp" in served.notes[-1]
    for there, here in zip(
        served.score(SCORES), model_of("llama").score(SCORES), strict=True
    ):
        assert isinstance(there, Scored), there
        assert there.probabilities == pytest.approx(here.probabilities, abs=1e-3)
        assert (there.token_ids, there.prompt_tokens) == (
            here.token_ids,
            here.prompt_tokens,
        )
        assert there.prompt_digest == here.prompt_digest


def test_a_token_that_ends_within_a_character_is_an_error_and_no_score(served):
    (response,) = served.score(
        [ScoreRequest(prompt="The capital of Japan is", continuation=" 東京")]
    )
    assert isinstance(response, Failed)
    assert "ends within a character" in response.error


def test_the_same_weights_write_the_same_texts_over_llama_cpp(served, model_of):
    for there, here in zip(
        served.generate(TEXTS), model_of("llama").generate(TEXTS), strict=True
    ):
        assert isinstance(there, Generated)
        assert there.text == here.text
