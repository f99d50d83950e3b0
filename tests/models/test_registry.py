from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_kbrel.errors import ModelError, NoFolderError
from pytest_kbrel.models.hf.backend import HF
from pytest_kbrel.models.openai import OPENAI
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.registry import (
    BACKENDS,
    backend_of,
    check_spec,
    encoder_backend,
    open_model,
    read_spec,
)
from pytest_kbrel.plugin.options import FLAGS

DOCS = Path(__file__).parents[2] / "docs" / "models.md"


@pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
def test_a_backend_is_described_as_a_whole(backend):
    prefix = f"{backend.name}/"
    assert any(form.startswith(prefix) for form in backend.forms)
    assert backend_of(f" {prefix}x ") is backend_of(backend.name) is backend
    spec = read_spec(f"{prefix}x/y")
    assert (spec.text, spec.backend) == (f"{prefix}x/y", backend.name)
    assert backend.gpus(spec) == 0 or not backend.is_served
    rows = [
        line
        for line in DOCS.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    assert any(f"`{prefix}" in row for row in rows), (
        f"docs/models.md has no row on {prefix}"
    )
    (model,) = (flag for flag in FLAGS if flag.name == "model")
    assert backend is HF or prefix in model.help


def test_a_backend_without_encoders_names_a_folder_or_nothing(tmp_path):
    (tmp_path / "vllm" / "encoder").mkdir(parents=True)
    assert encoder_backend("vllm/encoder", tmp_path) is HF
    assert encoder_backend("openai/name", tmp_path) is OPENAI
    for text in ("vllm/org/name", "answers/x.jsonl", "scripted/a.yaml", " vllm/x"):
        with pytest.raises(ModelError, match=r"has no encoders of texts; allowed: tf"):
            encoder_backend(text, tmp_path)


def test_a_misspelt_backend_is_named():
    with pytest.raises(
        ModelError,
        match=r"vlm/x/y: no such folder; .* reference; did you mean 'vllm'\?$",
    ):
        check_spec(read_spec("vlm/x/y"))
    with pytest.raises(ModelError, match=r" or reference$"):
        check_spec(read_spec("hf/vllm/x/y"))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "ollama/qwen3:8b",
            "ollama_chat/x",
            "lmstudio/x",
            "azure/gpt",
            "vllm-server/x",
        ),
        *("local-chat-completions", "local-completions/x", "openai-chat-completions"),
        *(
            "anthropic/claude",
            "openrouter/a/b",
            "litellm/x",
            "http://localhost:8000/v1",
        ),
    ],
)
def test_other_tools_names_of_a_served_model_say_openai(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"server: openai/NAME with .*base_url="):
        read_spec(name, "base_url=http://localhost:8000/v1")
    if "http" not in name:
        (tmp_path / name).mkdir(parents=True)
        assert read_spec(name).backend == "hf"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "cpu"}, "device 'cpu' is for its server to choose"),
        ({"dtype": "float32"}, "dtype 'float32' is for its server"),
        (
            {"chat_template": True, "model_args": "endpoint=completions"},
            "no chat template",
        ),
    ],
)
def test_a_served_model_is_not_told_where_to_run(options, said):
    with pytest.raises(ModelError, match=said):
        read_spec("openai/x", options.pop("model_args", ""), **options)


def test_a_served_model_opens_and_is_checked(openai_server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    spec = read_spec(
        "openai/judge", f"base_url={openai_server.base_url}", chat_template=True
    )
    check_spec(spec)
    model = open_model(spec)
    assert isinstance(model, OpenAIModel)
    model.close()
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        check_spec(read_spec("openai/judge"))


def test_reading_and_checking_imports_nothing_heavy():
    code = (
        "import sys; from pytest_kbrel.models.registry import *;"
        "check_spec(read_spec('openai/x', 'base_url=http://localhost:1/v1')); read_spec('reference');"
        "print({'openai', 'vllm', 'torch', 'transformers', 'numpy'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_a_hub_id_that_leads_nowhere_may_be_a_misspelt_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NoFolderError("openia/gpt: no such folder here")

    monkeypatch.setitem(BACKENDS, "hf", dataclasses.replace(HF, open=refuse))
    with pytest.raises(
        ModelError, match=r"openia/gpt: no such folder here; did you mean 'openai'\?"
    ):
        open_model(read_spec("openia/gpt"))
