"""The backend over vLLM itself, and the stand-in for it held against it: only where vLLM is installed.

The embedded checkpoint is asked, since vLLM's kernels for CPUs take no heads as narrow as the tiny ones'.
"""

from __future__ import annotations

import multiprocessing
from importlib.util import find_spec

import pytest

from pytest_kbrel import reference
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import vllm
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.vllm import parse_vllm
from pytest_kbrel.records import Generated
from tests.models import fake_vllm
from tests.models.vllm.questions import (
    SCORES,
    STOPS,
    TEXTS,
    asked,
    same_numbers,
    same_steps,
)

pytestmark = [
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed"),
    # Its own: sockets and memory that are let go while the interpreter collects.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FOLDER = str(reference.resolve("")[0])
LONGEST = 384
# Tokens as the embedded checkpoint knows them.
EOS, FULL_STOP = 2, 16


@pytest.fixture(scope="module")
def model(real_engines):
    result = vllm.load(
        parse_vllm(
            f"vllm/{FOLDER}", f"dtype=float32,enforce_eager=True,max_length={LONGEST}"
        )
    )
    yield result
    result.close()


@pytest.fixture(scope="module")
def transformers_model():
    return load(
        parse_spec(FOLDER, f"max_length={LONGEST}", device="cpu", dtype="float32"),
        threads=1,
    )


@pytest.fixture(scope="module")
def stand_in():
    return fake_vllm.LLM(
        FOLDER,
        max_model_len=LONGEST,
        dtype="float32",
        load_format="safetensors",
        generation_config="vllm",
    )


def test_scores_are_those_of_the_transformers_backend(model, transformers_model):
    same_numbers(model.score(SCORES), transformers_model.score(SCORES), within=1e-4)


@pytest.mark.parametrize("stop", STOPS)
def test_texts_are_those_of_the_transformers_backend(model, transformers_model, stop):
    requests = [asked(text, 30, stop) for text in TEXTS]
    ours = model.generate(requests)
    assert ours == transformers_model.generate(requests)
    assert all(isinstance(answer, Generated) for answer in ours)


def test_steps_are_those_of_the_transformers_backend(model, transformers_model):
    requests = [
        asked(text, 8, ("e",), steps=True, watch=(7, 300, 7, 0)) for text in TEXTS
    ]
    same_steps(
        model.generate(requests), transformers_model.generate(requests), within=1e-4
    )


# What is put to both: a prompt's text or token ids, and sampling parameters beside the usual ones.
TEXT = "The capital of Japan is"
PUT = [
    (TEXT, {"max_tokens": 8}),
    (TEXT, {"max_tokens": 8, "stop_token_ids": []}),
    (TEXT, {"max_tokens": 8, "stop_token_ids": [FULL_STOP]}),
    (TEXT, {"max_tokens": 8, "stop": ["o.", "ky"]}),
    ("Who", {"max_tokens": 3, "logprobs": None, "logprob_token_ids": [5, 0, 7]}),
    ("Who", {"logprobs": None, "logprob_token_ids": [5, 5]}),
    ("Who", {"logprobs": None, "logprob_token_ids": list(range(128))}),
    ([5, 700] * (LONGEST // 2 - 2), {"max_tokens": 20, "stop_token_ids": []}),
    ([1], {"max_tokens": 4}),
]
REFUSED = [
    ([], {}),
    ([5] * LONGEST, {}),
    ([5, 3000], {}),
    ([5, -1], {}),
    ("Who", {"logprobs": None, "logprob_token_ids": list(range(129))}),
    ("Who", {"logprobs": None, "logprob_token_ids": [3000]}),
    ("Who", {"logprob_token_ids": [4, 5]}),
    ("Who", {"max_tokens": 0}),
    ("Who", {"stop": [""]}),
]


def put(library, llm, encoder, questions):
    usual = {
        "temperature": 0.0,
        "max_tokens": 1,
        "stop": [],
        "stop_token_ids": [EOS],
        "logprobs": 0,
    }
    prompts = [
        encoder.prompt(text) if isinstance(text, str) else text for text, _ in questions
    ]
    return llm.generate(
        [{"prompt_token_ids": list(ids)} for ids in prompts],
        [library.SamplingParams(**{**usual, **options}) for _, options in questions],
        use_tqdm=False,
    )


def numbers(places):
    return [
        place and {token: entry.logprob for token, entry in place.items()}
        for place in places or ()
    ]


def test_the_stand_in_answers_as_vllm(model, stand_in):
    import vllm as itself

    engine, encoder = model.llm, model.parts.encoder
    ours = put(itself, engine._llm, encoder, PUT)
    theirs = put(fake_vllm, stand_in, encoder, PUT)
    for name, one, other in zip(PUT, ours, theirs, strict=True):
        assert list(one.prompt_token_ids) == other.prompt_token_ids, name
        (written,), (their) = one.outputs, other.outputs[0]
        for field in ("index", "text", "token_ids", "finish_reason", "stop_reason"):
            assert getattr(written, field) == getattr(their, field), (name, field)
        assert (written.logprobs is None) == (their.logprobs is None), name
        result, expected = numbers(written.logprobs), numbers(their.logprobs)
        assert len(result) == len(expected), name
        for here, there in zip(result, expected, strict=True):
            assert here == (there and pytest.approx(there, abs=1e-3)), name


@pytest.mark.parametrize("refused", REFUSED)
def test_the_stand_in_refuses_as_vllm(model, stand_in, refused):
    import vllm as itself

    asking = [("Who", {}), refused]
    for library, llm in ((itself, model.llm._llm), (fake_vllm, stand_in)):
        with pytest.raises(Exception) as caught:
            put(library, llm, model.parts.encoder, asking)
        assert caught.typename == "VLLMValidationError"
    assert len(put(itself, model.llm._llm, model.parts.encoder, asking[:1])) == 1


def test_an_engine_that_dies_ends_the_case(real_engines):
    before = set(multiprocessing.active_children())
    model = vllm.load(
        parse_vllm(f"vllm/{FOLDER}", "dtype=float32,enforce_eager=True,max_length=64")
    )
    try:
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        for ask in (lambda: model.score(SCORES), lambda: model.generate([asked()])):
            with pytest.raises(
                ModelError, match="vLLM's engine ended while it was asked: Engine"
            ):
                ask()
    finally:
        model.close()
