from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.openai import OpenAIModel
from pytest_kbrel.models.openai_spec import OpenAISpec
from pytest_kbrel.models.registry import check_spec, gives_probabilities, open_model, read_spec
from pytest_kbrel.models.spec import ModelSpec


def test_a_spec_goes_to_its_backend():
    served = read_spec("openai/x", "base_url=http://localhost:1/v1")
    assert isinstance(served, OpenAISpec)
    assert not gives_probabilities(served)
    checkpoint = read_spec("hf/openai/x", "dtype=float32", device="cpu")
    assert checkpoint == ModelSpec(text="hf/openai/x", path="openai/x", dtype="float32", device="cpu")
    assert gives_probabilities(checkpoint)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "cpu"}, "device 'cpu' is for its server to choose"),
        ({"dtype": "float32"}, "dtype 'float32' is for its server"),
        ({"batch_size": "512"}, "batch size '512' is for its server"),
        ({"chat_template": True, "model_args": "endpoint=completions"}, "no chat template"),
    ],
)
def test_a_served_model_is_not_told_where_to_run(options, said):
    with pytest.raises(ModelError, match=said):
        read_spec("openai/x", options.pop("model_args", ""), **options)


def test_a_served_model_opens_and_is_checked(openai_server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    spec = read_spec("openai/judge", f"base_url={openai_server.base_url}", chat_template=True)
    check_spec(spec)
    model = open_model(spec)
    assert isinstance(model, OpenAIModel)
    model.close()
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        check_spec(read_spec("openai/judge"))


def test_a_checkpoint_opens(checkpoint_of):
    spec = read_spec(str(checkpoint_of("llama")), device="cpu")
    check_spec(spec)
    assert open_model(spec, threads=1).describe().backend == "hf"


def test_reading_and_checking_imports_nothing_heavy():
    code = (
        "import sys; from pytest_kbrel.models.registry import *;"
        "check_spec(read_spec('openai/x', 'base_url=http://localhost:1/v1')); read_spec('reference');"
        "print([m for m in ('openai', 'torch', 'transformers', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
