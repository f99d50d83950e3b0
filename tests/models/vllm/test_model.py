"""The vLLM backend over a stand-in for the package: what is asked of it, and what is made of its answers."""

from __future__ import annotations

import dataclasses
import math
import os
import sys

import pytest

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models import vllm
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.registry import open_model, read_spec
from pytest_kbrel.models.vllm import parse_vllm
from pytest_kbrel.records import Failed, Generated, Scored
from tests.models import fake_vllm
from tests.models.tiny_checkpoints import BOS
from tests.models.vllm.questions import (
    BAD,
    SCORES,
    STOPS,
    TEXTS,
    asked,
    same_numbers,
    same_steps,
)


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    """What stand-ins are asked in this test, and how their answers are spoilt."""
    result = fake_vllm.Calls()
    monkeypatch.setattr(fake_vllm, "calls", result)
    monkeypatch.setitem(sys.modules, "vllm", fake_vllm)
    return result


@pytest.fixture(scope="module")
def model(vllm_of):
    result = vllm_of("llama")
    yield result
    result.close()


def test_scores_are_those_of_the_transformers_backend(model, model_of):
    same_numbers(model.score(SCORES), model_of("llama").score(SCORES))


@pytest.mark.parametrize("stop", STOPS)
def test_texts_are_those_of_the_transformers_backend(model, model_of, stop):
    requests = [asked(text, 30, stop) for text in TEXTS]
    ours, theirs = model.generate(requests), model_of("llama").generate(requests)
    assert all(isinstance(answer, Generated) for answer in ours)

    def texts(answers):
        return [
            dataclasses.replace(answer, probability=None, first_probability=None)
            for answer in answers
        ]

    assert texts(ours) == texts(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert (one.probability, one.first_probability) == (
            pytest.approx(other.probability, rel=1e-4),
            pytest.approx(other.first_probability, rel=1e-4),
        )


def test_steps_are_those_of_the_transformers_backend(model, model_of):
    requests = [asked(text, 8, ("e",), steps=True, watch=(7, 300, 7)) for text in TEXTS]
    same_steps(model.generate(requests), model_of("llama").generate(requests))


def test_vllms_own_view_of_an_ending_does_not_cut_a_text(model, model_of, calls):
    calls.stop_early = True
    requests = [asked(text, 9, ("never said",)) for text in TEXTS[:2]]
    assert model.generate(requests) == model_of("llama").generate(requests)
    assert calls.sizes == [2, 2]


def test_a_bad_request_spoils_no_other(model):
    good = [asked(text) for text in TEXTS]
    alone = model.generate(good)
    answers = model.generate([*BAD, *good])
    assert answers[len(BAD) :] == alone
    assert all(isinstance(answer, Failed) for answer in answers[: len(BAD)])


def test_a_question_that_the_engine_refuses_fails_alone(model, calls, monkeypatch):
    real = fake_vllm.LLM._verify
    pair = model.parts.encoder.pair(SCORES[-2].prompt, SCORES[-2].continuation)

    def verify(self, ids, params):
        if ids == (*pair.context, *pair.targets[:2]):
            raise fake_vllm.VLLMValidationError("not this one")
        real(self, ids, params)

    monkeypatch.setattr(fake_vllm.LLM, "_verify", verify)
    refused, answered = model.score(SCORES[-2:])
    assert refused == Failed(error="VLLMValidationError: not this one")
    assert isinstance(answered, Scored)


@pytest.mark.parametrize(
    "ask", [lambda one: one.score(SCORES[-2:]), lambda one: one.generate([asked()])]
)
def test_an_engine_that_dies_ends_the_case(vllm_of, calls, ask):
    def die(outputs):
        raise fake_vllm.EngineDeadError("EngineCore encountered an issue.")

    model = vllm_of("llama")
    calls.spoil = die
    for _ in range(2):
        with pytest.raises(ModelError) as caught:
            ask(model)
        assert "/llama" in str(caught.value)
        assert (
            "vLLM's engine ended while it was asked: EngineDeadError: EngineCore enc"
            in str(caught.value)
        )


def _dropped(output):
    output.outputs[0].logprobs = None


def _another(output):
    output.prompt_token_ids = [BOS]


def _aborted(output):
    output.outputs[0].finish_reason = "abort"


def _none_written(output):
    output.outputs[0].token_ids = []
    output.outputs[0].logprobs = []


def _filled(value):
    def fill(output):
        for place in output.outputs[0].logprobs:
            for entry in place.values():
                entry.logprob = value

    return fill


def _others(output):
    output.outputs[0].logprobs = [
        {0: fake_vllm.Logprob(-1.0)} for _ in output.outputs[0].token_ids
    ]


FAULTS = [
    (_dropped, "log-probabilities of 0"),
    (_another, "answered another prompt"),
    (_aborted, "ended the answer with 'abort'"),
    (_none_written, "wrote 0 tokens"),
    (_filled(-math.inf), "log-probability -inf"),
    (_filled(math.nan), "log-probability nan"),
    (_others, "no log-probability of token"),
]


@pytest.mark.parametrize(("spoil", "said"), FAULTS)
def test_what_cannot_be_is_a_failure_and_never_a_score(model, calls, spoil, said):
    def one(outputs):
        spoil(outputs[0])
        return outputs

    calls.spoil = one
    texts = model.generate([asked(text, 4, ()) for text in TEXTS])
    for answers in (texts, model.score(SCORES)):
        failures = [answer.error for answer in answers if isinstance(answer, Failed)]
        assert failures
        assert all(said in error for error in failures)
        assert len(failures) < len(answers)


def test_fewer_answers_than_questions_are_asked_again_one_by_one(
    model, model_of, calls
):
    calls.spoil = lambda outputs: outputs[1:] if len(outputs) > 1 else outputs
    right = model_of("llama").score(SCORES[-2:])
    same_numbers(model.score(SCORES[-2:]), right)
    tokens = sum(len(answer.token_ids) for answer in right)
    assert calls.sizes == [tokens, *[1] * tokens]
    calls.spoil = lambda outputs: []
    assert model.score(SCORES[-2:-1]) == [
        Failed(error="ValueError: vLLM gave 0 answers to 1 questions")
    ]


def test_questions_go_to_the_engine_in_pieces(model, calls, monkeypatch):
    monkeypatch.setattr(model.llm, "at_once", 2)
    ready = list(model.generate_as_ready([asked(text) for text in TEXTS]))
    assert [len(batch) for batch in ready] == [2, 2, 1] == calls.sizes
    assert sorted(place for batch in ready for place, _ in batch) == [0, 1, 2, 3, 4]


def test_closing_stops_the_engine(vllm_of, calls):
    model = vllm_of("llama")
    model.close()
    assert calls.engines[0].closed
    model.close()
    (answer,) = model.generate([asked()])
    assert "this engine is closed" in answer.error


def test_options_reach_the_engine(checkpoint_of, calls):
    folder = str(checkpoint_of("llama"))
    spec = read_spec(
        f"vllm/{folder}",
        "tensor_parallel_size=2,gpu_memory_utilization=0.4,max_model_len=64,max_num_seqs=8,enforce_eager=True",
        dtype="bf16",
        batch_size="128",
    )
    open_model(spec, threads=1).close()
    given = calls.engines[0].options
    assert (given["model"], given["dtype"], given["tensor_parallel_size"]) == (
        folder,
        "bfloat16",
        2,
    )
    assert (given["gpu_memory_utilization"], given["max_model_len"]) == (0.4, 64)
    assert (
        given["max_num_seqs"],
        given["max_num_batched_tokens"],
        given["enforce_eager"],
    ) == (8, 128, True)
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"


def test_an_engine_that_does_not_start(checkpoint_of, calls):
    calls.refuse_start = (
        "1 validation error for ModelConfig\n  max_model_len (9) is greater than 8"
    )
    with pytest.raises(ModelError) as caught:
        vllm.load(
            parse_vllm(f"vllm/{checkpoint_of('llama')}", "tensor_parallel_size=8")
        )
    said = str(caught.value)
    assert (
        "vLLM 0.33.0 did not start: RuntimeError: 1 validation error for ModelConfig max_model_len"
        in said
    )
    assert "tensor_parallel_size=8" in said
    assert "allowed:" in said
    assert "\n" not in said


def test_checkpoints_that_cannot_be_trusted_start_no_engine(
    checkpoint_of, tmp_path, calls
):
    for folder, said in (
        (
            checkpoint_of("t5"),
            "an encoder-decoder model; allowed with vllm are causal models",
        ),
        (tmp_path / "nowhere", "no such folder"),
    ):
        with pytest.raises(ModelError, match=said):
            vllm.load(parse_vllm(f"vllm/{folder}"))
    assert not calls.engines


def test_without_the_package(checkpoint_of, monkeypatch):
    monkeypatch.delitem(sys.modules, "vllm")
    spec = parse_vllm(f"vllm/{checkpoint_of('llama')}")
    try:
        import vllm as _  # noqa: F401
    except ImportError:
        with pytest.raises(
            MissingExtraError, match=r'pip install "pytest-kbrel\[vllm\]"'
        ):
            vllm.load(spec)


def test_what_comes_from_the_hub_is_what_is_digested(checkpoint_of, monkeypatch, calls):
    import huggingface_hub

    folder, wanted = checkpoint_of("llama"), {}

    def download(name, **options):
        wanted.update(options, name=name)
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    result = vllm.load(parse_vllm("vllm/some-org/some-name", "revision=abc"))
    assert (wanted["name"], wanted["revision"]) == ("some-org/some-name", "abc")
    assert calls.engines[0].options["model"] == str(folder)
    assert result.describe().spec == "vllm/some-org/some-name"
    assert (
        result.describe().weights_digest
        == load(parse_spec(str(folder))).describe().weights_digest
    )

    def fail(name, **options):
        raise OSError("offline")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(
        ModelError, match="not to be had from the hub: OSError: offline"
    ):
        vllm.load(parse_vllm("vllm/some-org/some-name"))
