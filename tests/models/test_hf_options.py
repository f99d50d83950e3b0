"""Options of how a checkpoint computes: read strictly, told in the fingerprint, and never other numbers."""

from __future__ import annotations

import types

import pytest
import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import hf_options
from pytest_kbrel.models.hf import load
from pytest_kbrel.models.hf_options import apply_options, check_device
from pytest_kbrel.models.registry import check_spec
from pytest_kbrel.models.spec import ATTENTION, FLASH, FLEX, parse_spec
from pytest_kbrel.models.store_keys import digest_of
from pytest_kbrel.records import GenerateRequest, Scored, ScoreRequest

SCORES = [
    ScoreRequest(prompt=f"The capital of {country} is", continuation=f" {city}")
    for country in ("Japan", "France")
    for city in ("Tokyo", "Paris", "Cairo, a very large city")
]
ASKS = [GenerateRequest(prompt=request.prompt, max_new_tokens=8, stop=()) for request in SCORES]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("attn_implementation=spda", "allowed: eager, sdpa, flex_attention, flash_attention_2.*'sdpa'"),
        # Code from the hub, which is never run.
        ("attn_implementation=kernels-community/flash-attn2", "is unknown; allowed: eager"),
        ("compile=yes", "allowed is True or False"),
        ("compil=True", "did you mean 'compile'"),
        ("torch_compile=True", "unknown key 'torch_compile'.*did you mean 'compile'"),
    ],
)
def test_wrong_options(args, said):
    with pytest.raises(ModelError, match=said):
        parse_spec("./here", args)


def test_options_are_off_by_default():
    spec = parse_spec("./here")
    assert (spec.attn_implementation, spec.compile, spec.dtype) == ("", False, "auto")
    assert parse_spec("./here", "compile=True,attn_implementation=sdpa").compile
    assert {*ATTENTION} >= {"eager", "sdpa", FLEX}


@pytest.fixture
def spec_of(checkpoint_of):
    def get(args):
        return parse_spec(str(checkpoint_of("llama")), args, device="cpu")

    return get


@pytest.mark.parametrize(("args", "near"), [("attn_implementation=eager", 1e-5), ("dtype=bfloat16", 0.08)])
def test_options_are_told_and_give_the_same_answers(spec_of, model_of, args, near):
    plain, model = model_of("llama"), load(spec_of(args), threads=1)
    described = model.describe()
    assert args.removeprefix("attn_implementation=").removeprefix("dtype=") in (
        f"{described.derived} {described.dtype}"
    )
    # What an option may change is never taken for the same answer.
    assert digest_of(described) != digest_of(plain.describe())
    for one, other in zip(model.score(SCORES), plain.score(SCORES), strict=True):
        assert isinstance(one, Scored)
        assert one.probabilities == pytest.approx(other.probabilities, abs=near)


def test_flex_attention_is_refused_on_a_cpu(spec_of):
    with pytest.raises(ModelError, match=r"flex_attention: on a CPU .* allowed there: sdpa, eager"):
        check_spec(spec_of(f"attn_implementation={FLEX}"))
    with pytest.raises(ModelError, match=f"{FLEX}: on a CPU"):
        load(spec_of(f"attn_implementation={FLEX}"))
    check_device(spec_of(f"attn_implementation={FLEX}"), torch.device("cuda"))
    check_device(spec_of(""), torch.device("cpu"))


def test_flash_attention_is_not_fetched(spec_of):
    # Before anything is loaded, or every case of a run would find it out for itself.
    for find in (check_spec, load):
        with pytest.raises(ModelError, match=r"needs the package flash_attn: pip install flash-attn$"):
            find(spec_of(f"attn_implementation={FLASH}"))


@pytest.fixture
def fresh(checkpoint_of):
    """A model of this test's own: what is compiled stays compiled."""
    return load(parse_spec(str(checkpoint_of("llama")), device="cpu"), threads=1).parts.model


def test_an_attention_with_other_numbers_is_refused(spec_of, fresh, monkeypatch):
    # Nobody's flex attention is wrong here: what it computes with is changed behind its back.
    def change(name):
        fresh.model.layers[0].self_attn.scaling = 0.1 if name == FLEX else 8**-0.5

    fresh.model.layers[0].self_attn.scaling = 0.1
    monkeypatch.setattr(fresh, "set_attn_implementation", change)
    with pytest.raises(ModelError, match=f"attn_implementation={FLEX} gives other numbers"):
        apply_options(spec_of(f"attn_implementation={FLEX}"), fresh, 256)


def test_a_right_attention_stays(spec_of, fresh, monkeypatch):
    asked = []
    monkeypatch.setattr(fresh, "set_attn_implementation", asked.append)
    apply_options(spec_of(f"attn_implementation={FLEX}"), fresh, 256)
    assert asked == ["eager", FLEX]


def test_a_compiler_that_fails_is_told(spec_of, fresh, monkeypatch):
    def broken(*_, **__):
        def call(*_, **__):
            raise RuntimeError("No such file or directory: 'g++'")

        return call

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(
        ModelError, match=r"compile=True does not work here: RuntimeError: .*g\+\+.*C\+\+ compiler"
    ):
        apply_options(spec_of("compile=True"), fresh, 256)


def test_a_compiler_that_is_wrong_is_told(spec_of, fresh, monkeypatch):
    real = hf_options.score_batch
    calls = []

    def score(model, pairs, pad):
        calls.append(len(pairs))
        found = real(model, pairs, pad)
        return found if len(calls) == 1 else [tuple(value * 0.9 for value in one) for one in found]

    monkeypatch.setattr(hf_options, "score_batch", score)
    monkeypatch.setattr(torch, "compile", lambda call, **_: call)
    with pytest.raises(ModelError, match="compile=True gives other numbers"):
        apply_options(spec_of("compile=True"), fresh, 256)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5", "bart", "mamba"])
def test_what_is_compiled_is_all_but_the_head(kind, checkpoint_of, monkeypatch):
    model = load(parse_spec(str(checkpoint_of(kind)), device="cpu"), threads=1).parts.model
    compiled = []
    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda self, **options: compiled.append((self, options)), raising=True
    )
    apply_options(parse_spec(str(checkpoint_of(kind)), "compile=True"), model, 256)
    head = model.get_output_embeddings()
    assert len(compiled) == (2 if kind in ("t5", "bart") else 1)
    for part, options in compiled:
        assert options == {"dynamic": True}
        assert part is not model
        assert all(module is not head for module in part.modules())


def test_what_cannot_be_taken_apart_is_refused(spec_of):
    bare = types.SimpleNamespace(config=types.SimpleNamespace(is_encoder_decoder=False))
    bare.base_model = bare
    with pytest.raises(ModelError, match="has no part without its head; allowed is compile=False"):
        hf_options._parts(spec_of("compile=True"), bare)


@pytest.mark.slow
def test_a_compiled_checkpoint_shares_and_answers_as_ever(spec_of, model_of, monkeypatch):
    real, parts = torch.compile, []

    def quick(call, **options):
        # What is traced, guarded and traced again is as ever; benchmarks/options.py runs the compiler too.
        parts.append(options)
        return real(call, backend="eager", **{k: v for k, v in options.items() if k != "backend"})

    monkeypatch.setattr(torch, "compile", quick)
    plain, model = model_of("llama"), load(spec_of("compile=True"), threads=1)
    assert [one["dynamic"] for one in parts] == [True]
    assert model.describe().derived == "compile"
    for one, other in zip(model.score(SCORES), plain.score(SCORES), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
    assert model._scorer.rung == "packed"
    assert [one.text for one in model.generate(ASKS)] == [one.text for one in plain.generate(ASKS)]
    assert not model._scorer.trouble
    assert not model._generator.trouble
