"""The most probable tokens at the positions of answers, against a softmax computed directly."""

from __future__ import annotations

import pytest
import torch

from pytest_kbrel.models.base import check_probabilities
from pytest_kbrel.models.checkpoint import endings
from pytest_kbrel.records import Failed, Generated, GenerateRequest
from tests.models.tiny_checkpoints import Plain

PROMPTS = (
    "Who wrote the play Hamlet?",
    "Paris is",
    "The capital of Japan is",
    "Question: Which river",
)
K = 5


@pytest.fixture
def all_recorded(monkeypatch):
    """Record improbable tokens too: random checkpoints write hardly any other."""
    monkeypatch.setattr(endings, "LEAST", 1e-6)


def requests(top_k=K, count=6, **options):
    return [
        GenerateRequest(prompt=text, max_new_tokens=count, top_k=top_k, **options)
        for text in PROMPTS
    ]


def directly(plain, ids, count=K):
    """Return the most probable tokens behind ids, by a softmax over the whole vocabulary."""
    with torch.inference_mode():
        logs = plain.model(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
    nats, tokens = logs.topk(count)
    return [
        (token, value)
        for token, value in zip(tokens.tolist(), nats.tolist(), strict=True)
    ]


def are_those_of_a_softmax(plain, ids, answer, count=K):
    assert len(answer.top) == len(answer.token_ids)
    for position, (written, top) in enumerate(
        zip(answer.token_ids, answer.top, strict=True)
    ):
        expected = directly(plain, [*ids, *answer.token_ids[:position]], count)
        assert top[0][0] == written
        assert [token for token, _ in top] == [token for token, _ in expected]
        assert [nats for _, nats in top] == pytest.approx(
            [nats for _, nats in expected], abs=1e-3
        )


@pytest.mark.parametrize("kind", ["llama", "bloom", "mamba"])
@pytest.mark.usefixtures("all_recorded")
def test_they_are_those_of_a_softmax_in_every_way_of_sharing(
    model_of, checkpoint_of, kind
):
    plain, model = Plain(checkpoint_of(kind)), model_of(kind)
    for request, answer in zip(requests(), model.generate(requests()), strict=True):
        ids = list(model.parts.encoder.prompt(request))
        are_those_of_a_softmax(plain, ids, answer)


def test_what_is_no_probability_is_refused():
    def answer(nats):
        return Generated(
            text="a",
            token_ids=(1,),
            finish="stop",
            prompt_tokens=1,
            prompt_digest="",
            top=(((1, nats),),),
        )

    assert isinstance(check_probabilities(answer(0.2)), Failed)
    assert isinstance(check_probabilities(answer(float("nan"))), Failed)
    assert not isinstance(check_probabilities(answer(-3.5)), Failed)
