"""Files of a checkpoint's folder: checked and digested without loading them, and unchanged during a run.

A copy or download that broke off, and a file that is something else, are recognised by the first bytes. The
format of safetensors (https://github.com/huggingface/safetensors#format): 8 bytes with the length of the
header, little-endian; the header, a JSON object; the tensors, up to the last byte that it names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel.errors import ModelError
from pytest_kbrel.untrusted import parse, read_json

if TYPE_CHECKING:
    from pytest_kbrel.models.checkpoint.spec import ModelSpec

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
# The factor an adapter is scaled by stands in its settings.
ADAPTER_FILES = ("adapter_config.json", ADAPTER_WEIGHTS)

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.msgpack", "*.h5")
_TOKENIZER_FILES = (
    "tokenizer.json",
    "*.model",
    "vocab.*",
    "merges.txt",
    "*.tiktoken",
    "added_tokens.json",
)
# What of a tokenizer's own config changes the tokens of a text, beyond what its vocabulary files say.
_TOKENIZER_SETTINGS = (
    *(
        "add_prefix_space",
        "do_lower_case",
        "keep_accents",
        "legacy",
        "split_special_tokens",
    ),
    *("strip_accents", "tokenize_chinese_chars", "added_tokens_decoder"),
)


def looks_like_hub_id(path: str) -> bool:
    """Return True if a path can be a hub id: ``org/name``, with no folder ``org`` here."""
    return bool(_HUB_ID.fullmatch(path)) and not Path(path).parent.is_dir()


def check_folder(folder: Path, *, gguf_file: str = "") -> None:
    """Raise :class:`ModelError` unless ``folder`` holds a readable config.json and safetensors weights."""
    if gguf_file:
        if not (folder / gguf_file).is_file():
            raise ModelError(f"{folder}: no file {gguf_file}; found {_listing(folder)}")
        return
    if not (folder / "config.json").is_file():
        hint = _gguf_hint(folder)
        if (folder / "adapter_config.json").is_file():
            hint = f"; this is an adapter: name its base model and add model-args peft={folder}"
        raise ModelError(
            f"{folder}: no config.json, so no checkpoint; found {_listing(folder)}{hint}"
        )
    read_config(folder)
    weight_files(folder)


def check_contents(folder: Path, *, gguf_file: str = "") -> dict[str, str]:
    """Return the number format of each tensor of ``folder`` by its name, nothing of a GGUF file.

    Only headers are read. Raises :class:`ModelError` for weights that are truncated or not there, and for a
    tensor that is in two shards, or in another than the index says.
    """
    for file in tokenizer_files(folder):
        beginning_of(file)
    if gguf_file:
        if (begin := beginning_of(folder / gguf_file)[:4]) != b"GGUF":
            raise ModelError(
                f"{folder / gguf_file}: no GGUF file: it begins with {begin!r}; allowed: b'GGUF'"
            )
        return {}
    formats = {}
    places = _weight_map(folder)
    for file in weight_files(folder):
        for described, _ in check_safetensors(file):
            name, formats[name], _ = json.loads(described)
            if (place := places.setdefault(name, file.name)) != file.name:
                raise ModelError(
                    f"{folder}: the tensor {name} is in {file.name}, and in {place} by {INDEX} or a second time; "
                    "programs differ in which they read; allowed: each tensor once, where the index says"
                )
    return formats


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json as a dict; raise :class:`ModelError` when it is not a JSON object."""
    file = folder / "config.json"
    beginning_of(file)
    try:
        config = read_json(file)
    except (OSError, ValueError) as error:
        raise ModelError(f"{file}: unreadable: {error}") from None
    if not isinstance(config, dict):
        raise ModelError(
            f"{file}: a JSON object is needed, found {type(config).__name__}"
        )
    return config


def weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the safetensors files a load would read, sorted by name.

    Raises :class:`ModelError` for a folder without safetensors or with two sets of them, an unreadable index
    or a missing shard.
    """
    names = sorted({*_weight_map(folder).values()})
    missing = [
        name
        for name in names
        if Path(name).name != name or not (folder / name).is_file()
    ]
    if missing:
        raise ModelError(
            f"{folder / INDEX}: the shards {missing}; each must be a file next to the index"
        )
    if names and (names == [WEIGHTS] or not (folder / WEIGHTS).is_file()):
        return tuple(folder / name for name in names)
    if (folder / WEIGHTS).is_file():
        if others := [INDEX] if names else _names(folder, "model-*-of-*.safetensors"):
            raise ModelError(
                f"{folder}: two sets of weights: {WEIGHTS}, which transformers reads, and {others[0]}, which "
                "other programs read; allowed: one of them"
            )
        return (folder / WEIGHTS,)
    pickles = _names(folder, *_PICKLES)
    if pickles and not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{folder}: only pickled weights ({', '.join(pickles[:3])}), which can run code when opened; "
            f"allowed are safetensors: convert with save_pretrained{_gguf_hint(folder)}"
        )
    raise ModelError(
        f"{folder}: no weights: model.safetensors or its index is needed; found {_listing(folder)}{_gguf_hint(folder)}"
    )


def base_of_adapter(folder: Path) -> tuple[str, str] | None:
    """Return the base model that an adapter's folder names and its revision; ``None`` of another folder."""
    try:
        settings = read_json(folder / ADAPTER_FILES[0])
        base, revision = (
            settings.get(key) or "" for key in ("base_model_name_or_path", "revision")
        )
    except (OSError, ValueError, AttributeError):
        return None
    is_alone = base and not any((folder / name).exists() for name in (WEIGHTS, INDEX))
    return (str(base), str(revision)) if is_alone else None


def unread_weights(folder: Path) -> list[str]:
    """Return the names of other weights that lie beside :func:`weight_files`."""
    read = {file.name for file in weight_files(folder)}
    names = _names(folder, "model*.safetensors", "pytorch_model*.bin")
    return [name for name in names if name not in read]


def _weight_map(folder: Path) -> dict[str, str]:
    """Return the shard of each tensor by the index; empty without an index."""
    index = folder / INDEX
    if not index.is_file():
        return {}
    try:
        places: dict[str, str] = read_json(index)["weight_map"]
        if not all(isinstance(name, str) for name in places.values()):
            raise TypeError("names of files are texts")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ModelError(f"{index}: unreadable index of shards: {error!r}") from None
    if not places:
        raise ModelError(f"{index}: the shards are none; allowed: files next to it")
    return places


def _names(folder: Path, *patterns: str) -> list[str]:
    return sorted(p.name for pattern in patterns for p in folder.glob(pattern))


def tokenizer_files(folder: Path) -> tuple[Path, ...]:
    """Return the vocabulary files in ``folder``, sorted by name."""
    names = set(_names(folder, *_TOKENIZER_FILES))
    return tuple(folder / name for name in sorted(names) if (folder / name).is_file())


def tokenizer_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of tokenizer_config.json that change a text's tokens; empty if it is unreadable."""
    config = _tokenizer_config(folder)
    return {
        name: config[name]
        for name in _TOKENIZER_SETTINGS
        if config.get(name) is not None
    }


def bos_setting(folder: Path) -> bool | None:
    """Return ``add_bos_token`` of tokenizer_config.json, ``None`` without it."""
    adds_bos = _tokenizer_config(folder).get("add_bos_token")
    return adds_bos if isinstance(adds_bos, bool) else None


def _tokenizer_config(folder: Path) -> dict[str, Any]:
    try:
        config = read_json(folder / "tokenizer_config.json")
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def digest_of_files(files: Iterable[Path], extra: Any) -> str:
    """Return the sha256 (hex) over the files' contents in order and over ``extra`` (JSON-able).

    Contents only: the same bytes under another name or path have the same digest.
    """
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    total.update(json.dumps(extra, sort_keys=True, default=str).encode())
    return total.hexdigest()


def _gguf_hint(folder: Path) -> str:
    names = _names(folder, "*.gguf")
    return f"; for GGUF weights add model-args gguf_file={names[0]}" if names else ""


def _listing(folder: Path) -> str:
    names = _names(folder, "*")
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more or "nothing"


# What a clone without Git LFS has in place of each large file.
_POINTER = b"version https://git-lfs.github.com/spec/"
# The safetensors library reads no longer header, in bytes.
_LONGEST_HEADER = 100_000_000
_CHUNK = 2**22


def beginning_of(file: Path) -> bytes:
    """Return the first bytes of a file.

    Raises :class:`ModelError` for a Git LFS pointer in place of the file, or an unreadable file.
    """
    try:
        with file.open("rb") as stream:
            beginning = stream.read(64)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from None
    if beginning.startswith(_POINTER):
        raise ModelError(
            f"{file}: this is a Git LFS pointer, the note on a file that was not fetched; 'git lfs pull' in "
            "its repository fetches it"
        )
    return beginning


def check_safetensors(file: Path) -> list[tuple[str, range]]:
    """Return the name, format and shape of each tensor as JSON, with the places of its bytes.

    Raises :class:`ModelError` unless the file is a complete safetensors file.
    """
    beginning, size = beginning_of(file), file.stat().st_size
    length = int.from_bytes(beginning[:8], "little")
    if size < 8 or length > _LONGEST_HEADER:
        raise ModelError(
            f"{file}: no safetensors file: its {size} bytes begin with {beginning[:16]!r}"
        )
    tensors, needed = [], 8 + length
    what = f"a header of {length} bytes"
    if needed <= size:
        tensors = _tensors(file, length)
        needed = max((place.stop for _, place in tensors), default=needed)
        what = f"{needed} bytes by its header"
    if size < needed:
        raise ModelError(
            f"{file}: the safetensors are cut short: the file has {size} bytes and needs {what}; copy it again"
        )
    if size > needed:
        raise ModelError(
            f"{file}: no whole safetensors file: it has {size} bytes, and by its header {needed}"
        )
    return tensors


def _tensors(file: Path, length: int) -> list[tuple[str, range]]:
    tensors = []
    try:
        with file.open("rb") as stream:
            header = parse(stream.read(8 + length)[8:])
        header.pop("__metadata__", None)
        for name, about in header.items():
            begin, end = about["data_offsets"]
            if not 0 <= begin <= end:
                raise ValueError(f"the offsets {begin} and {end}")
            described = json.dumps([name, about["dtype"], about["shape"]])
            tensors.append((described, range(8 + length + begin, 8 + length + end)))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelError(
            f"{file}: no safetensors file: its header is broken: {type(error).__name__}: {error}"
        ) from None
    return tensors


def digest_of_tensors(files: Iterable[Path]) -> str:
    """Return the sha256 (hex) over names, formats, shapes and bytes of all tensors of safetensors files.

    The same tensors in other shards, in another order or with other metadata have the same digest. Files are
    read once, by several threads, and never held in memory. Raises :class:`ModelError` for another file.
    """
    tensors = [
        (file, about, place)
        for file in files
        for about, place in check_safetensors(file)
    ]
    with ThreadPoolExecutor() as threads:
        described = sorted(threads.map(_described, tensors))
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _described(tensor: tuple[Path, str, range]) -> tuple[str, str]:
    """Return what a file says about a tensor, and the digest of its bytes."""
    file, about, place = tensor
    total, left = hashlib.sha256(), len(place)
    with file.open("rb") as stream:
        stream.seek(place.start)
        while left and (chunk := stream.read(min(left, _CHUNK))):
            total.update(chunk)
            left -= len(chunk)
    if left:
        raise ValueError("it ends early")
    return about, total.hexdigest()


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
    folders = []
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
