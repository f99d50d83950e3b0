"""Probabilities of given tokens, for many rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from pytest_kbrel.models.hf.lm_head import probabilities_at
from pytest_kbrel.models.tokens import Pair

Probabilities = tuple[float, ...]


def score_batch(
    model: Any, pairs: Sequence[Pair], pad_id: int, *, encode_once: bool = False
) -> list[Probabilities]:
    """Return each pair's token probabilities, by float32 softmax over the whole vocabulary.

    With ``encode_once`` an encoder reads a prompt once, however many continuations it has in this batch.

    Rows are padded on the right, which is right for every architecture, recurrent ones included. A value that
    is not a number is returned as such.
    """
    rows = torch.tensor([row for row, pair in enumerate(pairs) for _ in pair.targets])
    if model.config.is_encoder_decoder:
        columns = [len(pair.lead) + k for pair in pairs for k in range(len(pair.targets))]
        inputs = _encoder_decoder_inputs(model, pairs, pad_id, encode_once)
    else:
        columns = [len(pair.context) - 1 + k for pair in pairs for k in range(len(pair.targets))]
        rows_fed = [(*pair.context, *pair.targets[:-1]) for pair in pairs]
        inputs = {"input_ids": right_padded(rows_fed, pad_id).to(model.device)}
    device = model.device
    targets = torch.tensor([token for pair in pairs for token in pair.targets], device=device)
    places = rows.to(device), torch.tensor(columns, device=device)
    flat = probabilities_at(model, *places, inputs, torch.arange(len(targets), device=device), targets)
    ends = [0]
    for pair in pairs:
        ends.append(ends[-1] + len(pair.targets))
    return [tuple(flat[start:end]) for start, end in pairwise(ends)]


def right_padded(rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
    """Return rows of token ids as one ``(rows, longest)`` tensor, filled behind."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def _encoder_decoder_inputs(
    model: Any, pairs: Sequence[Pair], pad_id: int, encode_once: bool
) -> dict[str, Any]:
    contexts = [pair.context for pair in pairs]
    labels = right_padded([(*pair.lead, *pair.targets) for pair in pairs], -100)
    distinct = list(dict.fromkeys(contexts)) if encode_once else contexts
    inputs: dict[str, Any] = {
        "input_ids": right_padded(distinct, pad_id).to(model.device),
        "attention_mask": right_padded([[1] * len(context) for context in distinct], 0).to(model.device),
    }
    if encode_once:
        places = {context: place for place, context in enumerate(distinct)}
        rows = torch.tensor([places[context] for context in contexts], device=model.device)
        with torch.inference_mode():
            encoded = model.get_encoder()(**inputs)
        # Of its own class: some decoders ask for more than the states.
        states = encoded.last_hidden_state
        outputs = type(encoded)(last_hidden_state=states[rows.to(states.device)])
        inputs = {"encoder_outputs": outputs, "attention_mask": inputs["attention_mask"][rows]}
    inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels=labels).to(model.device)
    return inputs
