"""Greedy decode loops: what prompts share is computed once, and finished texts make room for waiting ones.

A packed row carries several sequences behind one copy of the shared prefix, each in cache slots of its own; a
mask hides from each the slots of the others, and position ids are stated. Where an architecture does not
allow that, a row carries one sequence. :mod:`pytest_kbrel.models.hf.generator` tries which holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch.nn.functional import pad
from transformers import DynamicCache, EncoderDecoderCache

from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.checkpoint.endings import Endings
from pytest_kbrel.models.hf.lm_head import logits_at
from pytest_kbrel.models.hf.prefix_tree import (
    Layers,
    Row,
    preallocated_cache,
    rearranged_cache,
)
from pytest_kbrel.models.hf.scorer import (
    additive,
    encoder_outputs,
    row_inputs,
    seen_in_rows,
    takes_position_ids,
)
from pytest_kbrel.models.hf.stopping import NextTokens, RunningSequence
from pytest_kbrel.models.tokens import Prompt
from pytest_kbrel.records import Failed, Generated, GenerateRequest, record

# Sequences leave, and others come in, when so large a share of the batch has finished: that copies the cache.
_FINISHED = 0.25
# In steps. Memory is taken for so many at a time: most answers are short.
_AHEAD = 16


class Lot(NamedTuple):
    """Sequences in one cache, each in one of its ``rows``.

    ``seen`` says which slots behind the prefix each sees. The rows of ``inputs`` are what is fed next: the
    last token of each, and its position. Only these are on the model's device, so that sequences are laid out
    anew without waiting for it.
    """

    cache: Any
    sequences: list[RunningSequence]
    rows: torch.Tensor
    seen: torch.Tensor
    inputs: torch.Tensor


@record
class BatchLimits:
    """Size of a decode batch: ``texts`` at most, ``per_row`` of them in one row, ``budget`` slots in all.

    ``longest`` is the number of slots that a row may have, ``None`` for any.
    """

    per_row: int
    texts: int
    budget: int
    longest: int | None = None


class DecodeLoop:
    """Decode loop behind one prefix of ``before`` tokens, whose keys and values are ``prefix``."""

    def __init__(
        self,
        model: Any,
        before: int,
        prefix: Layers,
        endings: Endings,
        limits: BatchLimits,
        *,
        packed: bool,
    ) -> None:
        self._model, self._before, self._prefix = model, before, prefix
        self._endings, self._limits, self._packed = endings, limits, packed
        self._takes_position_ids = takes_position_ids(model)
        # Row by row, ``width`` in each but the last.
        self._sequences: list[RunningSequence] = []
        self._cache = None
        self._width = self._slots = self._room = 0
        # Slots that each sequence sees, shape (rows * width, room), and the same as the model takes it.
        self._seen = self._mask = torch.zeros((0, 0))
        self._inputs = torch.zeros((2, 0))

    def run(
        self, rows: Sequence[Row], requests: Sequence[GenerateRequest]
    ) -> Batches[Generated]:
        """Yield numbers of sequences in ``rows`` and their continuations, those together that leave together.

        ``requests`` are indexed by these numbers.
        """
        self._waiting = sorted(rows, key=lambda row: len(row.tokens))
        self._requests = requests
        while self._waiting or self._sequences:
            sequences = self._sequences
            finished = [sequence for sequence in sequences if sequence.is_finished]
            if len(finished) >= _FINISHED * len(sequences) or self._is_full():
                if finished:
                    yield [
                        (sequence.number, sequence.result()) for sequence in finished
                    ]
                self._renew()
            else:
                self._step()

    def _is_full(self) -> bool:
        """Return True if the rows must be laid out anew before the next step."""
        if self._slots + self._width > self._room:
            return True
        if self._packed:
            return False
        # Finished sequences take slots too. Beyond what any under way may come to need, a window would cut
        # off tokens that others still see, and a table of positions would end.
        needed = [one.most for one in self._sequences if not one.is_finished]
        return len(needed) < len(self._sequences) and self._slots >= max(needed)

    @torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
    def _renew(self) -> None:
        """Lay out the running sequences anew, with as many of those that wait as there is room for."""
        running = [n for n, one in enumerate(self._sequences) if not one.is_finished]
        lots = [self._lot(running)] if running else []
        self._cache, count = None, len(running)
        fed = []
        while rows := self._next(count):
            tokens, lot = self._prefill(rows)
            fed.append((tokens, lot.sequences))
            lots.append(lot)
            count += len(lot.sequences)
        self._sequences = [one for lot in lots for one in lot.sequences]
        if lots:
            self._merge(lots)
        # While the device computes, the rows have been laid out.
        for tokens, sequences in fed:
            tokens.append_to(sequences)

    def _next(self, count: int) -> list[Row]:
        """Return the next of the waiting rows, those that fit beside ``count`` sequences."""
        rows: list[Row] = []
        while self._waiting:
            row = self._waiting[-1]
            # The longest comes first.
            width = len((*rows[:1], row)[0].tokens)
            if count and count + len(row.outputs) > self._limits.texts:
                break
            if rows and (len(rows) + 1) * (self._before + width) > self._limits.budget:
                break
            count += len(row.outputs)
            rows.append(self._waiting.pop())
        return rows

    def _lot(self, numbers: Sequence[int]) -> Lot:
        """Return those of the sequences that have these numbers."""
        chosen = torch.tensor(numbers)
        return Lot(
            self._cache,
            [self._sequences[number] for number in numbers],
            chosen // self._width,
            self._seen[chosen, self._before :],
            self._inputs[:, chosen.to(self._inputs.device)],
        )

    def _prefill(self, rows: Sequence[Row]) -> tuple[NextTokens, Lot]:
        """Feed rows; return the first token of each sequence and the sequences."""
        width = max(len(row.tokens) for row in rows)
        cache = preallocated_cache(len(rows), self._before + width, self._prefix)
        cells = [
            (number, end, row.depths[end] + 1, which)
            for number, row in enumerate(rows)
            for which, (end,) in row.outputs
        ]
        inputs = row_inputs(self._model, rows, self._before, packed=self._packed)
        inputs["past_key_values"] = cache
        logits = logits_at(self._model, [cell[:2] for cell in cells], inputs)
        tokens = NextTokens(logits)
        numbers, ends, lengths, _ = torch.tensor(cells).T
        new = [
            RunningSequence(which, self._requests[which], self._endings, length)
            for _, _, length, which in cells
        ]
        device = self._model.device
        following = torch.stack([tokens.ids.to(device), lengths.to(device)])
        seen = seen_in_rows(rows)[numbers, ends]
        return tokens, Lot(cache, new, numbers, seen, following)

    def _merge(self, lots: Sequence[Lot]) -> None:
        """Put the sequences of several caches into one, in rows of about equally many."""
        total, before = len(self._sequences), self._before
        self._width = width = math.ceil(total / math.ceil(total / self._limits.per_row))
        rows = math.ceil(total / width)
        # By numbers that go through all caches and rows: which sequence sees which slot.
        owners, seen, bounds, first = [], [], [0], 0
        for lot in lots:
            owner, slot = lot.seen.nonzero(as_tuple=True)
            layer = lot.cache.layers[0]
            owners.append(owner + first)
            seen.append(bounds[-1] + lot.rows[owner] * layer.room + before + slot)
            bounds.append(bounds[-1] + len(layer.part) * layer.room)
            first += len(lot.sequences)
        owner = torch.cat(owners)
        # What sequences of one row share is there once.
        keys = owner // width * bounds[-1] + torch.cat(seen)
        keys, which = torch.unique(keys, return_inverse=True)
        row, source = keys // bounds[-1], keys % bounds[-1]
        slot = before + torch.arange(len(row)) - torch.searchsorted(row, row)
        self._slots = int(slot.max()) + 1
        ahead = min(max(one.remaining for one in self._sequences), _AHEAD)
        self._room = self._slots + ahead * width
        if self._limits.longest is not None:
            self._room = max(min(self._room, self._limits.longest), self._slots + width)
        target = row * self._room + slot
        moves = []
        for lot, low, high in zip(lots, bounds, bounds[1:], strict=False):
            leaves = (source >= low) & (source < high)
            moves.append((lot.cache, source[leaves] - low, target[leaves]))
        self._cache = rearranged_cache(rows, self._slots, self._room, before, moves)
        self._seen = torch.zeros((rows * width, self._room), dtype=torch.bool)
        self._seen[:, :before] = True
        self._seen[owner, slot[which]] = True
        self._mask = (
            additive(self._seen, self._model).view(rows, 1, width, -1)
            if self._packed
            else self._seen.to(self._model.device, torch.long)
        )
        inputs = torch.cat([lot.inputs for lot in lots], dim=1)
        self._inputs = pad(inputs, (0, rows * width - total))

    @torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
    def _step(self) -> None:
        """Append one more token to every sequence; that of a finished one is not used."""
        width, start = self._width, self._slots
        self._slots += width
        # Every sequence sees its own new slot; so does what fills up a row.
        for table, seen in ((self._seen, 1), (self._mask, 0 if self._packed else 1)):
            new = table.view(-1, width, self._room)[..., start : self._slots]
            new.diagonal(dim1=1, dim2=2).fill_(seen)
        tokens, positions = self._inputs.view(2, -1, width)
        inputs = {"input_ids": tokens, "attention_mask": self._mask[..., : self._slots]}
        if self._takes_position_ids:
            inputs["position_ids"] = positions
        logits = self._model(
            **inputs, past_key_values=self._cache, use_cache=True
        ).logits
        following = NextTokens(logits.flatten(0, 1))
        ids = following.ids.to(self._inputs.device)
        self._inputs = torch.stack([ids, self._inputs[1] + 1])
        following.append_to(self._sequences)


@torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
def continue_encoded(
    model: Any, prompts: Sequence[Prompt], endings: Endings
) -> list[Generated | Failed]:
    """Continue prompts of any lengths by an encoder-decoder model, one answer each, greedily.

    Each distinct prompt is encoded once, and finished sequences leave the batch. All begin together and none
    ever has a gap, for such a decoder need not take positions; what waits comes in with the next batch.
    """
    running = [
        RunningSequence(number, prompt.request, endings)
        for number, prompt in enumerate(prompts)
    ]
    answers: dict[int, Generated | Failed] = {}
    inputs = encoder_outputs(model, [prompt.ids for prompt in prompts])
    encoded, mask = inputs["encoder_outputs"], inputs["attention_mask"]
    states = encoded.last_hidden_state
    longest = max(prompt.request.max_new_tokens for prompt in prompts)
    own = preallocated_cache(len(running), longest, [])
    cache = EncoderDecoderCache(own, DynamicCache())
    start = int(model.generation_config.decoder_start_token_id)
    last = torch.full((len(running),), start, device=model.device)
    while running:
        logits = model(
            # Of its own class: some decoders ask for more than the states.
            encoder_outputs=type(encoded)(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=last[:, None],
            past_key_values=cache,
            use_cache=True,
        ).logits
        tokens = NextTokens(logits[:, -1])
        last = tokens.ids.to(model.device)
        tokens.append_to(running)
        finished = [one for one in running if one.is_finished]
        if len(finished) >= _FINISHED * len(running):
            answers |= {one.number: one.result() for one in finished}
            staying = [row for row, one in enumerate(running) if not one.is_finished]
            running = [running[row] for row in staying]
            if running:
                rows = torch.tensor(staying, device=model.device)
                states, mask = states[rows.to(states.device)], mask[rows]
                last = last[rows]
                for part in (cache.self_attention_cache, cache.cross_attention_cache):
                    for layer in part.layers:
                        layer.batch_select_indices(rows.to(layer.keys.device))
    return [answers[number] for number in range(len(prompts))]
