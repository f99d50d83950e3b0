"""Probabilities of given tokens with everything shared computed once: rows behind one prefix.

A packed row holds many branches; each token attends to the prefix, its ancestors and itself, at the position
it has in its own sequence. Where an architecture does not allow that, a row holds one sequence behind the
prefix; :mod:`pytest_kbrel.models.hf.sharing_support` finds out which.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from pytest_kbrel.models.hf.kv_cache import Layers, cache_of, layers_of
from pytest_kbrel.models.hf.lm_head import probabilities_at
from pytest_kbrel.models.hf.logprobs import Probabilities, right_padded
from pytest_kbrel.models.prefix_tree import Asked, Row
from pytest_kbrel.models.tokens import Ids, Pair


def asked_of(pairs: Sequence[Pair]) -> list[Asked]:
    """Return what must be fed to score ``pairs``: the last token of an answer is never fed."""
    return [Asked(ids=(*pair.context, *pair.targets[:-1]), start=len(pair.context) - 1) for pair in pairs]


def feed_prefix(model: Any, ids: Ids) -> Layers:
    """Return the keys and values of a prefix, one pair a layer, each of shape (1, heads, tokens, width)."""
    if not ids:
        return []
    with torch.inference_mode():
        tokens = torch.tensor([ids], device=model.device)
        cache = model(input_ids=tokens, use_cache=True, logits_to_keep=1).past_key_values
    return layers_of(cache)


def score_rows(
    model: Any, before: int, prefix: Layers, rows: Sequence[Row], pairs: Sequence[Pair], *, packed: bool
) -> list[dict[int, Probabilities]]:
    """Return the token probabilities of the pairs that end in each row, by their number.

    ``before`` is the number of tokens in ``prefix``. Without ``packed`` each row must be a single sequence.
    """
    device = model.device
    wanted = [
        ((line, place), number, step)
        for line, row in enumerate(rows)
        for number, places in row.places
        for step, place in enumerate(places)
    ]
    # Several answers begin behind the same token: its logits are computed once.
    spots = {spot: index for index, spot in enumerate(dict.fromkeys(spot for spot, _, _ in wanted))}
    lines, columns = torch.tensor(list(spots), device=device).T
    inputs = row_inputs(model, rows, before, packed=packed)
    if prefix:
        many = len(rows)
        shared = [(k.expand(many, -1, -1, -1), v.expand(many, -1, -1, -1)) for k, v in prefix]
        cache = cache_of(model, shared)
        inputs["past_key_values"] = cache
    flat = probabilities_at(
        model,
        lines,
        columns,
        inputs,
        torch.tensor([spots[spot] for spot, _, _ in wanted], device=device),
        torch.tensor([pairs[number].targets[step] for _, number, step in wanted], device=device),
        use_cache=bool(prefix),
    )
    found: list[dict[int, list[float]]] = [{} for _ in rows]
    for ((line, _), number, _), probability in zip(wanted, flat, strict=True):
        found[line].setdefault(number, []).append(probability)
    return [{number: tuple(values) for number, values in of_row.items()} for of_row in found]


def row_inputs(model: Any, rows: Sequence[Row], before: int, *, packed: bool) -> dict[str, Any]:
    """Return tokens, mask and positions of rows behind a prefix of ``before`` tokens."""
    device = model.device
    mask = _tree_mask(rows, before, model.dtype) if packed else _line_mask(rows, before)
    inputs: dict[str, Any] = {
        "input_ids": right_padded([row.tokens for row in rows], 0).to(device),
        "attention_mask": mask.to(device),
    }
    # Models without position embeddings tell places by the mask, and take no argument for them.
    if states_places(model):
        inputs["position_ids"] = right_padded([row.depths for row in rows], before).to(device)
    return inputs


def states_places(model: Any) -> bool:
    """Tell whether the model takes the places of its tokens; an adapter hands on what it does not name."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "position_ids" in inspect.signature(inner.forward).parameters


def _line_mask(rows: Sequence[Row], before: int) -> torch.Tensor:
    """Return the mask of rows that are single sequences, shape (rows, before + longest)."""
    return right_padded([[1] * (before + len(row.tokens)) for row in rows], 0)


def _tree_mask(rows: Sequence[Row], before: int, dtype: torch.dtype) -> torch.Tensor:
    """Return the additive mask of packed rows, shape (rows, 1, longest, before + longest).

    A mask of booleans is silently wrong with eager attention, which adds it as numbers.
    """
    longest = max(len(row.tokens) for row in rows)
    # Padding sees itself: a softmax without any entry is not a number.
    ends = right_padded([_ends(row.parents) for row in rows], 0)
    places = torch.arange(longest)
    ends = torch.maximum(ends, places + 1)[:, None]
    seen = (places[:, None] >= places) & (places[:, None] < ends)
    mask = torch.full((len(rows), 1, longest, before + longest), torch.finfo(dtype).min, dtype=dtype)
    mask[..., :before] = 0
    mask[:, 0, :, before:].masked_fill_(seen, 0)
    return mask


def _ends(parents: Sequence[int]) -> list[int]:
    """Return, for each token of a row, the place behind the last one that it stands before in a sequence.

    A row is laid out branch by branch, so that all these lie side by side.
    """
    ends = list(range(1, len(parents) + 1))
    for place in reversed(range(len(parents))):
        if parents[place] >= 0:
            ends[parents[place]] = max(ends[parents[place]], ends[place])
    return ends
