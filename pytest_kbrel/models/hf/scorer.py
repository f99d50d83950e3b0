"""Scores pairs of any number: shares what they share where the checkpoint allows it, and stays in memory."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch

from pytest_kbrel.models.batching import Batcher, Budget, describe_error
from pytest_kbrel.models.hf.batch_plan import Batches
from pytest_kbrel.models.hf.kv_cache import KeptPrefix, Layers, cache_of, layers_of
from pytest_kbrel.models.hf.lm_head import probabilities_at
from pytest_kbrel.models.hf.prefix_tree import Group, Row
from pytest_kbrel.models.hf.sharing import (
    TRIAL,
    Probabilities,
    Rung,
    Way,
    forget_lengths,
    highest_rung,
    packs,
    window_of,
)
from pytest_kbrel.models.tokens import Ids, Pair
from pytest_kbrel.records import Failed


class Scorer:
    """One checkpoint's scoring. ``budget`` is in tokens a batch, ``longest`` what the model takes.

    Without ``shares`` every sequence is fed whole. ``trouble`` is the first error of a shared batch; plain
    ones answered then.
    """

    def __init__(self, model: Any, *, budget: int | Budget, longest: int | None, shares: bool = True) -> None:
        self._model = model
        self._longest, self._shares = longest, shares
        self.trouble = ""
        self._kept = KeptPrefix()
        self._batches = Batches(
            Batcher(budget),
            vocabulary=int(model.get_input_embeddings().weight.shape[0]),
            # A mask of one's own replaces a sliding window; within the window there is nothing to replace.
            window=window_of(model.config),
        )

    @cached_property
    def rung(self) -> Rung:
        """Which way of sharing holds for this checkpoint."""
        if not self._shares:
            return "plain"
        ways: dict[Rung, Way] = {"plain": lambda pairs: score_batch(self._model, pairs, self._pad)}
        if self._model.config.is_encoder_decoder:
            ways["prefix"] = lambda pairs: score_batch(self._model, pairs, self._pad, encode_once=True)
        else:
            ways["prefix"] = lambda pairs: self._tried(pairs, "prefix")
            if packs(self._model.config):
                ways["packed"] = lambda pairs: self._tried(pairs, "packed")
        found = highest_rung(self._model, ways, self._longest)
        # That a way is closed is no trouble.
        self.trouble = ""
        return found

    def ready(self, pairs: Sequence[Pair]) -> Iterator[list[tuple[int, Probabilities | Failed]]]:
        """Yield, batch by batch, each pair's number and answer; what fails is a :class:`Failed`."""
        left = set(range(len(pairs)))
        if self.rung != "plain" and not self._model.config.is_encoder_decoder:
            fitting = self._batches.shareable(pairs)
            some = [pairs[number] for number in fitting]
            for batch in self._shared(some, self.rung, self._batches):
                left -= {fitting[number] for number, _ in batch}
                yield [(fitting[number], answer) for number, answer in batch]
        yield from self._batches.of_pairs(pairs, left, self._plain)

    def _shared(
        self, pairs: Sequence[Pair], rung: Rung, batches: Batches
    ) -> Iterator[list[tuple[int, Probabilities]]]:
        """Yield the answers that could be had; whatever fails here is left for plain batches to explain.

        So are numbers that are none: in a packed row they spread to answers beside them.
        """
        for group in batches.groups(pairs, rung):
            try:
                prefix = self._kept.layers(group.prefix, lambda ids: feed_prefix(self._model, ids))
            except Exception as error:
                self.trouble = self.trouble or describe_error(error)
                continue
            yield from self._rows(group, prefix, pairs, rung, batches)

    def _rows(
        self, group: Group, prefix: Any, pairs: Sequence[Pair], rung: Rung, batches: Batches
    ) -> Iterator[list[tuple[int, Probabilities]]]:
        def answer(rows: Sequence[Row]) -> list[dict[int, Probabilities] | Failed]:
            before = len(group.prefix)
            return [*score_rows(self._model, before, prefix, rows, pairs, packed=rung == "packed")]

        for batch in batches.of_rows(group, answer):
            for failed in (found for found in batch if isinstance(found, Failed)):
                self.trouble = self.trouble or failed.error
            items = [item for found in batch if not isinstance(found, Failed) for item in found.items()]
            yield [(number, answer) for number, answer in items if all(map(math.isfinite, answer))]

    def _tried(self, pairs: Sequence[Pair], rung: Rung) -> list[Probabilities]:
        # Whatever the budget: what is right for a checkpoint does not depend on it.
        batches = Batches(Batcher(TRIAL), vocabulary=1, window=None)
        found = {number: answer for batch in self._shared(pairs, rung, batches) for number, answer in batch}
        return [found[number] for number in range(len(pairs))]

    def _plain(self, pairs: Sequence[Pair]) -> list[Probabilities | Failed]:
        forget_lengths(self._model)
        once = self._model.config.is_encoder_decoder and self.rung == "prefix"
        return [*score_batch(self._model, pairs, self._pad, encode_once=once)]

    @property
    def _pad(self) -> int:
        return int(self._model.generation_config.pad_token_id)


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
