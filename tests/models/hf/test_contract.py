"""What every architecture must do alike, whichever backend runs it.

``Plain`` computes each answer a second time, the slow way.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.records import Generated, GenerateRequest, Scored, ScoreRequest
from tests.models.tiny_checkpoints import (
    ALL,
    BOS,
    ENCODER_DECODER,
    EOS,
    KINDS,
    WIDE,
    Plain,
)

TO_SCORE = [
    ScoreRequest(prompt=prompt, continuation=continuation)
    for prompt, continuation in (
        ("The capital of Japan is", " Tokyo, a very large city."),
        ("Paris", " is"),
        ("Question: Which river flows through Cairo?\nAnswer:", " the Nile"),
        ("Who wrote the play Hamlet?", " William Shakespeare\n"),
        ("unsure is what you", " say when you do not know the answer."),
        ("Question: who knows? Answer: unsure.\n" * 6 + "Paris is the", " capital of"),
        ("Zürich 東京 ", "é😀"),
    )
]
TO_GENERATE = [
    GenerateRequest(prompt=request.prompt, max_new_tokens=count, stop=())
    for request, count in zip(TO_SCORE, (7, 7, 12, 7, 12, 20, 12), strict=True)
]


ASKED = [
    *(pytest.param(("hf", kind), id=kind) for kind in ALL),
    # vLLM itself, where it is installed, and the stand-in for it.
    *(pytest.param(("vllm", kind), id=f"vllm-{kind}") for kind in WIDE),
    *(
        pytest.param(("fake vllm", kind), id=f"fake-vllm-{kind}")
        for kind in ("llama", "gpt2")
    ),
]


@pytest.fixture(scope="module", params=ASKED)
def asked(request):
    return request.param


@pytest.fixture(scope="module")
def kind(asked):
    return asked[1]


@pytest.fixture(scope="module")
def model(asked, kind, model_of, vllm_of):
    backend = asked[0]
    if backend == "hf":
        yield model_of(kind)
        return
    if backend == "vllm" and find_spec("vllm") is None:
        pytest.skip("vLLM is not installed")
    model = vllm_of(kind, fake=backend == "fake vllm")
    yield model
    model.close()


@pytest.fixture(scope="module")
def within(asked):
    """How far a probability may be off: an engine's kernels sum in another order."""
    return 1e-3 if asked[0] == "vllm" else 1e-5


@pytest.fixture
def only_hf(asked):
    if asked[0] != "hf":
        pytest.skip("this is about the transformers backend")


@pytest.fixture(scope="module")
def plain(kind, checkpoint_of):
    return Plain(checkpoint_of(kind))


def expected_prompt(kind, plain, text):
    bare = plain.tokenizer(text, add_special_tokens=False)["input_ids"]
    around = KINDS[kind][1]
    before = [BOS] if "bos" in around else []
    behind = [EOS] if "eos" in around and kind in ENCODER_DECODER else []
    return [*before, *bare, *behind]


def test_score_batched_equals_plain(kind, model, plain, within):
    answers = model.score(TO_SCORE)
    lead = [BOS] if kind == "bart" else []
    seen = []
    for request, answer in zip(TO_SCORE, answers, strict=True):
        assert isinstance(answer, Scored)
        prompt = expected_prompt(kind, plain, request.prompt)
        assert plain.tokenizer.decode(answer.token_ids) == (
            request.continuation.lstrip()
            if kind in ENCODER_DECODER
            else request.continuation
        )
        expected = plain.probabilities(prompt, list(answer.token_ids), lead)
        assert answer.probabilities == pytest.approx(expected, abs=within)
        assert answer.prompt_tokens == len(prompt)
        seen += expected
    assert max(seen) > 10 * min(seen), "probabilities this alike would prove nothing"


def test_generation_equals_argmax_loop(kind, model, plain):
    answers = model.generate(TO_GENERATE)
    for request, answer in zip(TO_GENERATE, answers, strict=True):
        assert isinstance(answer, Generated)
        prompt = expected_prompt(kind, plain, request.prompt)
        expected = plain.greedy(prompt, request.max_new_tokens, {EOS})
        assert list(answer.token_ids) == expected
        assert answer.finish == ("stop" if expected[-1] == EOS else "length")
        assert (
            answer.text
            == plain.tokenizer.decode(expected, skip_special_tokens=True).strip()
        )
        assert answer.prompt_tokens == len(prompt)


def test_steps_are_the_greedy_path(kind, model, plain, within):
    prompt = expected_prompt(kind, plain, TO_SCORE[0].prompt)
    path = plain.greedy(prompt, 5, {EOS})
    request = GenerateRequest(
        prompt=TO_SCORE[0].prompt,
        max_new_tokens=5,
        stop=(),
        steps=True,
        watch=(path[0], 7),
    )
    short = GenerateRequest(prompt="Paris", max_new_tokens=5, stop=(), steps=True)
    answer, other = model.generate([request, short])
    assert [step.token_id for step in answer.steps] == path
    for k, step in enumerate(answer.steps):
        probabilities = plain.next_token(prompt, path[:k])
        assert step.probability == pytest.approx(float(probabilities.max()), abs=within)
        watched = {0: step.probability, 1: float(probabilities[7])}.get(k)
        assert step.watched == pytest.approx(watched, abs=within)
    assert all(step.watched is None for step in other.steps)
    assert len(other.steps) == len(other.token_ids)


def test_beam_search_finds_the_best_of_its_beams(only_hf, kind, model, plain):
    (answer,) = model.generate(
        [
            GenerateRequest(
                prompt="Paris is the capital", max_new_tokens=2, num_beams=3, stop=()
            )
        ]
    )
    prompt = expected_prompt(kind, plain, "Paris is the capital")
    best = {}
    first, ids = plain.next_token(prompt, []).topk(3)
    for probability, token in zip(first.tolist(), ids.tolist(), strict=True):
        value, following = plain.next_token(prompt, [token]).max(0)
        best[token, int(following)] = probability * float(value)
    assert EOS not in ids.tolist()
    assert answer.token_ids == max(best, key=best.get)


def test_fingerprint(asked, kind, model):
    described = model.describe()
    assert described.backend == asked[0].removeprefix("fake ")
    assert described.scoring_version == SCORING_VERSION
    assert described.dtype == "float32"
    assert (
        described.device
        in {"hf": ["cpu"], "vllm": ["cpu", "cuda"], "fake vllm": ["cuda"]}[asked[0]]
    )
    assert described.parameters > 10_000
    assert len(described.weights_digest) == len(described.tokenizer_digest) == 64
    assert described.adds_bos == ("bos" in KINDS[kind][1])
    causal = (
        "ForCausalLM" in described.architecture or "LMHead" in described.architecture
    )
    assert causal == (kind not in ENCODER_DECODER)


def test_scoring_is_batched_and_the_head_sees_only_what_is_scored(only_hf, model):
    assert model.score(TO_SCORE[:1]), (
        "what the checkpoint allows to share is tried at the first question"
    )
    seen = []
    head = model.parts.model.get_output_embeddings()
    handle = head.register_forward_hook(
        lambda module, args, output: seen.append(output.shape[:-1].numel())
    )
    try:
        answers = model.score(TO_SCORE)
    finally:
        handle.remove()
    assert sum(seen) == sum(len(answer.token_ids) for answer in answers)
    # Those beyond a sliding window go by their lengths. The model itself may leave the layer nothing.
    assert len([size for size in seen if size]) <= 3
    assert not head._forward_pre_hooks
