"""Probabilities by vLLM's own server: only where KBREL_VLLM_PYTHON names an interpreter that has vLLM.

The embedded checkpoint is served, since vLLM's kernels for CPUs take no heads as narrow as the tiny ones'.
"""

from __future__ import annotations

import os

import pytest

from pytest_kbrel import reference
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.openai import scoring
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.scoring import DIALECTS
from pytest_kbrel.models.openai.spec import parse_openai
from pytest_kbrel.records import Scored, ScoreRequest
from tests.models.openai.vllm_server import VLLM_PYTHON, vllm_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        VLLM_PYTHON not in os.environ,
        reason=f"{VLLM_PYTHON} names no interpreter with vLLM",
    ),
]
FOLDER = reference.resolve("")[0]
SHARED = "Question: who knows?\nAnswer: unsure.\n" * 4
SCORES = [
    ScoreRequest(prompt=f"{before}{prompt}", continuation=continuation)
    for before in ("", SHARED)
    for prompt in (
        "The capital of France is",
        "Question: What is the capital of Japan?\nAnswer:",
    )
    for continuation in (" Paris", " Tokyo, they say", " San Jose: 12,345", " 東京")
]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with vllm_server(
        FOLDER, tmp_path_factory.mktemp("vllm") / "log.txt", "--max-model-len", "384"
    ) as url:
        yield url


@pytest.fixture
def served_by(url, monkeypatch):
    """Return a function that opens a model of that server, with one way to give probabilities or all."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    opened = []

    def make(way):
        ways = [dialect for dialect in DIALECTS if way == dialect.name]
        monkeypatch.setattr(scoring, "DIALECTS", ways)
        args = f"base_url={url},endpoint=completions"
        opened.append(OpenAIModel(parse_openai("openai/small", args)))
        return opened[-1]

    yield make
    for model in opened:
        model.close()


@pytest.fixture(scope="module")
def transformers_model():
    return load(parse_spec(str(FOLDER), device="cpu", dtype="float32"), threads=1)


WAYS = [
    "prompt_logprobs of vLLM",
    "logprob_token_ids of vLLM",
    "completions with echo and logprobs",
]


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_vllm_gives_the_probabilities_of_transformers(
    served_by, transformers_model, way
):
    model = served_by(way)
    assert not model.unscorable
    assert way in model.notes[-1]
    # Twice: the second time a prefix cache has seen all of it.
    for _ in range(2):
        for there, here in zip(
            model.score(SCORES), transformers_model.score(SCORES), strict=True
        ):
            assert isinstance(there, Scored), there
            assert there.probabilities == pytest.approx(here.probabilities, abs=1e-3)
            assert (there.token_ids, there.prompt_tokens) == (
                here.token_ids,
                here.prompt_tokens,
            )
            assert there.prompt_digest == here.prompt_digest


def test_the_ways_of_other_servers_are_refused(served_by):
    for dialect in DIALECTS:
        if dialect.name not in WAYS:
            assert f"tried were {dialect.name} (" in served_by(dialect.name).unscorable
