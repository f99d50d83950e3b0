"""What vLLM and the stand-in for it are asked, and how answers are held against those of transformers."""

from __future__ import annotations

import pytest

from pytest_kbrel.models.vllm.model import MOST_NAMED
from pytest_kbrel.records import GenerateRequest, Scored, ScoreRequest

SHARED = "Question: who knows? Answer: unsure.\n" * 8
SCORES = [
    ScoreRequest(prompt=f"{SHARED}The capital of {land} is", continuation=f" {city}")
    for land in ("Japan", "France", "Egypt")
    for city in ("Tokyo", "Tokyo, a city", "Paris", "Cairo")
] + [
    ScoreRequest(
        prompt="The capital of Japan is", continuation=" Tokyo, a very large city."
    ),
    ScoreRequest(prompt="Who wrote Hamlet?", continuation=" William Shakespeare\n"),
]
TEXTS = (
    "Paris is the",
    "The capital of Japan is",
    "Who wrote the play",
    "unsure",
    f"{SHARED}Who",
)
STOPS = [(), ("\n",), ("a", " "), tuple("aeiou")]


def asked(text="Who", count=12, stop=("\n",), **options):
    return GenerateRequest(prompt=text, max_new_tokens=count, stop=stop, **options)


BAD = [
    asked(count=0),
    asked("long " * 400),
    asked(steps=True, watch=(10_000,)),
    asked(steps=True, watch=tuple(range(MOST_NAMED + 1))),
    asked(stop=("",)),
    asked(num_beams=3),
]


def same_numbers(ours, theirs, *, within=1e-5):
    for one, other in zip(ours, theirs, strict=True):
        assert isinstance(one, Scored)
        assert one.probabilities == pytest.approx(other.probabilities, abs=within)
        assert one.token_ids == other.token_ids
        assert (one.prompt_tokens, one.prompt_digest) == (
            other.prompt_tokens,
            other.prompt_digest,
        )


def same_steps(ours, theirs, *, within=1e-5):
    for one, other in zip(ours, theirs, strict=True):
        assert one.text == other.text
        for step, their in zip(one.steps, other.steps, strict=True):
            assert (step.token_id, step.token) == (their.token_id, their.token)
            assert step.probability == pytest.approx(their.probability, abs=within)
            assert step.watched == pytest.approx(their.watched, abs=within)
