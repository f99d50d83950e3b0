"""A checkpoint spread over devices: the same numbers, on the same ways of sharing, and nothing unchecked."""

from __future__ import annotations

import dataclasses
import json
import warnings
from types import SimpleNamespace

import pytest
import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    Placement,
    parse_spec,
)
from pytest_kbrel.models.hf import devices
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.devices import (
    check_placement,
    describe_devices,
    device_map_options,
    devices_of,
)
from pytest_kbrel.models.hf.loading import load_checkpoint
from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.records import GenerateRequest, ScoreRequest
from tests.models import tiny_checkpoints

PROMPTS = ("Paris is", "The capital of Japan is", "The capital of Japan is not", "who")
SCORED = [
    ScoreRequest(prompt=p, continuation=c)
    for p in PROMPTS
    for c in (" the", " a city", " Tokyo")
]
WRITTEN = [
    *(
        GenerateRequest(prompt=p, max_new_tokens=8, stop=(), steps=True)
        for p in PROMPTS
    ),
    GenerateRequest(prompt="Paris", max_new_tokens=4, stop=(), num_beams=2),
]
MAPPED = json.dumps(
    {
        **{
            "model.embed_tokens": "cpu",
            "model.rotary_emb": "cpu",
            "model.layers.0": "cpu",
        },
        **{"model.layers.1": "disk", "model.norm": "cpu", "lm_head": "disk"},
    }
)


def placed(embedding="cuda:0", device="cuda:0", device_map=None, **more):
    weight = SimpleNamespace(device=torch.device(embedding))
    return SimpleNamespace(
        device=torch.device(device),
        hf_device_map=device_map,
        get_input_embeddings=lambda: SimpleNamespace(weight=weight),
        parameters=lambda: [weight],
        **more,
    )


@pytest.mark.parametrize(
    ("device_map", "devices", "words"),
    [
        (None, ["cuda:0"], "cuda:0"),
        ({"": 0}, ["cuda:0"], "cuda:0"),
        ({"a": 0, "b": 1, "c": 1}, ["cuda:0", "cuda:1"], "cuda x 2"),
        ({"a": 0, "b": "cuda:1"}, ["cuda:0", "cuda:1"], "cuda x 2"),
        ({"a": 0, "b": "cpu", "c": "disk"}, ["cuda:0"], "cuda:0"),
    ],
)
def test_which_devices_compute_a_model(device_map, devices, words):
    model = placed(device_map=device_map)
    assert devices_of(model) == tuple(map(torch.device, devices))
    assert describe_devices(model) == words


def test_a_batch_has_the_memory_of_the_fullest_device(monkeypatch):
    spec = ModelSpec(text="x", path="x")
    free = {"cpu": 8 * 2**30, "cuda:0": 6 * 2**30, "cuda:1": 3 * 2**30}
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    monkeypatch.setattr(devices, "free_bytes", lambda device: free[str(device)])
    monkeypatch.setattr(devices, "bytes_a_token", lambda model: 1e6)
    result = [
        devices.measure_budget(placed(device_map=device_map), spec)
        for device_map in ({"a": 0, "b": 1}, {"a": 1, "b": 0})
    ]
    expected = devices.tokens_within(3 * 2**30, 1e6, devices.GPU_MOST)
    assert result == [expected, expected]


def test_an_offloaded_embedding_is_refused():
    spec = ModelSpec(text="x", path="x", placement=Placement())
    check_placement(spec, placed())
    for model in (placed(embedding="meta", device="meta"), placed(embedding="cpu")):
        with pytest.raises(
            ModelError, match=r"device_map=auto leaves the first layers on the disk"
        ):
            check_placement(spec, model)


def test_what_accelerate_is_told():
    assert device_map_options(Placement()) == {"device_map": "auto"}
    assert device_map_options(
        Placement(device_map='{"a": 0}', offload_folder="off")
    ) == {
        "device_map": {"a": 0},
        "offload_folder": "off",
    }
    pytest.importorskip("accelerate")
    given = Placement(max_memory_per_gpu="1 GiB", max_cpu_memory="1000")
    most = device_map_options(given)["max_memory"]
    assert most["cpu"] == 1000
    assert all(value == "1GiB" for device, value in most.items() if device != "cpu")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return tiny_checkpoints.make_checkpoint(tmp_path_factory.mktemp("llama"), "llama")


@pytest.fixture(scope="module")
def right(checkpoint):
    model = load(parse_spec(str(checkpoint), device="cpu"), threads=1)
    return model, model.score(SCORED), model.generate(WRITTEN)


def hold(right, model):
    one, scored, written = right
    for a, b in zip(scored, model.score(SCORED), strict=True):
        assert a.probabilities == pytest.approx(b.probabilities, abs=1e-6)
    assert [a.text for a in written] == [b.text for b in model.generate(WRITTEN)]
    assert model.engine == one.engine


@pytest.mark.parametrize(
    "args", ["parallelize=True,max_cpu_memory=120KB", f"device_map={MAPPED}"]
)
def test_layers_on_the_disk_change_no_answer_and_no_digest(checkpoint, right, args):
    pytest.importorskip("accelerate")
    if torch.cuda.is_available():
        pytest.skip("on a GPU they would go there")
    model = load(parse_spec(str(checkpoint), args), threads=1)
    hold(right, model)
    mine, theirs = model.describe(), right[0].describe()
    assert (mine.device, theirs.device) == ("cpu, partly offloaded", "cpu")
    assert dataclasses.replace(mine, device="cpu") == theirs


def test_offloaded_weights_are_checked_like_others(tmp_path):
    pytest.importorskip("accelerate")
    tiny_checkpoints.make_checkpoint(tmp_path, "llama")

    def spoil(tensors):
        tensors["model.layers.1.mlp.up_proj.weight"][3, 5] = float("nan")

    tiny_checkpoints.change_weights(tmp_path, spoil)
    with pytest.raises(
        ModelError, match=r"NaN or infinity in model\.layers\.1\.mlp\.up_proj\.weight"
    ):
        load(parse_spec(str(tmp_path), f"device_map={MAPPED}"), threads=1)


@pytest.fixture(scope="module")
def lazy_tensors():
    """Return the device of PyTorch's lazy tensors, which refuse to be mixed with those of a CPU."""
    pytest.importorskip("torch._lazy.ts_backend").init()
    return "lazy:0"


@pytest.fixture
def second_device(lazy_tensors, monkeypatch):
    """Return a device beside the CPU."""
    # It knows no inference mode.
    monkeypatch.setattr(torch._C, "_InferenceMode", lambda mode: torch.no_grad())
    return lazy_tensors


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "bloom", "t5", "rwkv"])
def test_layers_on_two_devices_answer_as_on_one(kind, tmp_path, second_device):
    accelerate = pytest.importorskip("accelerate")
    folder = tiny_checkpoints.make_checkpoint(tmp_path, kind)
    model = load(parse_spec(str(folder), device="cpu"), threads=1)
    right = model, model.score(SCORED), model.generate(WRITTEN)
    parts = load_checkpoint(parse_spec(str(folder), device="cpu"))
    spread = accelerate.dispatch_model(
        parts.model,
        every_second_layer(parts.model, second_device),
        main_device="cpu",
        skip_keys=parts.model._skip_keys_device_placement,
    )
    assert {weights.device.type for weights in spread.parameters()} == {"cpu", "lazy"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hold(right, HfModel(dataclasses.replace(parts, model=spread)))


def every_second_layer(model, device):
    """Return a device map: every second layer and a head of its own on ``device``, the rest on the CPU."""
    names = [name for name, _ in model.named_modules()]
    layers = [
        n
        for n in names
        if n.rpartition(".")[2].isdigit()
        and sum(p.isdigit() for p in n.split(".")) == 1
    ]
    result = {name: device if place % 2 else "cpu" for place, name in enumerate(layers)}
    for name, part in model.named_modules():
        if not list(part.children()) and not name.startswith(
            tuple(f"{layer}." for layer in layers)
        ):
            is_head = (
                part is model.get_output_embeddings()
                and not model.config.tie_word_embeddings
            )
            result[name] = device if is_head else "cpu"
    return result


def test_attention_goes_without_cudnn_and_the_setting_is_put_back(tmp_path):
    def is_on():
        return torch.backends.cuda.cudnn_sdp_enabled()

    path = tiny_checkpoints.make_checkpoint(tmp_path / "t5", "t5")
    model = load(parse_spec(str(path), device="cpu")).parts.model
    seen = []
    for part in (model, model.get_encoder()):
        part.register_forward_pre_hook(lambda *_: seen.append(is_on()))
    ids = torch.tensor([[5, 6]])
    before = is_on()
    model(input_ids=ids, decoder_input_ids=ids)
    with pytest.raises(IndexError):
        model(input_ids=ids + 10**6, decoder_input_ids=ids)
    assert (set(seen), len(seen)) == ({False}, 4)
    assert before
    assert is_on()
