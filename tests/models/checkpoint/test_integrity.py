"""Checkpoints that are complete and available, and records of their files that show changes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import (
    check_availability,
    record_files,
)
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    parse_spec,
)
from pytest_kbrel.models.registry import check_spec
from pytest_kbrel.reference import resolve

# What a load reads of a folder; each file is as good as its name here.
READ = (
    "model.safetensors",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "vocab.json",
    "tokenizer.model",
    "o200k.tiktoken",
    "adapter_config.json",
    "adapter_model.safetensors",
)
# What else lies there, and what a training run writes beside its weights.
IDLE = (
    "README.md",
    "optimizer.pt",
    "trainer_state.json",
    "other.safetensors",
    "sub/config.json",
)


# Seconds since 1970.
AGO = 1_700_000_000


def made(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
        # Two changes within a tick of the file system's clock have one time.
        os.utime(folder / name, (AGO, AGO))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path / "checkpoint", *READ, *IDLE)


def spec_of(folder: Path, **more: str) -> ModelSpec:
    return ModelSpec(text=str(folder), path=str(folder), **more)


def overwrite(file: Path) -> None:
    """Write as many other bytes into the file that is there."""
    with file.open("r+") as stream:
        stream.write(file.name.upper())


def lengthen(file: Path) -> None:
    """Let a file grow whose time is then set back."""
    then = file.stat()
    with file.open("a") as stream:
        stream.write("more")
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))


def replace(file: Path) -> None:
    """Put another file of the same size and time in its place."""
    then = file.stat()
    new = made(file.parent, "new") / "new"
    new.write_text(file.name.upper())
    os.utime(new, ns=(then.st_atime_ns, then.st_mtime_ns))
    new.replace(file)


def swap(file: Path) -> None:
    """Put a link to a copy in its place, which has its size and time."""
    shutil.copy2(file, file.with_name("copy"))
    file.unlink()
    file.symlink_to("copy")


@pytest.mark.parametrize("change", [lengthen, replace, swap])
def test_a_change_of_a_file_is_told_with_its_folder(
    folder: Path, change: Callable
) -> None:
    files = record_files(spec_of(folder))
    files.check()
    change(folder / "model.safetensors")
    said = (
        rf"^model\.safetensors of {re.escape(str(folder))} changed while it was being read; answers from "
        "before and after cannot be told apart; run again when nothing writes there, or gate a copy$"
    )
    with pytest.raises(ModelError, match=said):
        files.check()


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("change", [overwrite, Path.unlink])
def test_each_file_that_a_load_reads_counts(
    folder: Path, name: str, change: Callable
) -> None:
    files = record_files(spec_of(folder))
    change(folder / name)
    with pytest.raises(ModelError, match=rf"^{re.escape(name)} of "):
        files.check()


def test_other_files_beside_them_do_not_count(folder: Path) -> None:
    files = record_files(spec_of(folder))
    for name in IDLE:
        overwrite(folder / name)
    (folder / IDLE[0]).unlink()
    made(folder, "training.log", "model-00001-of-00002.safetensors")
    (folder / "model.safetensors").read_bytes()
    (folder / "config.json").chmod(0o600)
    files.check()


def test_shards_and_their_index_count_and_so_does_a_whole_file_that_comes(
    tmp_path: Path,
) -> None:
    for name in ("b.safetensors", "model.safetensors.index.json", "model.safetensors"):
        folder = made(
            tmp_path / name / "checkpoint",
            "config.json",
            "a.safetensors",
            "b.safetensors",
        )
        index = folder / "model.safetensors.index.json"
        index.write_text('{"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}')
        os.utime(index, (AGO, AGO))
        files = record_files(spec_of(folder))
        files.check()
        (folder / name).write_text("other")
        with pytest.raises(ModelError, match=rf"^{re.escape(name)} of "):
            files.check()


def test_a_change_is_explained_once_and_stays(folder: Path) -> None:
    files = record_files(spec_of(folder))
    kept = shutil.copy2(folder / "config.json", folder.parent)
    overwrite(folder / "config.json")
    with pytest.raises(ModelError, match="run again"):
        files.check()
    shutil.copy2(kept, folder / "config.json")
    for _ in range(2):
        with pytest.raises(
            ModelError,
            match=r"^config\.json of .* changed while it was being read; the first failure says",
        ):
            files.check()


@pytest.mark.parametrize(
    ("key", "name", "said"),
    [
        ("peft", "adapter_model.safetensors", "adapter_model.safetensors of "),
        ("peft", "adapter_config.json", "adapter_config.json of "),
        ("tokenizer", "tokenizer.json", "tokenizer.json of "),
        ("tokenizer", "vocab.json", "vocab.json of "),
    ],
)
def test_an_adapter_and_a_tokenizer_elsewhere_count(
    folder: Path, tmp_path: Path, key: str, name: str, said: str
) -> None:
    other = made(
        tmp_path / "other",
        "adapter_model.safetensors",
        "adapter_config.json",
        "tokenizer.json",
    )
    made(other, "vocab.json", "model.safetensors")
    for path in (str(folder), "org/name"):
        files = record_files(ModelSpec(text=path, path=path, **{key: str(other)}))  # type: ignore[arg-type]
        overwrite(other / "model.safetensors")
        files.check()
        (other / name).write_text(f"{path} and more")
        with pytest.raises(
            ModelError, match=f"^{re.escape(said)}{re.escape(str(other))} changed"
        ):
            files.check()


def test_of_gguf_weights_their_file_counts(tmp_path: Path) -> None:
    folder = made(tmp_path / "checkpoint", "model.gguf", "other.gguf")
    files = record_files(spec_of(folder, gguf_file="model.gguf"))
    overwrite(folder / "other.gguf")
    files.check()
    overwrite(folder / "model.gguf")
    with pytest.raises(ModelError, match=r"^model\.gguf of "):
        files.check()


def test_links_are_followed(folder: Path, tmp_path: Path) -> None:
    latest, newer = tmp_path / "latest", tmp_path / "newer"
    latest.symlink_to(folder)
    files, same = record_files(spec_of(latest)), record_files(spec_of(folder))
    made(newer, *READ)
    latest.unlink()
    latest.symlink_to(newer)
    same.check()
    with pytest.raises(ModelError, match="latest and 14 more changed"):
        files.check()


def test_a_relative_path_stays_the_same_in_another_working_folder(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    files = record_files(ModelSpec(text="./checkpoint", path="./checkpoint"))
    monkeypatch.chdir(made(tmp_path / "else", "x"))
    files.check()
    overwrite(folder / "config.json")
    with pytest.raises(ModelError, match=r"^config\.json of \./checkpoint changed"):
        files.check()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty cache of a hub that cannot be asked."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def cached(
    cache: Path, repository: str, files: Path | dict[str, bytes], revision: str = "main"
) -> Path:
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
    with pytest.raises(
        ModelError, match=r"model\.safetensors: the safetensors are cut short"
    ):
        check_spec(parse_spec("org/name", device="cpu"))
    weights.unlink()
    with pytest.raises(ModelError, match="no weights"):
        check_spec(parse_spec("org/name", device="cpu"))


def test_an_adapter_and_a_tokenizer_of_another_place_are_looked_for(
    cache: Path, checkpoint: Path, tmp_path: Path
) -> None:
    for args, said in (
        (
            "peft=./nowhere",
            r"^model-args: peft=\./nowhere: no such folder; allowed is a folder, or a hub id",
        ),
        ("tokenizer=/no/where", r"^model-args: tokenizer=/no/where: no such folder"),
        ("peft=org/adapter", r"^org/adapter: .* has no adapter_model\.safetensors"),
        (
            "tokenizer=org/tokenizer",
            r"^org/tokenizer: .* has no tokenizer_config\.json",
        ),
    ):
        with pytest.raises(ModelError, match=said):
            check_availability(parse_spec(str(checkpoint), args))
    cached(cache, "org/tokenizer", {"tokenizer.json": b"{}"})
    check_availability(parse_spec(str(checkpoint), "tokenizer=org/tokenizer"))
    check_availability(parse_spec(str(checkpoint), f"tokenizer={checkpoint}"))
    cached(cache, "org/adapter", {"adapter_model.safetensors": b"torn"})
    with pytest.raises(
        ModelError,
        match=r"adapter_model\.safetensors: no safetensors file: its 4 bytes",
    ):
        check_availability(parse_spec(str(checkpoint), "peft=org/adapter"))
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    shutil.copy(checkpoint / "model.safetensors", adapter / "adapter_model.safetensors")
    check_availability(parse_spec(str(checkpoint), f"peft={adapter}"))


@pytest.mark.parametrize("device", ["cuda:7", "nonsense"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(device: str) -> None:
    with pytest.raises(
        ModelError, match=rf"^device '{device}' is not available: allowed .*: auto, cpu"
    ):
        check_spec(parse_spec("reference", device=device))


def test_devices_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_kbrel.models.hf import devices

    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    assert devices.available_devices()[:5] == ["auto", "cpu", "cuda:0", "cuda:1", "mps"]
    for name in ("auto", "cpu", "cuda", "cuda:0", "cuda:1", "mps"):
        devices.check_device(name)
    with pytest.raises(
        ModelError,
        match=r"'cuda:2' is not available: .*: auto, cpu, cuda:0, cuda:1, mps",
    ):
        devices.check_device("cuda:2")
