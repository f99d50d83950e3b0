"""The least time that the work of :mod:`speed` can take: the matrix products of its distinct tokens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from speed_work import VOCABULARY, Task

from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.models.hf.onednn import product
from pytest_kbrel.models.hf.scorer import sequences_of

Clock = Callable[[], float]


def limit_of(model: HfModel, task: Task, clock: Clock = time.perf_counter) -> float:
    """Return the seconds that the matrix products of the distinct tokens take at the rate measured here.

    Distinct tokens are the nodes of the prefix tree; only those in front of a scored token reach the head. An
    encoder reads each different prompt once, and its states are turned into keys and values once. Attention,
    norms and softmax are left out, so that no way can reach the limit.
    """
    inner = model.parts.model
    pairs = [model.parts.encoder.pair(*pair) for pair in task.pairs]
    matrices = {
        name: p
        for name, p in inner.named_parameters()
        if p.dim() == 2 and p.shape[0] != VOCABULARY
    }
    layers = {
        name: p.numel()
        for name, p in matrices.items()
        if "relative_attention_bias" not in name
    }
    head = inner.get_output_embeddings().weight.numel()
    if inner.config.is_encoder_decoder:
        prompts = {pair.context for pair in pairs}
        rows = [(pair.context, (*pair.lead, *pair.targets)) for pair in pairs]
        read = sum(map(len, prompts))
        # What a decoder is fed begins with its start token, and hangs on the prompt.
        spots = len(
            {(context, row[:end]) for context, row in rows for end in range(len(row))}
        )
        across = sum(
            n
            for name, n in layers.items()
            if ".EncDecAttention.k." in name or ".EncDecAttention.v." in name
        )
        encoder = sum(n for name, n in layers.items() if name.startswith("encoder."))
        decoder = sum(layers.values()) - encoder - across
        trunk = read * (encoder + across) + spots * decoder
    else:
        sequences = sequences_of(pairs)
        spots = len(
            {
                one.ids[:end]
                for one in sequences
                for end in range(one.start + 1, len(one.ids) + 1)
            }
        )
        distinct = {
            one.ids[:end] for one in sequences for end in range(1, len(one.ids) + 1)
        }
        trunk = len(distinct) * sum(layers.values())
    rates = _rates(inner, clock)
    return 2 * (trunk / rates["layers"] + spots * head / rates["head"])


def rates(model: HfModel) -> str:
    """Return how many floating-point operations a second the matrix products reached."""
    reached = _rates(model.parts.model, time.perf_counter)
    return ", ".join(
        f"{name} {rate / 1e9:,.0f} GFLOP/s" for name, rate in reached.items()
    )


def _rates(model: Any, clock: Clock) -> dict[str, float]:
    width = model.get_input_embeddings().weight.shape[1]
    return {
        "layers": max(
            _rate(model, rows, width, 4 * width, clock) for rows in (512, 2048)
        ),
        "head": max(
            _rate(model, rows, width, VOCABULARY, clock) for rows in (256, 512)
        ),
    }


def _rate(model: Any, rows: int, width: int, columns: int, clock: Clock) -> float:
    """Return the best rate of a product of (rows, width) and (width, columns) numbers of the model's type."""
    left = torch.randn(rows, width, dtype=model.dtype, device=model.device)
    right = torch.randn(columns, width, dtype=model.dtype, device=model.device)
    ways = [torch.nn.functional.linear]
    if model.device.type == "cpu" and model.dtype == torch.float32:
        ways.append(product)
    best = 0.0
    with torch.inference_mode():
        for way in ways:
            way(left, right)
            for _ in range(7):
                _wait(model)
                started = clock()
                for _ in range(4):
                    way(left, right)
                _wait(model)
                best = max(best, 4 * 2 * rows * width * columns / (clock() - started))
    return best


def _wait(model: Any) -> None:
    if model.device.type == "cuda":
        torch.cuda.synchronize()
