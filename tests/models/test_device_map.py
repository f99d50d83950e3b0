"""Which device each part of a checkpoint goes to: what may be typed, and what accelerate is told."""

from __future__ import annotations

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import hf
from pytest_kbrel.models.device_map import Placement
from pytest_kbrel.models.registry import gpus_of
from pytest_kbrel.models.spec import parse_spec


@pytest.mark.parametrize(
    ("args", "device", "placement"),
    [
        ("", "auto", None),
        ("parallelize=False", "auto", None),
        ("parallelize=True", "auto", Placement()),
        ("device=cuda,parallelize=True", "cuda", Placement()),
        ("device_map=auto", "auto", Placement()),
        ("device_map=balanced", "auto", Placement(device_map="balanced")),
        ("parallelize=True,device_map_option=sequential", "auto", Placement(device_map="sequential")),
        ("device_map=cuda:1", "cuda:1", None),
        ("device_map=1", "cuda:1", None),
        ("device_map=cpu,device=cpu", "cpu", None),
        (
            "parallelize=True,max_memory_per_gpu=10GiB,max_cpu_memory=1000,offload_folder=off",
            "auto",
            Placement(max_memory_per_gpu="10GiB", max_cpu_memory="1000", offload_folder="off"),
        ),
        ('device_map={"a": 0, "b": "disk"}', "auto", Placement(device_map='{"a": 0, "b": "disk"}')),
    ],
)
def test_where_a_checkpoint_goes(args, device, placement):
    spec = parse_spec("./here", args)
    assert (spec.device, spec.placement) == (device, placement)
    assert gpus_of(spec) == (None if placement else 0)


def test_parts_are_named_or_left_to_accelerate():
    assert Placement().parts is None
    assert Placement(device_map='{"a": 0, "b": "disk"}').parts == {"a": 0, "b": "disk"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("device_map=balance", "did you mean 'balanced'"),
        ('device_map={"a": }', "device_map is not JSON"),
        ("device_map={}", "it is empty"),
        ('device_map={"a": "gpu"}', "'a' goes to 'gpu'; allowed: cpu, disk, or a GPU"),
        ('device_map={"a": -1}', "'a' goes to -1"),
        ('device_map={"a": true}', "'a' goes to True"),
        ("device_map=auto,device_map_option=balanced", "are one thing"),
        ("parallelize=True,device_map=cuda:0", "contradict each other"),
        ("parallelize=True,device=cpu", "device cpu and device_map=auto contradict each other"),
        ("device_map=cuda:0,device=cuda:1", "device is given twice"),
        ("parallelize=True,max_memory_per_gpu=much", "a number of bytes, or as in 10GiB"),
        ("max_cpu_memory=-1", "a number of bytes, or as in 10GiB"),
        ("parallelize=perhaps", "True or False"),
    ],
)
def test_what_cannot_be_a_place_is_refused(args, said):
    with pytest.raises(ModelError, match=said):
        parse_spec("./here", args)


def test_spreading_needs_accelerate(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    found = hf.find_spec
    monkeypatch.setattr(hf, "find_spec", lambda name: None if name == "accelerate" else found(name))
    hf.check(parse_spec(str(tmp_path)))
    with pytest.raises(ModelError, match="device_map=auto needs the package accelerate: pip install"):
        hf.check(parse_spec(str(tmp_path), "parallelize=True"))
