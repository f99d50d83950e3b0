"""Greedy decode loops: what prompts share is computed once, and finished texts make room for waiting ones.

A packed row carries several sequences behind one copy of the shared prefix, each in cache slots of its own; a
mask hides from each the slots of the others, and position ids are stated. Where an architecture does not
allow that, a row carries one sequence. :mod:`pytest_kbrel.models.hf.generator` tries which holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from transformers import DynamicCache, EncoderDecoderCache

from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.checkpoint.endings import Endings
from pytest_kbrel.models.hf.lm_head import logits_at
from pytest_kbrel.models.hf.prefix_tree import (
    Layers,
    Row,
    SlotMoves,
    preallocated_cache,
    rearranged_cache,
)
from pytest_kbrel.models.hf.scorer import (
    encoder_outputs,
    right_padded,
    row_inputs,
    takes_position_ids,
)
from pytest_kbrel.models.hf.stopping import (
    RunningSequence,
    append_next_tokens,
)
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, Generated, GenerateRequest, record

# Sequences leave, and others come in, when so large a share of the batch has finished: that copies the cache.
_FINISHED = 0.25
# In steps. Memory is taken for so many at a time: most answers are short.
_AHEAD = 16
# A cache with the sequences whose keys and values it holds.
Lot = tuple[Any, list[RunningSequence]]


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
        self._rows: list[list[RunningSequence]] = []
        self._cache: Any = None
        self._slots = self._room = 0
        # Packed: additive, shape (rows, 1, sequences, room); else which slots are in use, shape (rows, room).
        self._mask = torch.zeros((0, 0))

    @property
    def _sequences(self) -> list[RunningSequence]:
        return [sequence for row in self._rows for sequence in row]

    def run(
        self, rows: Sequence[Row], requests: Sequence[GenerateRequest]
    ) -> Batches[Generated]:
        """Yield numbers of sequences in ``rows`` and their continuations, those together that leave together.

        ``requests`` are indexed by these numbers.
        """
        self._waiting = sorted(rows, key=lambda row: len(row.tokens))
        self._requests = requests
        while self._waiting or self._rows:
            sequences = self._sequences
            finished = [sequence for sequence in sequences if sequence.is_finished]
            if len(finished) >= _FINISHED * len(sequences) or self._is_full():
                if finished:
                    yield [
                        (sequence.number, sequence.result()) for sequence in finished
                    ]
                self._renew([one for one in sequences if not one.is_finished])
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
        sequences = self._sequences
        needed = (
            self._before + len(one.slots) + one.remaining
            for one in sequences
            if not one.is_finished
        )
        return any(one.is_finished for one in sequences) and self._slots >= max(needed)

    @property
    def _width(self) -> int:
        return max(map(len, self._rows), default=0)

    def _renew(self, running: list[RunningSequence]) -> None:
        """Lay out the running sequences anew, with as many of those that wait as there is room for."""
        lots = [(self._cache, running)] if running else []
        self._cache, count = None, len(running)
        while rows := self._next(count):
            lots.append(self._prefill(rows))
            count += len(lots[-1][1])
        self._merge(lots)

    def _next(self, count: int) -> list[Row]:
        """Return the next of the waiting rows, those that fit beside ``count`` sequences."""
        rows: list[Row] = []
        while self._waiting:
            row = self._waiting[-1]
            width = max(len(one.tokens) for one in (*rows, row))
            if count and count + len(row.outputs) > self._limits.texts:
                break
            if rows and (len(rows) + 1) * (self._before + width) > self._limits.budget:
                break
            count += len(row.outputs)
            rows.append(self._waiting.pop())
        return rows

    @torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
    def _prefill(self, rows: Sequence[Row]) -> Lot:
        """Feed rows and append each sequence's first token; return the cache and the sequences."""
        width = max(len(row.tokens) for row in rows)
        cache = preallocated_cache(len(rows), self._before + width, self._prefix)
        new, cells = [], []
        for number, row in enumerate(rows):
            for which, (end,) in row.outputs:
                slots = [self._before + index for index in _path(row, end)]
                new.append(
                    RunningSequence(
                        which,
                        self._requests[which],
                        self._endings,
                        row=number,
                        slots=slots,
                    )
                )
                cells.append((number, end))
        inputs = row_inputs(self._model, rows, self._before, packed=self._packed)
        inputs["past_key_values"] = cache
        logits = logits_at(self._model, cells, inputs)
        append_next_tokens(new, range(len(new)), logits)
        return cache, new

    @torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
    def _merge(self, lots: Sequence[Lot]) -> None:
        """Put the sequences of several caches into one, in rows of about equally many."""
        members = [
            (which, sequence)
            for which, (_, sequences) in enumerate(lots)
            for sequence in sequences
        ]
        count = math.ceil(len(members) / self._limits.per_row)
        cuts = [number * len(members) // max(count, 1) for number in range(count + 1)]
        chunks = [members[start:end] for start, end in pairwise(cuts)]
        self._rows = [[sequence for _, sequence in chunk] for chunk in chunks]
        if not members:
            return
        # What sequences of one row share is there once: new slots by (cache, row, slot).
        new_slots: list[dict[tuple[int, int, int], int]] = [{} for _ in chunks]
        for number, (slots, chunk) in enumerate(zip(new_slots, chunks, strict=True)):
            for which, sequence in chunk:
                sequence.slots = [
                    slots.setdefault(
                        (which, sequence.row, slot), self._before + len(slots)
                    )
                    for slot in sequence.slots
                ]
                sequence.row = number
        self._slots = self._before + max(map(len, new_slots))
        ahead = min(max(sequence.remaining for sequence in self._sequences), _AHEAD)
        self._room = self._slots + ahead * self._width
        if self._limits.longest is not None:
            self._room = max(
                min(self._room, self._limits.longest), self._slots + self._width
            )
        moves: list[SlotMoves] = [(cache, []) for cache, _ in lots]
        for number, slots in enumerate(new_slots):
            for (which, row, slot), new_slot in slots.items():
                cache, pairs = moves[which]
                source = row * cache.layers[0].room + slot
                pairs.append((source, number * self._room + new_slot))
        self._cache = rearranged_cache(
            len(chunks), self._slots, self._room, self._before, moves
        )
        self._mask = self._new_mask()

    def _new_mask(self) -> torch.Tensor:
        model, count = self._model, len(self._rows)
        seen = [
            (sequence.row, column, slot)
            for row in self._rows
            for column, sequence in enumerate(row)
            for slot in sequence.slots
        ]
        rows, columns, slots = torch.tensor(seen, device=model.device).T
        if self._packed:
            mask = torch.full(
                (count, 1, self._width, self._room),
                torch.finfo(model.dtype).min,
                dtype=model.dtype,
                device=model.device,
            )
            mask[..., : self._before] = 0
            mask[rows, 0, columns, slots] = 0
        else:
            mask = torch.zeros(
                (count, self._room), dtype=torch.long, device=model.device
            )
            mask[:, : self._before] = 1
            mask[rows, slots] = 1
        return mask

    @torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
    def _step(self) -> None:
        """Append one more token to every sequence; that of a finished one is not used."""
        width, start = self._width, self._slots
        self._slots += width
        if self._packed:
            # Every sequence sees its own new slot; so does what fills up a row.
            self._mask[:, 0, :, start : self._slots].diagonal(dim1=1, dim2=2).fill_(0)
        else:
            self._mask[:, start] = 1
        tokens = right_padded(
            [[one.token_ids[-1] for one in row] for row in self._rows], 0
        )
        inputs = {"input_ids": tokens, "attention_mask": self._mask[..., : self._slots]}
        if self._takes_position_ids:
            positions = [
                [self._before + len(one.slots) for one in row] for row in self._rows
            ]
            inputs["position_ids"] = right_padded(positions, self._before)
        inputs = {
            name: tensor.to(self._model.device) for name, tensor in inputs.items()
        }
        logits = self._model(
            **inputs, past_key_values=self._cache, use_cache=True
        ).logits
        flat = []
        for row in self._rows:
            for column, sequence in enumerate(row):
                sequence.slots.append(start + column)
                flat.append(sequence.row * width + column)
        append_next_tokens(self._sequences, flat, logits.flatten(0, 1))


def _path(row: Row, index: int) -> list[int]:
    """Return the indices of a token and its ancestors, the first in front."""
    path = []
    while index >= 0:
        path.append(index)
        index = row.parents[index]
    return path[::-1]


@torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
def continue_encoded(
    model: Any,
    prompts: Sequence[Ids],
    requests: Sequence[GenerateRequest],
    endings: Endings,
) -> list[Generated | Failed]:
    """Continue prompts of any lengths by an encoder-decoder model, one answer each, greedily.

    Each distinct prompt is encoded once, and finished sequences leave the batch. All begin together and none
    ever has a gap, for such a decoder need not take positions; what waits comes in with the next batch.
    """
    running = [
        RunningSequence(number, request, endings)
        for number, request in enumerate(requests)
    ]
    answers: dict[int, Generated | Failed] = {}
    inputs = encoder_outputs(model, prompts)
    encoded, mask = inputs["encoder_outputs"], inputs["attention_mask"]
    states = encoded.last_hidden_state
    own = preallocated_cache(
        len(running), max(request.max_new_tokens for request in requests), []
    )
    cache = EncoderDecoderCache(own, DynamicCache())
    start = int(model.generation_config.decoder_start_token_id)
    while running:
        last = [[one.token_ids[-1] if one.token_ids else start] for one in running]
        logits = model(
            # Of its own class: some decoders ask for more than the states.
            encoder_outputs=type(encoded)(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=torch.tensor(last, device=model.device),
            past_key_values=cache,
            use_cache=True,
        ).logits
        append_next_tokens(running, range(len(running)), logits[:, -1])
        finished = [one for one in running if one.is_finished]
        if len(finished) >= _FINISHED * len(running):
            answers |= {one.number: one.result() for one in finished}
            staying = [row for row, one in enumerate(running) if not one.is_finished]
            running = [running[row] for row in staying]
            if running:
                rows = torch.tensor(staying, device=model.device)
                states, mask = states[rows.to(states.device)], mask[rows]
                for part in (cache.self_attention_cache, cache.cross_attention_cache):
                    for layer in part.layers:
                        layer.batch_select_indices(rows.to(layer.keys.device))
    return [answers[number] for number in range(len(prompts))]
