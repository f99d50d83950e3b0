from __future__ import annotations

import sys

import pytest
import torch

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models import attribution
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.spec import parse_spec
from pytest_kbrel.records import Ask, Attribution, ScoreRequest
from tests.function_model import FunctionModel

pytest.importorskip("captum")

MISLED = ScoreRequest(
    prompt="Oslo. What is the capital of France?", continuation=" Paris"
)


def attribute(model, request: ScoreRequest) -> Attribution:
    return attribution.attribute(
        model, Ask(fact_id="f", role="negative1:0", request=request)
    )


@pytest.fixture(scope="module")
def reference():
    model = load(parse_spec("reference"))
    yield model
    model.close()


def behind_the_baseline(model, request: ScoreRequest) -> float:
    """The log-probability of the answer where every token of the prompt is the mean embedding."""
    parts = model.parts
    pair = parts.encoder.pair(request.prompt, request.continuation)
    layer = parts.model.get_input_embeddings()
    mean = layer(torch.arange(layer.weight.shape[0])).mean(0)
    prompt = mean.expand(1, len(pair.context), -1)
    if parts.model.config.is_encoder_decoder:
        labels = torch.tensor([[*pair.lead, *pair.targets]])
        decoder = parts.model.prepare_decoder_input_ids_from_labels(labels=labels)
        logits = parts.model(inputs_embeds=prompt, decoder_input_ids=decoder).logits[
            :, len(pair.lead) :
        ]
    else:
        answer = layer(torch.tensor([pair.targets]))
        logits = parts.model(inputs_embeds=torch.cat([prompt, answer], 1)).logits[
            :, len(pair.context) - 1 :
        ]
    steps = logits[0].log_softmax(-1)
    return sum(float(steps[k, token]) for k, token in enumerate(pair.targets))


def check_completeness(model, request: ScoreRequest, slack: float = 0.0) -> None:
    result = attribute(model, request)
    scored = model.score([request])[0]
    log_probability = float(
        torch.tensor(scored.probabilities, dtype=torch.float64).log().sum()
    )
    assert result.log_probability == pytest.approx(log_probability, abs=1e-3)
    explained = log_probability - behind_the_baseline(model, request)
    assert abs(result.error) <= max(0.01, 0.01 * abs(explained)) + slack + 1e-4
    assert sum(result.scores) - result.error == pytest.approx(explained, abs=2e-3)
    assert len(result.tokens) == len(result.scores)


@pytest.mark.parametrize(
    "request_",
    [
        MISLED,
        ScoreRequest(prompt="Who lives in Peru?", continuation=" Mario Vargas Llosa"),
    ],
)
def test_the_scores_add_up_to_what_the_prompt_changed(reference, request_):
    check_completeness(reference, request_)


@pytest.mark.parametrize(
    "kind", ["llama", "gpt2", "gemma3", "opt", "bloom", "mamba", "t5", "bart"]
)
@pytest.mark.slow
def test_the_scores_add_up_on_other_architectures(model_of, kind):
    request = ScoreRequest(
        prompt="The capital of Japan is", continuation=" Tokyo, a city"
    )
    # Random weights have steep places that trained ones lack: the steps may run out just before the goal.
    check_completeness(model_of(kind), request, slack=0.04)


def test_a_model_without_weights_is_named():
    with pytest.raises(
        ModelError, match="needs the model's weights, and the backend scripted has none"
    ):
        attribute(FunctionModel(), MISLED)
    with pytest.raises(ModelError, match="openai"):
        attribution.check("openai")


def test_without_captum_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum", None)
    monkeypatch.setattr(attribution, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r'captum: pip install "pytest-kbrel\[attribution\]"'
    ):
        attribution.check("hf")


def test_a_model_that_gives_no_gradients_is_named(reference, monkeypatch):
    def refuse(parts, pair):
        raise RuntimeError("derivative for this kernel is not implemented")

    monkeypatch.setattr(attribution, "_integrated", refuse)
    with pytest.raises(
        ModelError,
        match=r"f \(negative1:0\) cannot be explained: RuntimeError: derivative",
    ):
        attribute(reference, MISLED)
