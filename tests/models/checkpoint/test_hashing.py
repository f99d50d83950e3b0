from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import digest_of_tensors
from pytest_kbrel.models.checkpoint.fingerprint import quantisation
from pytest_kbrel.models.hf.spec import parse_spec

TENSORS = {
    "a.weight": torch.arange(12.0).reshape(3, 4),
    "b.weight": torch.ones(2, dtype=torch.bfloat16),
    "c.bias": torch.tensor([], dtype=torch.float32),
}


def saved(folder: Path, name: str, tensors: dict[str, torch.Tensor], **notes: str) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / name, metadata=notes or None)
    return folder / name


def test_shards_names_and_notes_change_nothing(tmp_path):
    whole = digest_of_tensors([saved(tmp_path, "model.safetensors", TENSORS)])
    parts = [
        saved(tmp_path, f"part-{number}.safetensors", {name: tensor}, format="pt", by="somebody")
        for number, (name, tensor) in enumerate(TENSORS.items())
    ]
    assert digest_of_tensors(parts) == digest_of_tensors(reversed(parts)) == whole


@pytest.mark.parametrize(
    "change",
    [
        {"a.weight": torch.arange(12.0).reshape(4, 3)},
        {"a.weight": torch.arange(12.0).reshape(3, 4) + 1e-6},
        {"b.weight": torch.ones(2, dtype=torch.float16)},
        {"d.weight": torch.zeros(1)},
    ],
    ids=["shape", "values", "dtype", "one more"],
)
def test_another_tensor_is_another_model(tmp_path, change):
    before = digest_of_tensors([saved(tmp_path, "a.safetensors", TENSORS)])
    assert digest_of_tensors([saved(tmp_path, "b.safetensors", TENSORS | change)]) != before


def test_two_tensors_that_change_places_are_another_model(tmp_path):
    one, other = torch.ones(2), torch.zeros(2)
    digests = {
        digest_of_tensors([saved(tmp_path, f"{number}.safetensors", {"a": first, "b": second})])
        for number, (first, second) in enumerate([(one, other), (other, one)])
    }
    assert len(digests) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain text that is long enough to have a length in front",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 20) + b'{"a": 1}',
        (lambda head: struct.pack("<Q", len(head)) + head + b"12")(
            json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        ),
    ],
)
def test_what_is_no_safetensors_is_named(tmp_path, data):
    (tmp_path / "x.safetensors").write_bytes(data)
    with pytest.raises(ModelError, match=r"x\.safetensors: no readable safetensors"):
        digest_of_tensors([tmp_path / "x.safetensors"])


@pytest.mark.parametrize(
    ("text", "args", "config", "found"),
    [
        ("reference", "", {}, ""),
        ("reference:pruned", "", {}, ""),
        ("reference:int4", "", {}, "int4"),
        ("x", "load_in_4bit=True", {}, "bitsandbytes 4 bits"),
        ("x", "load_in_8bit=True", {}, "bitsandbytes 8 bits"),
        ("x", "gguf_file=x.gguf", {}, "gguf"),
        ("x", "", {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "gptq 4 bits"),
        (
            "x",
            "",
            {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
            "bitsandbytes 8 bits",
        ),
        ("x", "", {"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ("x", "", {"quantization_config": None}, ""),
    ],
)
def test_quantisation(text, args, config, found):
    assert quantisation(parse_spec(text, args), config) == found
