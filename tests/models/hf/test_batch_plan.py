"""What a plan says would be fed is what goes into the model, token for token."""

from __future__ import annotations

import pytest
import torch

from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.prefix_tree import distinct_tokens
from pytest_kbrel.models.hf.spec import parse_spec
from pytest_kbrel.models.token_counting import open_token_accountant
from pytest_kbrel.records import GenerateRequest, Request, ScoreRequest
from tests.models.fedometer import Fedometer
from tests.models.tiny_checkpoints import make_checkpoint

SHOTS = "Question: Which river flows through Cairo?\nAnswer: the Nile\n" * 2
PLACES = (
    "France",
    "Japan",
    "Egypt",
    "the city of Rome",
    "Peru",
    "Kenya",
    "Norway and Sweden",
)
NAMES = ("Paris", "Tokyo", "a very large city", "Lima")
SCORED = [
    ScoreRequest(prompt=f"{start}The capital of {place} is", continuation=f" {name}")
    for start in (SHOTS, "")
    for place in PLACES
    for name in NAMES
]
CONTINUED = [
    GenerateRequest(
        prompt=f"{SHOTS}Question: What is the capital of {place}?\nAnswer:",
        max_new_tokens=1,
    )
    for place in PLACES
]


@pytest.fixture
def opened(request, tmp_path):
    """Return a loaded checkpoint and what counts for it, made without its weights."""

    def open_(kind: str, **options) -> tuple:
        spec = parse_spec(str(make_checkpoint(tmp_path / kind, kind)), **options)
        weights = tmp_path / kind / "model.safetensors"
        kept = weights.read_bytes()
        # Whoever read these now would fail.
        weights.write_bytes(b"none")
        accountant = open_token_accountant(spec)
        weights.write_bytes(kept)
        model = load(spec)
        request.addfinalizer(model.close)
        return model, accountant

    return open_


def really_fed(model, ask, requests: list[Request]) -> Fedometer:
    # The self-checks ask the model too, once.
    assert set(model.sharing_modes) <= {"packed", "prefix", "plain"}
    meter = Fedometer(model.parts.model)
    try:
        answers = ask(requests)
    finally:
        meter.stop()
    assert len(answers) == len(requests)
    return meter


def force(model, way: str) -> None:
    """Let a model share in a way that is not its highest."""
    assert model.sharing_modes[0] != "plain"
    model._scorer.__dict__["sharing_mode"] = way


@pytest.mark.parametrize("budget", ["auto", "150"])
@pytest.mark.parametrize("way", ["packed", "prefix", "plain"])
@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_what_is_scored_is_fed_as_planned(opened, kind, way, budget):
    model, accountant = opened(kind, batch_size=budget)
    force(model, way)
    meter = really_fed(model, model.score, SCORED)
    planned = accountant.count(SCORED, way)
    assert planned == meter.tokens
    if way != "plain" and kind == "llama":
        whole = accountant.count(SCORED, "plain")
        assert (
            sum(map(distinct_tokens, accountant.tries(SCORED))) <= planned < whole / 2
        )


def test_no_padding_is_counted_as_tokens(opened):
    """Rows one by one have none, so that what goes in are tokens only."""
    model, accountant = opened("llama", batch_size="1")
    for way in ("prefix", "plain"):
        force(model, way)
        meter = really_fed(model, model.score, SCORED)
        assert accountant.count(SCORED, way) == meter.places
        # The size of a batch changes what is padded, and nothing else.
        large = open_token_accountant(
            parse_spec(model.parts.spec.path, batch_size="100000")
        )
        assert large.count(SCORED, way) == meter.places


@pytest.mark.parametrize("way", ["prefix", "plain"])
def test_an_encoder_reads_a_prompt_once(opened, way):
    model, accountant = opened("t5")
    force(model, way)
    # Prompts and answers are as long as each other, so that nothing is padded.
    requests = [
        ScoreRequest(prompt=f"{SHOTS}{letter}", continuation=f" {name}")
        for letter in "ab"
        for name in "cde"
    ]
    meter = really_fed(model, model.score, requests)
    assert accountant.count(requests, way) == meter.places
    assert accountant.count(requests, "prefix") < meter.places or way == "prefix"


def test_prompts_that_are_continued_share_their_beginning(opened):
    model, accountant = opened("llama", batch_size="300")
    assert model.sharing_modes[1] == "packed"
    meter = really_fed(model, model.generate, CONTINUED)
    planned = accountant.count(CONTINUED, "packed")
    lengths = [len(accountant.encoder.prompt(request.prompt)) for request in CONTINUED]
    assert planned < sum(lengths) / 2
    # What is padded as prompts come in depends on answers, and is not counted.
    assert planned == meter.tokens
    assert accountant.count(CONTINUED, "plain") == sum(lengths)


def test_what_the_model_refuses_is_not_fed(opened):
    model, accountant = opened("llama")
    long = ScoreRequest(prompt="the city of Rome " * 200, continuation=" x")
    empty = ScoreRequest(prompt="a", continuation="")
    assert accountant.count([long, empty], "packed") == 0
    with torch.inference_mode():
        assert [type(answer).__name__ for answer in model.score([long, empty])] == [
            "Failed",
            "Failed",
        ]


def test_the_embedded_checkpoint_shares_as_planned():
    spec = parse_spec("reference")
    model, accountant = load(spec), open_token_accountant(spec)
    try:
        assert model.sharing_modes == ("packed", "packed")
        meter = really_fed(model, model.score, SCORED)
    finally:
        model.close()
    assert accountant.count(SCORED, "packed") == meter.tokens
