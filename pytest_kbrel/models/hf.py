"""The transformers backend's door: nothing heavy is imported before a model is really loaded."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.spec import ModelSpec, check_path

if TYPE_CHECKING:
    from pytest_kbrel.models.hf_model import HfModel


def check(spec: ModelSpec) -> None:
    """Find what can be found without loading: a path that holds no checkpoint, a package that is missing.

    Raises as :func:`load`.
    """
    check_path(spec)
    for package in ("torch", "transformers", "safetensors"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "hf", f"loading {spec.text}")


def load(spec: ModelSpec, *, threads: int | None = None) -> HfModel:
    """Load a causal or encoder-decoder checkpoint and check that it can be trusted.

    ``threads`` is the number of CPU threads torch may use; ``None`` leaves torch's own choice.

    Raises :class:`~pytest_kbrel.errors.ModelError` for anything wrong with weights, tokenizer, config or
    device, and :class:`~pytest_kbrel.errors.MissingExtraError` without torch, transformers or safetensors.
    """
    check(spec)
    try:
        import torch

        from pytest_kbrel.models.hf_loading import load_parts
        from pytest_kbrel.models.hf_model import HfModel
    except ImportError as error:
        raise ModelError(f"loading {spec.text}: torch or transformers does not import: {error}") from None
    if threads is not None:
        torch.set_num_threads(threads)
    return HfModel(load_parts(spec))
