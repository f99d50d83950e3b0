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
from pytest_kbrel.records import Failed, Generated, ScoreRequest
from tests.models import fake_vllm
from tests.models.vllm.questions import (
    BAD,
    LONG,
    SHORT,
    STOPS,
    TEXTS,
    asked,
    many_endings,
    same_numbers,
    same_steps,
    spoils_no_other,
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


@pytest.mark.parametrize(
    "requests", [LONG, SHORT, [*LONG, *SHORT]], ids=["long", "short", "both"]
)
def test_scores_are_those_of_the_transformers_backend(
    model, transformers_model, requests
):
    same_numbers(model.score(requests), transformers_model.score(requests), within=1e-4)


def test_more_tokens_than_one_question_may_name(model, transformers_model):
    requests = many_endings(transformers_model.parts.encoder)
    same_numbers(model.score(requests), transformers_model.score(requests), within=1e-4)


ODD = [
    ScoreRequest(prompt="", continuation=" Paris"),
    ScoreRequest(prompt="Zürich 東京 ", continuation="é😀"),
    ScoreRequest(prompt="</s><s>", continuation="</s>"),
    ScoreRequest(prompt="a", continuation=" b" * 200),
    ScoreRequest(prompt="The", continuation=""),
    ScoreRequest(prompt="long " * 400, continuation=" Paris"),
]


def test_odd_questions_fare_as_in_the_transformers_backend(model, transformers_model):
    *answered, empty, long = model.score(ODD)
    *expected, their_empty, their_long = transformers_model.score(ODD)
    same_numbers(answered, expected, within=1e-4)
    assert isinstance(empty, Failed)
    assert (empty, long) == (their_empty, their_long)


@pytest.mark.parametrize("stop", [*STOPS, (".",), ("o.",)])
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


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_bad_request_spoils_no_other(model, bad):
    spoils_no_other(model, bad)


# What is put to both: a prompt's text or token ids, and sampling parameters beside the usual ones.
PUT = {
    "written": ("The capital of Japan is", {"max_tokens": 8}),
    "without our endings": (
        "The capital of Japan is",
        {"max_tokens": 8, "stop_token_ids": []},
    ),
    "to a token": (
        "The capital of Japan is",
        {"max_tokens": 8, "stop_token_ids": [FULL_STOP]},
    ),
    "to a string": ("The capital of Japan is", {"max_tokens": 8, "stop": ["."]}),
    "to one of two strings": (
        "The capital of Japan is",
        {"max_tokens": 8, "stop": ["o.", "ky"]},
    ),
    "named": (
        "Who",
        {"max_tokens": 3, "logprobs": None, "logprob_token_ids": [5, 0, 7]},
    ),
    "named twice": ("Who", {"logprobs": None, "logprob_token_ids": [5, 5]}),
    "all that may be named": (
        "Who",
        {"logprobs": None, "logprob_token_ids": list(range(128))},
    ),
    "no numbers": ("Who", {"logprobs": None}),
    "to the end of the context": (
        [5, 700] * (LONGEST // 2 - 2),
        {"max_tokens": 20, "stop_token_ids": []},
    ),
    "one token": ([1], {"max_tokens": 4}),
}
REFUSED = {
    "nothing": ([], {}),
    "no room for an answer": ([5] * LONGEST, {}),
    "too long": ([5] * (LONGEST + 9), {}),
    "no such token": ([5, 3000], {}),
    "below all tokens": ([5, -1], {}),
    "too many named": (
        "Who",
        {"logprobs": None, "logprob_token_ids": list(range(129))},
    ),
    "named beyond": ("Who", {"logprobs": None, "logprob_token_ids": [3000]}),
    "named, and others wanted": ("Who", {"logprob_token_ids": [4, 5]}),
    "no tokens": ("Who", {"max_tokens": 0}),
    "an empty stop": ("Who", {"stop": [""]}),
}


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
    ours = put(itself, engine._llm, encoder, PUT.values())
    theirs = put(fake_vllm, stand_in, encoder, PUT.values())
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


@pytest.mark.parametrize("name", REFUSED)
def test_the_stand_in_refuses_as_vllm(model, stand_in, name):
    import vllm as itself

    asking = [("Who", {}), REFUSED[name]]
    for library, llm in ((itself, model.llm._llm), (fake_vllm, stand_in)):
        with pytest.raises(Exception) as caught:
            put(library, llm, model.parts.encoder, asking)
        assert caught.typename == "VLLMValidationError"
    assert len(put(itself, model.llm._llm, model.parts.encoder, asking[:1])) == 1


def test_what_we_read_of_a_running_engine(model):
    engine = model.llm
    assert (engine.max_length, engine.dtype) == (LONGEST, "float32")
    assert engine.device in ("cpu", "cuda")


def test_an_option_that_vllm_refuses():
    with pytest.raises(ModelError) as caught:
        vllm.load(
            parse_vllm(
                f"vllm/{FOLDER}", "dtype=float32,enforce_eager=True,max_length=100000"
            )
        )
    said = str(caught.value)
    assert "did not start: ValidationError" in said
    assert "max_model_len (100000) is greater than" in said
    assert "\n" not in said


def test_an_engine_that_dies_ends_the_case(real_engines):
    before = set(multiprocessing.active_children())
    model = vllm.load(
        parse_vllm(f"vllm/{FOLDER}", "dtype=float32,enforce_eager=True,max_length=64")
    )
    try:
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        for ask in (lambda: model.score(SHORT), lambda: model.generate([asked()])):
            with pytest.raises(
                ModelError, match="vLLM's engine ended while it was asked: Engine"
            ):
                ask()
    finally:
        model.close()
