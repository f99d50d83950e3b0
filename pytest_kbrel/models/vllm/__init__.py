"""Backend and spec of checkpoints that vLLM runs; nothing heavy is imported before an engine is started."""

from __future__ import annotations

import dataclasses
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_kbrel.bounds import DEVICES, SEQUENCES, SHARE
from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.arguments import (
    CHAT_ARGS,
    LM_EVAL,
    flag,
    join_args,
    number,
    parse_backend_args,
)
from pytest_kbrel.models.base import Backend, Spec
from pytest_kbrel.models.checkpoint.counter import TokenizerCounter
from pytest_kbrel.models.checkpoint.files import check_availability
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    announce,
    check_path,
    importing,
    parse_spec,
)
from pytest_kbrel.records import record

if TYPE_CHECKING:
    from pytest_kbrel.models.vllm.model import VllmModel

PREFIX = "vllm/"
_ENGINE_ARGS = (
    "tensor_parallel_size",
    "gpu_memory_utilization",
    "max_model_len",
    "max_num_seqs",
    "quantization",
    "enforce_eager",
    "data_parallel_size",
)
_OF_CHECKPOINT = (
    "pretrained",
    "dtype",
    "revision",
    "tokenizer",
    "trust_remote_code",
    "add_bos_token",
    "prefix_token_id",
    "fix_mistral_regex",
    "max_length",
    "apply_chat_template",
    *CHAT_ARGS,
)
VLLM_ARGS = (*_OF_CHECKPOINT, *_ENGINE_ARGS)
"""The keys of the arguments of a ``vllm/`` model, as lm-eval's model ``vllm`` names them."""


@record
class VllmSpec(Spec):
    """Checkpoint with the options of vLLM's engine; ``None`` or an empty text leaves the choice to vLLM.

    ``tensor_parallel_size`` is the number of GPUs the weights are split over, ``gpu_memory_utilization`` the
    share of each GPU's memory that the engine takes, ``max_num_seqs`` how many sequences run at once.
    """

    checkpoint: ModelSpec
    backend: str = "vllm"
    tensor_parallel_size: int = 1
    gpu_memory_utilization: float | None = None
    max_num_seqs: int | None = None
    quantization: str = ""
    enforce_eager: bool = False

    @property
    def name(self) -> str:
        """What reports call the model."""
        return self.checkpoint.name

    @property
    def chats(self) -> bool:
        """True if prompts are put into the tokenizer's chat template."""
        return self.checkpoint.chat_template


def parse_vllm(
    text: str, model_args: str = "", *, device: str = "auto", **run: Any
) -> VllmSpec:
    """Read ``vllm/PATH_OR_HUB_ID`` and its arguments; ``vllm/reference`` is the embedded checkpoint.

    ``run`` are ``dtype``, ``chat_template``, and ``batch_size``, which is the engine's budget of tokens for one
    step. Raises :class:`ModelError` for an unknown
    key, a value of the wrong kind, a device that only the engine can choose, and a candidate that is made
    from a checkpoint after loading.
    """
    text = text.strip()
    args, notes = parse_backend_args(
        model_args, VLLM_ARGS, "vllm", {"max_model_len": "max_length"}
    )
    if device not in ("auto", "cuda"):
        raise ModelError(
            f"{text}: device {device!r} is for vLLM to choose; allowed is auto (CUDA_VISIBLE_DEVICES says "
            "which GPUs it sees)"
        )
    if args.get("data_parallel_size", "1") != "1":
        raise ModelError(
            f"model-args: data_parallel_size={args['data_parallel_size']:.60}; allowed is 1: each worker of "
            f"pytest has an engine with a copy of the model; write -n {args['data_parallel_size']:.60}, or "
            "-n auto for as many as there are GPUs for"
        )
    rest = text.removeprefix(PREFIX) if text.startswith(PREFIX) else ""
    checkpoint = parse_spec(
        rest if rest.split(":")[0] == "reference" else f"hf/{rest}",
        join_args({key: value for key, value in args.items() if key in _OF_CHECKPOINT}),
        **run,
    )
    if checkpoint.derived:
        raise ModelError(
            f"{text}: made from the embedded checkpoint after loading; allowed is reference"
        )
    if checkpoint.peft:
        raise ModelError(
            f"{text}: an adapter, and vllm/ runs none; allowed: hf/{checkpoint.peft}"
        )
    text = text if rest else f"{PREFIX}{checkpoint.path}"
    return VllmSpec(
        text=text,
        checkpoint=dataclasses.replace(checkpoint, text=text),
        tensor_parallel_size=number(args, "tensor_parallel_size", DEVICES, "of GPUs")
        or 1,
        gpu_memory_utilization=number(args, "gpu_memory_utilization", SHARE),
        max_num_seqs=number(args, "max_num_seqs", SEQUENCES, "of sequences"),
        quantization=args.get("quantization", ""),
        enforce_eager=bool(flag(args, "enforce_eager")),
        notes=tuple(notes),
    )


def check(spec: VllmSpec) -> None:
    """Check path and packages without loading anything; raises as :func:`load`."""
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
    with importing(spec.checkpoint):
        from pytest_kbrel.models.vllm.model import load_model
    return load_model(spec)


def _check_all(spec: VllmSpec) -> None:
    check(spec)
    check_availability(spec.checkpoint)


VLLM = Backend(
    name="vllm",
    forms=("vllm/PATH",),
    args=(*VLLM_ARGS, *LM_EVAL["vllm"]),
    parse=parse_vllm,
    check=_check_all,
    open=lambda spec, **_: load(spec),
    counter=lambda spec: TokenizerCounter(spec.checkpoint),
    computes_here=True,
    gpus=lambda spec: spec.tensor_parallel_size,
    announcement=lambda spec: announce(
        dataclasses.replace(spec.checkpoint, text=spec.text)
    ),
    gives_top_tokens=True,
)
