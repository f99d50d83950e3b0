"""What a run would find out only when it loads its checkpoint, found out before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.integrity import check_availability
from pytest_kbrel.models.hf.spec import parse_spec
from pytest_kbrel.models.registry import check_spec
from pytest_kbrel.reference import resolve


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty cache of a hub that cannot be asked."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def cached(cache: Path, repository: str, files: Path | dict[str, bytes], revision: str = "main") -> Path:
    """Lay a repository into the cache as huggingface_hub does."""
    place = cache / f"models--{repository.replace('/', '--')}"
    (place / "refs").mkdir(parents=True, exist_ok=True)
    (place / "refs" / revision).write_text("abc")
    folder = place / "snapshots" / "abc"
    if isinstance(files, Path):
        shutil.copytree(files, folder)
    else:
        folder.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    return Path(resolve("")[0])


def test_a_name_of_the_hub_that_is_not_in_its_cache_is_refused_where_nothing_may_be_fetched(
    cache: Path, checkpoint: Path
) -> None:
    said = r"^org/name: no such folder here, and the hub's cache \(.*/hub\) has no config\.json of it; HF"
    with pytest.raises(ModelError, match=said):
        check_spec(parse_spec("org/name", device="cpu"))
    folder = cached(cache, "org/name", checkpoint)
    check_spec(parse_spec("org/name", device="cpu"))
    with pytest.raises(ModelError, match="of it in revision v2; "):
        check_spec(parse_spec("org/name", "revision=v2", device="cpu"))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"model\.safetensors: the safetensors are cut short"):
        check_spec(parse_spec("org/name", device="cpu"))
    weights.unlink()
    with pytest.raises(ModelError, match="no weights"):
        check_spec(parse_spec("org/name", device="cpu"))


def test_a_name_of_the_hub_passes_where_it_may_be_fetched(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    check_availability(parse_spec("org/name", "peft=org/adapter,tokenizer=org/tokenizer"))


def test_an_adapter_and_a_tokenizer_of_another_place_are_looked_for(
    cache: Path, checkpoint: Path, tmp_path: Path
) -> None:
    for args, said in (
        ("peft=./nowhere", r"^model-args: peft=\./nowhere: no such folder; allowed is a folder, or a hub id"),
        ("tokenizer=/no/where", r"^model-args: tokenizer=/no/where: no such folder"),
        ("peft=org/adapter", r"^org/adapter: .* has no adapter_model\.safetensors"),
        ("tokenizer=org/tokenizer", r"^org/tokenizer: .* has no tokenizer_config\.json"),
    ):
        with pytest.raises(ModelError, match=said):
            check_availability(parse_spec(str(checkpoint), args))
    cached(cache, "org/tokenizer", {"tokenizer.json": b"{}"})
    check_availability(parse_spec(str(checkpoint), "tokenizer=org/tokenizer"))
    check_availability(parse_spec(str(checkpoint), f"tokenizer={checkpoint}"))
    cached(cache, "org/adapter", {"adapter_model.safetensors": b"torn"})
    with pytest.raises(ModelError, match=r"adapter_model\.safetensors: no safetensors file: its 4 bytes"):
        check_availability(parse_spec(str(checkpoint), "peft=org/adapter"))
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    shutil.copy(checkpoint / "model.safetensors", adapter / "adapter_model.safetensors")
    check_availability(parse_spec(str(checkpoint), f"peft={adapter}"))


def test_shards_that_are_cut_short_are_refused_before_anything_is_loaded(
    checkpoint: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(checkpoint, folder)
    (folder / "model.safetensors").rename(folder / "one.safetensors")
    index = {"weight_map": {"x": "one.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    check_spec(parse_spec(str(folder), device="cpu"))
    with (folder / "one.safetensors").open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(ModelError, match=r"one\.safetensors: no whole safetensors file"):
        check_spec(parse_spec(str(folder), device="cpu"))


@pytest.mark.parametrize("device", ["cuda:7", "nonsense"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(device: str) -> None:
    with pytest.raises(ModelError, match=rf"^device '{device}' is not available: allowed .*: auto, cpu"):
        check_spec(parse_spec("reference", device=device))


def test_devices_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_kbrel.models.hf import devices

    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    assert devices.devices()[:5] == ["auto", "cpu", "cuda:0", "cuda:1", "mps"]
    for name in ("auto", "cpu", "cuda", "cuda:0", "cuda:1", "mps"):
        devices.check_there(name)
    with pytest.raises(ModelError, match=r"'cuda:2' is not available: .*: auto, cpu, cuda:0, cuda:1, mps"):
        devices.check_there("cuda:2")
