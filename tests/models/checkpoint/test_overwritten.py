"""A checkpoint whose files are written to while it is in use gives no answer from then on."""

from __future__ import annotations

import contextlib
import shutil
import sys

import pytest
from safetensors.torch import load_file, save_file

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import vllm
from pytest_kbrel.models.cache.session import CachingModel
from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.models.checkpoint import fingerprint
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf import loading
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.vllm import model as vllm_model
from pytest_kbrel.models.vllm import parse_vllm
from pytest_kbrel.records import GenerateRequest, ScoreRequest
from tests.models import fake_vllm, tiny_checkpoints
from tests.models.tiny_checkpoints import change_json

SCORES = [
    ScoreRequest(prompt=f"{n} times Paris is", continuation=" the capital")
    for n in range(12)
]
TEXTS = [
    GenerateRequest(prompt=f"{n} times Paris is", max_new_tokens=4) for n in range(12)
]
CHANGED = "changed while it was being read"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tiny_checkpoints.make_checkpoint(tmp_path_factory.mktemp("saved"), "llama")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "checkpoint")


def opened(folder, args="", **options):
    return load(parse_spec(str(folder), args, device="cpu", **options), threads=1)


def overwrite(file):
    """Write other weights into the file that is there, as a training run may do."""
    other = {name: tensor + 1 for name, tensor in load_file(file).items()}
    new = file.with_name("new")
    save_file(other, new, metadata={"format": "pt"})
    with file.open("r+b") as stream:
        stream.write(new.read_bytes())
    new.unlink()


def overwritten_in_batch(model, number, file):
    """Overwrite a file while the model computes the batch of this number, counted from 1."""
    calls = []

    def before(*_, **__):
        calls.append(1)
        if len(calls) == number:
            overwrite(file)

    model.parts.model.register_forward_pre_hook(before)


@pytest.mark.parametrize(("method", "asked"), [("score", SCORES), ("generate", TEXTS)])
def test_the_batch_in_which_weights_are_overwritten_is_not_kept(
    folder, saved, tmp_path, method, asked
):
    with contextlib.closing(Store(tmp_path / "store")) as store:
        model = opened(folder, batch_size="24")
        # What is tried on the checkpoint itself is no answer.
        assert model._scorer.sharing_mode
        assert model._generator.sharing_mode
        overwritten_in_batch(model, 6, folder / "model.safetensors")
        with pytest.raises(
            ModelError, match=rf"^model\.safetensors of .* {CHANGED}; answers"
        ):
            getattr(CachingModel(model, store), method)(asked)
        # Weights are mapped: from there on answers were the new weights'.
        old = CachingModel(opened(saved), store)
        result = getattr(old, method)(asked)
        assert 0 < old.reused < len(asked)
        for mine, right in zip(
            result, getattr(opened(saved), method)(asked), strict=True
        ):
            assert mine.token_ids == right.token_ids
            if method == "score":
                expected = pytest.approx(right.probabilities, abs=1e-5)
                assert mine.probabilities == expected
        new = CachingModel(opened(folder), store)
        getattr(new, method)(asked)
        assert new.reused == 0


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer_config.json", "generation_config.json"]
)
def test_it_answers_nothing_more_once_a_file_changed_whoever_asks(folder, name):
    model = opened(folder)
    model.score(SCORES[:1])
    change_json(folder / name, kbrel=1)
    computed = []
    model.parts.model.register_forward_pre_hook(lambda *_: computed.append(1))
    with pytest.raises(ModelError, match=rf"^{name} of .* {CHANGED}; answers"):
        model.score(SCORES[:1])
    with pytest.raises(ModelError, match="the first failure says more"):
        model.score(SCORES)
    with pytest.raises(ModelError, match="the first failure says more"):
        model.generate(TEXTS)
    assert computed == []


@pytest.mark.parametrize(
    ("module", "last"),
    [
        (fingerprint, "_load_config"),
        (fingerprint, "load_tokenizer"),
        (loading, "_load_model"),
        (loading, "fingerprint"),
    ],
)
def test_a_change_while_it_is_loaded_is_seen(folder, monkeypatch, module, last):
    step = getattr(module, last)

    def then_changed(*given, **more):
        result = step(*given, **more)
        overwrite(folder / "model.safetensors")
        return result

    monkeypatch.setattr(module, last, then_changed)
    with pytest.raises(ModelError, match=CHANGED):
        opened(folder)


def test_an_engine_gives_no_answer_after_a_change(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", fake_vllm)
    model = vllm.load(parse_vllm(f"vllm/{folder}", "dtype=float32"))
    model.score(SCORES[:1])
    model.generate(TEXTS[:1])
    overwrite(folder / "model.safetensors")
    with pytest.raises(ModelError, match=CHANGED):
        model.score(SCORES)
    with pytest.raises(ModelError, match=CHANGED):
        model.generate(TEXTS)


def test_an_engine_that_started_on_changed_files_is_closed(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", fake_vllm)
    started, start = [], vllm_model.start_engine

    def changed_meanwhile(*given):
        started.append(start(*given))
        overwrite(folder / "model.safetensors")
        return started[-1]

    monkeypatch.setattr(vllm_model, "start_engine", changed_meanwhile)
    with pytest.raises(ModelError, match=CHANGED):
        vllm.load(parse_vllm(f"vllm/{folder}", "dtype=float32"))
    ((engine, _),) = started
    assert engine._llm is None
