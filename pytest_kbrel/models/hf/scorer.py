"""Probabilities of given tokens: what sequences share is computed once where the checkpoint allows it.

A packed row holds many branches behind one prefix; each token attends to the prefix, its ancestors and
itself, at the position it has in its own sequence. Where an architecture does not allow that, a row holds one
sequence behind the prefix, or the sequences are fed whole (plain batches).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any

import torch
from torch.nn.functional import pad

from pytest_kbrel.models.batching import Batcher, Batches, describe_error
from pytest_kbrel.models.checkpoint.endings import vocabulary_of
from pytest_kbrel.models.hf.lm_head import (
    LOGITS_AT_ONCE,
    head_is_last,
    probabilities_at,
)
from pytest_kbrel.models.hf.prefix_tree import (
    Layers,
    Row,
    TokenSequence,
    cache_of,
    group_by_prefix,
)
from pytest_kbrel.models.hf.sharing import (
    TRIAL_BUDGET,
    Probabilities,
    ScoreFunction,
    SharingMode,
    allows_packing,
    best_sharing_mode,
    reset_rope_lengths,
    window_of,
)
from pytest_kbrel.models.tokens import Ids, Pair
from pytest_kbrel.records import Failed

# In tokens. A longer row repeats fewer shared beginnings, and attends to more that it does not need.
ROW_LENGTH = 128
# Tokens that must be spared by a forward pass more where a pass has a price of its own: on a GPU one of 512
# tokens takes as long as one of a single token (benchmarks/gpu/README.md).
_PASS_ON_GPU = 512


class Scorer:
    """Scorer of one checkpoint; ``longest`` is how many tokens the model takes.

    ``trouble`` is the first error of a shared batch, which plain batches then answered. ``refused`` says of
    each sharing mode that was tried in vain why.
    """

    def __init__(self, model: Any, batcher: Batcher, *, longest: int | None) -> None:
        self._model, self._batcher, self._longest = model, batcher, longest
        self.trouble = ""
        self.refused: list[str] = []
        # A mask of one's own replaces a sliding window; within the window there is nothing to replace.
        self._window = window_of(model.config) or math.inf

    @cached_property
    def sharing_mode(self) -> SharingMode:
        """The sharing mode that holds for this checkpoint, tried on it once."""
        score = partial(score_batch, self._model)
        functions: dict[SharingMode, ScoreFunction] = {"plain": score}
        if self._model.config.is_encoder_decoder:
            functions["prefix"] = partial(score, encode_once=True)
        else:
            if allows_packing(self._model.config):
                functions["packed"] = partial(self._try, mode="packed")
            functions["prefix"] = partial(self._try, mode="prefix")
        return best_sharing_mode(self._model, functions, self._longest, self.refused)

    def ready(self, pairs: Sequence[Pair]) -> Batches[Probabilities]:
        """Yield, batch by batch, each pair's index and answer; what fails is a :class:`Failed`."""
        remaining = set(range(len(pairs)))
        if self.sharing_mode != "plain" and not self._model.config.is_encoder_decoder:
            indices = [n for n in remaining if _length(pairs[n]) <= self._window]
            shareable = [pairs[n] for n in indices]
            for batch in self._shared(shareable, self.sharing_mode):
                remaining -= {indices[n] for n, _ in batch}
                yield [(indices[n], answer) for n, answer in batch]
        # Longest first, and side by side what an encoder can read once.
        order = sorted(
            remaining,
            key=lambda n: (
                -len(pairs[n].context),
                pairs[n].context,
                -_length(pairs[n]),
            ),
        )
        yield from self._batcher.ready(pairs, self._cost, self._plain, order)

    def _shared(
        self, pairs: Sequence[Pair], mode: SharingMode
    ) -> Batches[Probabilities]:
        """Yield the answers of shared batches; what fails here is left to plain batches.

        So are values that are not finite: in a packed row they spread to answers beside them.
        """
        row_length = min(ROW_LENGTH, self._batcher.budget) if mode == "packed" else 0
        pays = partial(spares_passes, self._model, 2)
        for group in group_by_prefix(sequences_of(pairs), row_length, pays):
            before = len(group.prefix)
            try:
                prefix = feed_prefix(self._model, group.prefix)
            except Exception as error:
                self.trouble = self.trouble or describe_error(error)
                continue

            def cost(rows: Sequence[Row], before: int = before) -> int:
                # Each row has its own copy of the prefix's keys and values.
                longest = before + max(len(row.tokens) for row in rows)
                outputs = [indices for row in rows for _, indices in row.outputs]
                return self._within(len(rows), longest, sum(map(len, outputs)))

            def answer(
                rows: Sequence[Row], before: int = before, prefix: Layers = prefix
            ) -> list[dict[int, Probabilities] | Failed]:
                packed = mode == "packed"
                return [
                    *score_rows(self._model, before, prefix, rows, pairs, packed=packed)
                ]

            longest_first = sorted(group.rows, key=lambda row: -len(row.tokens))
            for batch in self._batcher.ready(longest_first, cost, answer):
                items: list[tuple[int, Probabilities | Failed]] = []
                for _, result in batch:
                    if isinstance(result, Failed):
                        self.trouble = self.trouble or result.error
                        continue
                    for number, values in result.items():
                        if all(map(math.isfinite, values)):
                            items.append((number, values))
                yield items

    def _try(self, pairs: Sequence[Pair], mode: SharingMode) -> list[Probabilities]:
        # Whatever the budget: what is right for a checkpoint does not depend on it. A mode that does not hold
        # is no trouble.
        trial = Scorer(self._model, Batcher(TRIAL_BUDGET), longest=None)
        answers = {
            number: answer
            for batch in trial._shared(pairs, mode)
            for number, answer in batch
            if not isinstance(answer, Failed)
        }
        if len(answers) < len(pairs):
            raise RuntimeError(trial.trouble)
        return [answers[number] for number in range(len(pairs))]

    def _plain(self, pairs: Sequence[Pair]) -> list[Probabilities | Failed]:
        reset_rope_lengths(self._model)
        once = self._model.config.is_encoder_decoder and self.sharing_mode == "prefix"
        return [*score_batch(self._model, pairs, encode_once=once)]

    def _cost(self, pairs: Sequence[Pair]) -> int:
        # Beyond a window padding is not seen in vain: with some models it moves the numbers.
        lengths = {*map(_length, pairs)}
        longest = max(lengths)
        if len(lengths) > 1 and longest > self._window:
            return self._batcher.budget + 1
        return self._within(len(pairs), longest, sum(len(p.targets) for p in pairs))

    def _within(self, rows: int, longest: int, outputs: int) -> int:
        """Return the tokens of a batch, more than the budget where it holds too many logits at once."""
        if rows > 1 and outputs > self._most_outputs:
            return max(rows * longest, self._batcher.budget + 1)
        return rows * longest

    @cached_property
    def _most_outputs(self) -> float:
        """The number of tokens whose logits one batch may compute."""
        # The output layer by itself is computed in pieces.
        if head_is_last(self._model):
            return math.inf
        return LOGITS_AT_ONCE // vocabulary_of(self._model)


def spares_passes(model: Any, passes: int, times: int, tokens: int) -> bool:
    """Return True if so many tokens, spared so often, are worth so many forward passes more."""
    return model.device.type == "cpu" or times * tokens >= passes * _PASS_ON_GPU


def sequences_of(pairs: Sequence[Pair]) -> list[TokenSequence]:
    """Return what must be fed to score ``pairs``: the last token of an answer is never fed."""
    return [
        TokenSequence(
            ids=(*pair.context, *pair.targets[:-1]), start=len(pair.context) - 1
        )
        for pair in pairs
    ]


def _length(pair: Pair) -> int:
    return len(pair.context) + len(pair.lead) + len(pair.targets)


def score_batch(
    model: Any, pairs: Sequence[Pair], *, encode_once: bool = False
) -> list[Probabilities]:
    """Return each pair's token probabilities, by float32 softmax over the whole vocabulary.

    With ``encode_once`` an encoder reads a prompt once, however many continuations it has in this batch. Rows
    are padded on the right, which is right for every architecture, recurrent ones included. Values may be
    NaN.
    """
    device = model.device
    if model.config.is_encoder_decoder:
        starts = [len(pair.lead) for pair in pairs]
        encode = encoder_outputs if encode_once else _encoder_inputs
        inputs = encode(model, [pair.context for pair in pairs])
        labels = right_padded([(*pair.lead, *pair.targets) for pair in pairs], -100)
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(
            labels=labels
        ).to(device)
    else:
        starts = [len(pair.context) - 1 for pair in pairs]
        ids = [one.ids for one in sequences_of(pairs)]
        inputs = {"input_ids": right_padded(ids, _pad(model)).to(device)}
    wanted = [
        ((row, start + step), token)
        for row, (start, pair) in enumerate(zip(starts, pairs, strict=True))
        for step, token in enumerate(pair.targets)
    ]
    flat = iter(probabilities_at(model, wanted, inputs))
    return [tuple(islice(flat, len(pair.targets))) for pair in pairs]


def _pad(model: Any) -> int:
    return int(model.generation_config.pad_token_id)


def right_padded(rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
    """Return rows of numbers as one ``(rows, longest)`` tensor, padded on the right with ``fill``."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def _encoder_inputs(model: Any, prompts: Sequence[Ids]) -> dict[str, Any]:
    mask = right_padded([[1] * len(ids) for ids in prompts], 0)
    return {
        "input_ids": right_padded(prompts, _pad(model)).to(model.device),
        "attention_mask": mask.to(model.device),
    }


def encoder_outputs(model: Any, prompts: Sequence[Ids]) -> dict[str, Any]:
    """Return the encoder's outputs and their mask, a row a prompt; equal prompts are encoded once."""
    row_of = {ids: row for row, ids in enumerate(dict.fromkeys(prompts))}
    inputs = _encoder_inputs(model, list(row_of))
    with torch.inference_mode():
        encoded = model.get_encoder()(**inputs)
    rows = torch.tensor([row_of[ids] for ids in prompts], device=model.device)
    states = encoded.last_hidden_state
    # Of its own class: some decoders ask for more than the states.
    outputs = type(encoded)(last_hidden_state=states[rows.to(states.device)])
    return {
        "encoder_outputs": outputs,
        "attention_mask": inputs["attention_mask"][rows],
    }


def feed_prefix(model: Any, ids: Ids) -> Layers:
    """Return the keys and values of a prefix, one pair a layer, each of shape (1, heads, tokens, width)."""
    if not ids:
        return []
    with torch.inference_mode():
        tokens = torch.tensor([ids], device=model.device)
        cache = model(
            input_ids=tokens, use_cache=True, logits_to_keep=1
        ).past_key_values
    return [(layer.keys, layer.values) for layer in cache.layers]


def score_rows(
    model: Any,
    before: int,
    prefix: Layers,
    rows: Sequence[Row],
    pairs: Sequence[Pair],
    *,
    packed: bool,
) -> list[dict[int, Probabilities]]:
    """Return the token probabilities of the pairs that end in each row, by their number.

    ``before`` is the number of tokens in ``prefix``. Without ``packed`` each row must be a single sequence.
    """
    # Several answers begin behind the same token.
    wanted = [
        ((row_number, index), token)
        for row_number, row in enumerate(rows)
        for number, indices in row.outputs
        for index, token in zip(indices, pairs[number].targets, strict=True)
    ]
    inputs = row_inputs(model, rows, before, packed=packed)
    if prefix:
        inputs["past_key_values"] = cache_of(model, prefix, len(rows))
    flat = iter(probabilities_at(model, wanted, inputs))
    return [
        {number: tuple(islice(flat, len(indices))) for number, indices in row.outputs}
        for row in rows
    ]


def row_inputs(
    model: Any, rows: Sequence[Row], before: int, *, packed: bool
) -> dict[str, Any]:
    """Return token ids, mask and position ids of rows behind a prefix of ``before`` tokens."""
    device = model.device
    if packed:
        seen = pad(seen_in_rows(rows), (before, 0), value=True)
        mask = additive(seen[:, None], model)
    else:
        mask = right_padded([[1] * (before + len(row.tokens)) for row in rows], 0)
    inputs = {
        "input_ids": right_padded([row.tokens for row in rows], 0).to(device),
        "attention_mask": mask.to(device),
    }
    # Models without position embeddings tell positions by the mask, and take no argument for them.
    if takes_position_ids(model):
        inputs["position_ids"] = right_padded([row.depths for row in rows], before).to(
            device
        )
    return inputs


def takes_position_ids(model: Any) -> bool:
    """Return True if the model takes position ids; an adapter passes on arguments that it does not name."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    return "position_ids" in inspect.signature(inner.forward).parameters


def seen_in_rows(rows: Sequence[Row]) -> torch.Tensor:
    """Return which tokens of its row each token sees, shape (rows, longest, longest)."""
    ends = right_padded([row.ends for row in rows], 0)
    indices = torch.arange(ends.shape[1])
    # Padding sees itself: a softmax without any entry is not a number.
    ends = torch.maximum(ends, indices + 1)[:, None]
    return (indices[:, None] >= indices) & (indices[:, None] < ends)


def additive(seen: torch.Tensor, model: Any) -> torch.Tensor:
    """Return a mask as the model adds it, on its device.

    A mask of booleans is silently wrong with eager attention, which adds it as numbers.
    """
    mask = torch.zeros(seen.shape, dtype=model.dtype, device=model.device)
    hidden = ~seen.to(model.device)
    return mask.masked_fill_(hidden, torch.finfo(model.dtype).min)
