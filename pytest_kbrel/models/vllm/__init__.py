"""Backend for checkpoints that vLLM runs; nothing heavy is imported before an engine is started."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models import lm_eval_args as lm_eval
from pytest_kbrel.models.base import Backend
from pytest_kbrel.models.checkpoint.availability import check_at_hand
from pytest_kbrel.models.hf.spec import check_path
from pytest_kbrel.models.token_counting import Tokenising
from pytest_kbrel.models.vllm.spec import VLLM_ARGS, VllmSpec, parse_vllm

if TYPE_CHECKING:
    from pytest_kbrel.models.vllm.model import VllmModel


def check(spec: VllmSpec) -> None:
    """Find what can be found without loading: a path that holds no checkpoint, a package that is missing.

    Raises as :func:`load`.
    """
    check_path(spec.checkpoint)
    for package in ("vllm", "torch", "transformers", "safetensors"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "vllm", f"loading {spec.text}")


def load(spec: VllmSpec) -> VllmModel:
    """Check a causal checkpoint, take its fingerprint, and start an engine for it.

    Raises :class:`~pytest_kbrel.errors.ModelError` for anything wrong with weights, tokenizer or config and
    for an engine that does not start, and :class:`~pytest_kbrel.errors.MissingExtraError` without vLLM.
    """
    check(spec)
    try:
        from pytest_kbrel.models.vllm.loading import load_model
    except ImportError as error:
        raise ModelError(f"loading {spec.text}: torch or transformers does not import: {error}") from None
    return load_model(spec)


def _check_all(spec: VllmSpec) -> None:
    check(spec)
    check_at_hand(spec.checkpoint)


VLLM = Backend(
    name="vllm",
    forms=("vllm/PATH",),
    args=(*VLLM_ARGS, *lm_eval.VLLM),
    parse=parse_vllm,
    check=_check_all,
    open=lambda spec, **_: load(spec),
    counter=lambda spec: Tokenising(spec.checkpoint),
    gpus=lambda spec: spec.tensor_parallel_size,
)
