"""Whether a checkpoint is whole and within reach, found out before anything of it is loaded."""

from __future__ import annotations

from pathlib import Path

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import check_contents, check_folder, looks_like_hub_id
from pytest_kbrel.models.checkpoint.weight_headers import check_safetensors
from pytest_kbrel.models.hf.spec import ModelSpec

_ADAPTER = "adapter_model.safetensors"
# One of them is in every repository that has a tokenizer.
_TOKENIZER = ("tokenizer_config.json", "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def check_at_hand(spec: ModelSpec) -> None:
    """Find weights that are cut short or no weights, and names of the hub that cannot be resolved.

    Of weights the headers are read. The hub is not asked: its names pass where the process may fetch from it.
    The adapter and a tokenizer of another place are looked for as well. Raises :class:`ModelError`.
    """
    if spec.is_local:
        folder: Path | None = Path(spec.location)
    else:
        names = [part for part in (spec.subfolder, spec.gguf_file or "config.json") if part]
        folder = _offline_folder(spec.path, "/".join(names), revision=spec.revision)
        if folder is not None:
            check_folder(folder, gguf_file=spec.gguf_file)
    if folder is not None:
        check_contents(folder, gguf_file=spec.gguf_file)
    if spec.peft and (folder := _beside("peft", spec.peft, _ADAPTER)) is not None:
        check_safetensors(folder / _ADAPTER)
    if spec.tokenizer:
        _beside("tokenizer", spec.tokenizer, *_TOKENIZER)


def _beside(what: str, place: str, *names: str) -> Path | None:
    """Return the folder of what stands beside a checkpoint, ``None`` where it may be fetched or is a file."""
    if Path(place).exists():
        return Path(place) if Path(place).is_dir() else None
    if not looks_like_hub_id(place):
        raise ModelError(
            f"model-args: {what}={place}: no such folder; allowed is a folder, or a hub id org/name"
        )
    return _offline_folder(place, *names)


def _offline_folder(repository: str, *names: str, revision: str = "") -> Path | None:
    """Return the folder of the hub's cache that holds one of the files ``names`` of a ``repository``.

    ``None`` where the process may fetch what is missing. Raises :class:`ModelError` where it may not, since
    ``HF_HUB_OFFLINE`` or ``TRANSFORMERS_OFFLINE`` is set, and the file is not in the cache.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    if not constants.HF_HUB_OFFLINE:
        return None
    cache = constants.HF_HUB_CACHE
    for name in names:
        found = try_to_load_from_cache(repository, name, cache_dir=cache, revision=revision or None)
        if isinstance(found, str):
            return Path(found).parent
    version = f" in revision {revision}" if revision else ""
    raise ModelError(
        f"{repository}: no such folder here, and the hub's cache ({cache}) has no {names[0]} of it{version}; "
        "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids to fetch it; allowed: a checkpoint that is there, "
        "or a run that may fetch it"
    )
