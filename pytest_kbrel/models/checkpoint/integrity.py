"""Integrity of a checkpoint: complete and available before a load, and its files unchanged during a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import (
    ADAPTER_FILES,
    ADAPTER_WEIGHTS,
    INDEX,
    WEIGHTS,
    check_contents,
    check_folder,
    check_safetensors,
    looks_like_hub_id,
    tokenizer_files,
    weight_files,
)
from pytest_kbrel.models.checkpoint.spec import ModelSpec

# What a load reads of a folder beside its shards and the vocabulary's files. One that is not there counts:
# it may be there later.
_FILES = (WEIGHTS, INDEX, "config.json", "generation_config.json", *ADAPTER_FILES)
_TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "chat_template.jinja", "chat_template.json"),
)
# One of them is in every repository that has a tokenizer.
_ANY_TOKENIZER = (
    "tokenizer_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
)
# Of a sentence encoder, which has a folder for each of its parts.
_ENCODER_SUFFIXES = (".json", ".safetensors", ".txt", ".model")

Files = Callable[[], Iterable[Path]]


# Of a file: its inode, its size in bytes, and when it was last written (ns).
FileState = tuple[int, int, int]


class FileRecord:
    """State of a checkpoint's files when this record was made; :meth:`check` compares it with the present.

    Make it before the first file is read, and check it after whatever was computed from them. ``folders`` are
    pairs of a folder's label in messages and a function that returns the files in it that matter, missing
    ones too. Symbolic links are followed.

    A file has changed if its inode, its size or the time of its last change (ns) differs. This does not show
    a program that sets the time back; two changes within one tick of the file system's clock; a change on a
    network folder as long as this machine has its files cached; and writes through a shared memory map, which
    set the time only now and then, and never in a folder in memory (tmpfs).
    """

    def __init__(self, folders: Iterable[tuple[str, Files]]) -> None:
        self._folders = tuple(folders)
        self._recorded = self._states()
        self._error = ""

    def check(self) -> None:
        """Raise :class:`ModelError` if a file changed, came or went, from then on at each call.

        The first error says what changed, the others name the file.
        """
        if self._error:
            raise ModelError(self._error)
        before, now = self._recorded, self._states()
        if now == before:
            return
        changed = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        folder, path = changed[0]
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        what = f"{path.name} of {folder}{more} changed while it was being read"
        self._error = f"{what}; the first failure says more"
        raise ModelError(
            f"{what}; answers from before and after cannot be told apart; run again when nothing writes there, "
            "or gate a copy"
        )

    @property
    def is_current(self) -> bool:
        """Whether no file has changed."""
        return self._states() == self._recorded

    def _states(self) -> dict[tuple[str, Path], FileState | None]:
        return {
            (label, path): _state(path)
            for label, files in self._folders
            for path in files()
        }


def record_files(spec: ModelSpec) -> FileRecord:
    """Return the record of the local files of ``spec``: checkpoint, tokenizer and adapter.

    Files of the hub are not recorded: its cache names them by their contents and never writes to them again.
    Raises :class:`ModelError` if there are no weights.
    """
    folders: list[tuple[str, Files]] = []
    if spec.is_local:
        folder = Path(spec.location).absolute()
        gguf = [folder / spec.gguf_file] if spec.gguf_file else []
        weights = gguf or weight_files(folder)
        label = os.path.join(spec.path, spec.subfolder) if spec.subfolder else spec.path
        folders.append(
            (label, lambda: [*weights, *_in(folder, _FILES), *_of_tokenizer(folder)])
        )
    if spec.tokenizer and (own := Path(spec.tokenizer).absolute()).is_dir():
        folders.append((spec.tokenizer, lambda: _of_tokenizer(own)))
    if spec.peft and (adapter := Path(spec.peft).absolute()).is_dir():
        folders.append((spec.peft, lambda: _in(adapter, ADAPTER_FILES)))
    return FileRecord(folders)


def record_encoder_files(label: str, folder: Path) -> FileRecord:
    """Return the record of the files of a sentence encoder, in ``folder`` and its subfolders."""
    files = sorted(
        path
        for path in folder.absolute().rglob("*")
        if path.suffix in _ENCODER_SUFFIXES
    )
    return FileRecord([(label, lambda: files)])


def _in(folder: Path, names: Iterable[str]) -> list[Path]:
    return [folder / name for name in names]


def _of_tokenizer(folder: Path) -> list[Path]:
    return [*_in(folder, _TOKENIZER), *tokenizer_files(folder)]


def _state(path: Path) -> FileState | None:
    try:
        status = os.stat(path)
    except OSError:
        # Whatever keeps it from being looked at keeps it from being read.
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def check_availability(spec: ModelSpec) -> None:
    """Raise :class:`ModelError` for truncated or missing weights, adapter or tokenizer.

    Only headers of weights are read. Names on the hub pass if the process may download them.
    """
    if spec.is_local:
        folder: Path | None = Path(spec.location)
    else:
        names = [
            part for part in (spec.subfolder, spec.gguf_file or "config.json") if part
        ]
        folder = _offline_folder(spec.path, "/".join(names), revision=spec.revision)
        if folder is not None:
            check_folder(folder, gguf_file=spec.gguf_file)
    if folder is not None:
        check_contents(folder, gguf_file=spec.gguf_file)
    if (
        spec.peft
        and (folder := _beside("peft", spec.peft, ADAPTER_WEIGHTS)) is not None
    ):
        check_safetensors(folder / ADAPTER_WEIGHTS)
    if spec.tokenizer:
        _beside("tokenizer", spec.tokenizer, *_ANY_TOKENIZER)


def _beside(what: str, location: str, *names: str) -> Path | None:
    """Return the folder of an adapter or tokenizer, ``None`` if it may be downloaded or is a file."""
    if Path(location).exists():
        return Path(location) if Path(location).is_dir() else None
    if not looks_like_hub_id(location):
        raise ModelError(
            f"model-args: {what}={location}: no such folder; allowed is a folder, or a hub id org/name"
        )
    return _offline_folder(location, *names)


def _offline_folder(repository: str, *names: str, revision: str = "") -> Path | None:
    """Return the folder of the hub's cache that holds one of the files ``names`` of a ``repository``.

    ``None`` if the process may download what is missing. Raises :class:`ModelError` if ``HF_HUB_OFFLINE`` or
    ``TRANSFORMERS_OFFLINE`` is set and the file is not in the cache.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    if not constants.HF_HUB_OFFLINE:
        return None
    cache = constants.HF_HUB_CACHE
    for name in names:
        file = try_to_load_from_cache(
            repository, name, cache_dir=cache, revision=revision or None
        )
        if isinstance(file, str):
            return Path(file).parent
    version = f" in revision {revision}" if revision else ""
    raise ModelError(
        f"{repository}: no such folder here, and the hub's cache ({cache}) has no {names[0]} of it{version}; "
        "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids to fetch it; allowed: a checkpoint that is there, "
        "or a run that may fetch it"
    )
