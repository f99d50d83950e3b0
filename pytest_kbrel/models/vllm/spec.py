"""What the user typed for a checkpoint that vLLM runs, read without loading anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from pytest_kbrel.bounds import DEVICES, SEQUENCES, SHARE
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import lm_eval_args as lm_eval
from pytest_kbrel.models.chat.args import CHAT_ARGS
from pytest_kbrel.models.hf.spec import ModelSpec, parse_spec
from pytest_kbrel.models.model_args import flag, join_args, number, parse_args, whole_or_auto
from pytest_kbrel.records import record

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
    "max_length",
    "apply_chat_template",
    *CHAT_ARGS,
)
VLLM_ARGS = (*_OF_CHECKPOINT, *_ENGINE_ARGS)
"""The keys of the arguments of a ``vllm/`` model, as lm-eval's model ``vllm`` names them."""


@record
class VllmSpec:
    """A checkpoint, and how vLLM's engine is to run it; what is ``None`` or empty is vLLM's own choice.

    ``tensor_parallel_size`` is the number of GPUs the weights are split over, ``gpu_memory_utilization`` the
    share of each GPU's memory that the engine takes, ``max_num_seqs`` how many sequences run at once.
    ``notes`` say what was typed and has no effect, a sentence each.
    """

    text: str
    checkpoint: ModelSpec
    backend: str = "vllm"
    tensor_parallel_size: int = 1
    gpu_memory_utilization: float | None = None
    max_num_seqs: int | None = None
    quantization: str = ""
    enforce_eager: bool = False
    notes: tuple[str, ...] = ()


def parse_vllm(
    text: str,
    model_args: str = "",
    *,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: str = "auto",
    chat_template: bool = False,
) -> VllmSpec:
    """Read ``vllm/PATH_OR_HUB_ID`` and its arguments; ``vllm/reference`` is the embedded checkpoint.

    ``batch_size`` is the engine's budget of tokens for one step. Raises :class:`ModelError` for an unknown
    key, a value of the wrong kind, a device that only the engine can choose, and a candidate that is made
    from a checkpoint after loading.
    """
    text = text.strip()
    args, notes = lm_eval.understood(parse_args(model_args, (*VLLM_ARGS, *lm_eval.VLLM)), lm_eval.VLLM)
    if device not in ("auto", "cuda"):
        raise ModelError(
            f"{text}: device {device!r} is for vLLM to choose; allowed is auto (CUDA_VISIBLE_DEVICES says "
            "which GPUs it sees)"
        )
    if args.get("data_parallel_size", "1") != "1":
        raise ModelError(
            f"model-args: data_parallel_size={args['data_parallel_size']:.60}; allowed is 1: more engines "
            "are pytest workers, -n 2, with GPUs of their own"
        )
    if "max_length" in args and "max_model_len" in args:
        raise ModelError("model-args: max_length and max_model_len are one thing; give one of them")
    rest = text.removeprefix(PREFIX) if text.startswith(PREFIX) else ""
    checkpoint = parse_spec(
        rest if rest.split(":")[0] == "reference" else f"hf/{rest}",
        join_args(_checkpoint_args(args)),
        dtype=dtype,
        batch_size=batch_size,
        chat_template=chat_template,
    )
    if checkpoint.derived:
        raise ModelError(f"{text}: made from the embedded checkpoint after loading; allowed is reference")
    return VllmSpec(
        text=text if rest else f"{PREFIX}{checkpoint.path}",
        checkpoint=dataclasses.replace(checkpoint, text=text if rest else f"{PREFIX}{checkpoint.path}"),
        tensor_parallel_size=whole_or_auto(
            "tensor_parallel_size", args.get("tensor_parallel_size", "1"), DEVICES, "of GPUs"
        )
        or 1,
        gpu_memory_utilization=number("gpu_memory_utilization", args["gpu_memory_utilization"], SHARE)
        if "gpu_memory_utilization" in args
        else None,
        max_num_seqs=whole_or_auto(
            "max_num_seqs", args.get("max_num_seqs", "auto"), SEQUENCES, "of sequences"
        ),
        quantization=args.get("quantization", ""),
        enforce_eager=bool(flag(args, "enforce_eager")),
        notes=tuple(notes),
    )


def _checkpoint_args(args: Mapping[str, str]) -> dict[str, str]:
    named = {"max_length" if key == "max_model_len" else key: value for key, value in args.items()}
    return {key: value for key, value in named.items() if key in _OF_CHECKPOINT}
