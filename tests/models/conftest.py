from __future__ import annotations

import sys

import pytest
import torch

from pytest_kbrel.models import vllm
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.vllm import parse_vllm
from tests.models import fake_vllm, tiny_checkpoints

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def checkpoint_of(tmp_path_factory):
    """Return a function that makes (once) the tiny checkpoint of an architecture and returns its folder."""
    made = {}

    def make(kind):
        if kind not in made:
            made[kind] = tiny_checkpoints.make_checkpoint(
                tmp_path_factory.mktemp(kind), kind
            )
        return made[kind]

    return make


@pytest.fixture(scope="session")
def model_of(checkpoint_of):
    """Return a function that loads (once) the tiny checkpoint of an architecture."""
    loaded = {}

    def get(kind):
        if kind not in loaded:
            loaded[kind] = load(
                parse_spec(str(checkpoint_of(kind)), device="cpu"), threads=1
            )
        return loaded[kind]

    return get


@pytest.fixture(scope="session")
def real_engines():
    """Let engines of vLLM itself take little memory."""
    with pytest.MonkeyPatch.context() as patch:
        # Gigabytes for keys and values, where vLLM runs on a CPU.
        patch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
        yield


@pytest.fixture(scope="session")
def vllm_of(checkpoint_of, real_engines):
    """Return a function that has vLLM, or the stand-in for it, run the tiny checkpoint of an architecture."""

    def get(kind, args="", *, fake=True):
        always = f"dtype=float32,gpu_memory_utilization=0.2,enforce_eager={not fake}"
        spec = parse_vllm(f"vllm/{checkpoint_of(kind)}", f"{always},{args}")
        with pytest.MonkeyPatch.context() as patch:
            if fake:
                patch.setitem(sys.modules, "vllm", fake_vllm)
            return vllm.load(spec)

    return get


@pytest.fixture
def llama(tmp_path):
    """A llama checkpoint of this test's own, to be spoilt."""
    return tiny_checkpoints.make_checkpoint(tmp_path / "llama", "llama")


@pytest.fixture
def model_at(openai_server, monkeypatch):
    """Return a function that opens a model of the loopback server with further arguments."""
    from pytest_kbrel.models.openai.model import OpenAIModel
    from pytest_kbrel.models.openai.spec import parse_openai

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    opened = []

    def make(args="", name="judge"):
        spec = parse_openai(
            f"openai/{name}", f"base_url={openai_server.base_url},{args}"
        )
        opened.append(OpenAIModel(spec))
        return opened[-1]

    yield make
    for model in opened:
        model.close()


# A decoder and an encoder-decoder.
QUICK = ("llama", "t5")


def pytest_collection_modifyitems(items):
    """Count the many other architectures among the slow tests, and vLLM's stand-in with all but one."""
    for item in items:
        params = getattr(item, "callspec", None)
        for value in params.params.values() if params else ():
            backend, kind = (
                value if isinstance(value, tuple) and len(value) == 2 else ("hf", value)
            )
            if not (isinstance(kind, str) and kind in tiny_checkpoints.KINDS):
                continue
            if kind not in QUICK or (backend != "hf" and kind != "llama"):
                item.add_marker(pytest.mark.slow)
