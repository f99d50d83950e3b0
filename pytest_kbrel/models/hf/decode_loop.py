"""Greedy decode loops: what prompts share is computed once, and finished texts make room for waiting ones.

A packed row carries several sequences behind one copy of the shared prefix, each in cache slots of its own; a
mask hides from each the slots of the others, and position ids are stated. Where an architecture does not
allow that, a row carries one sequence. :mod:`pytest_kbrel.models.hf.generator` tries which holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from transformers import DynamicCache, EncoderDecoderCache

from pytest_kbrel.models.hf.batch_plan import BatchLimits
from pytest_kbrel.models.hf.kv_cache import (
    Layers,
    SlotMove,
    preallocated_cache,
    rearranged_cache,
)
from pytest_kbrel.models.hf.lm_head import logits_at
from pytest_kbrel.models.hf.prefix_tree import Row
from pytest_kbrel.models.hf.scorer import (
    encoder_outputs,
    right_padded,
    row_inputs,
    takes_position_ids,
)
from pytest_kbrel.models.hf.stopping import (
    MOST_POSITIONS,
    Continuation,
    Endings,
    top_tokens,
)
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, GenerateRequest, TopTokens

# Sequences leave, and others come in, when so large a share of the batch has finished: that copies the cache.
_FINISHED = 0.25
# In steps. Memory is taken for so many at a time: most answers are short.
_AHEAD = 16


class RunningSequence:
    """One sequence under way; ``slots`` are those of its cache row that it sees behind the shared prefix."""

    def __init__(
        self,
        number: int,
        request: GenerateRequest,
        endings: Endings,
        slots: Sequence[int] = (),
    ) -> None:
        self.number, self.request = number, request
        self.slots = list(slots)
        self.token_ids: list[int] = []
        self.is_finished = False
        # Of each token the probability, and that of the watched token.
        self._values: list[tuple[float, float | None]] = []
        self._top: list[TopTokens] = []
        self._endings = endings
        self._masks = [endings.mask(stop) for stop in request.stop]

    @property
    def remaining(self) -> int:
        """The most tokens that it may still get."""
        return self.request.max_new_tokens - len(self.token_ids)

    @property
    def watched(self) -> int | None:
        """The token whose probability is wanted at the next step."""
        watch, step = self.request.watch, len(self.token_ids)
        return watch[step] if self.request.steps and step < len(watch) else None

    @property
    def top_k(self) -> int:
        """How many of the most probable tokens are wanted at the next step."""
        return (
            0
            if self.is_finished or len(self.token_ids) >= MOST_POSITIONS
            else self.request.top_k
        )

    def append(
        self, token: int, value: float, watched: float | None, top: TopTokens = ()
    ) -> None:
        """Append a token, of which ``value`` is the probability, with the most probable ones, if wanted."""
        if self.top_k:
            self._top.append(top)
        self.token_ids.append(token)
        self._values.append((value, watched))
        self.is_finished = (
            self.remaining <= 0
            or token in self._endings.eos_ids
            or not math.isfinite(value)
            or (
                any(mask is None or bool(mask[token]) for mask in self._masks)
                and self._endings.stops(self.token_ids, self.request.stop)
            )
        )

    def result(self) -> Continuation | Failed:
        """Return the continuation, up to where it ends."""
        steps = [
            (token, *values)
            for token, values in zip(self.token_ids, self._values, strict=True)
        ]
        return self._endings.continuation(
            tuple(self.token_ids), steps, self.request, self._top
        )


def append_next_tokens(
    sequences: Sequence[RunningSequence], rows: Sequence[int], logits: torch.Tensor
) -> None:
    """Append to each unfinished sequence ``i`` the most probable token by row ``rows[i]`` of ``logits``."""
    scores = logits.float()
    with_steps = any(sequence.request.steps for sequence in sequences)
    wanted = {
        row: one.top_k for one, row in zip(sequences, rows, strict=True) if one.top_k
    }
    # A softmax would write as many numbers again as there are logits.
    norms = (
        scores.logsumexp(-1)
        if wanted or not with_steps
        else scores.new_zeros(len(scores))
    )
    logits = scores
    if with_steps:
        scores = scores.softmax(-1)
    on_cpu = scores.device.type == "cpu"
    # PyTorch's own search for the greatest takes ten times as long.
    best = torch.from_numpy(scores.numpy().argmax(-1)) if on_cpu else scores.argmax(-1)
    # The greatest is not a number as soon as one of the row's values is not.
    greatest = scores.gather(-1, best[:, None])[:, 0]
    values = (greatest if with_steps else (greatest - norms).exp()).tolist()
    tokens = best.tolist()
    top = (
        _top_by_row(wanted, logits, norms, logits.gather(-1, best[:, None])[:, 0])
        if wanted
        else {}
    )
    for sequence, row in zip(sequences, rows, strict=True):
        if not sequence.is_finished:
            watched = (
                None
                if sequence.watched is None
                else float(scores[row, sequence.watched])
            )
            sequence.append(tokens[row], values[row], watched, top.get(row, ()))


def _top_by_row(
    wanted: dict[int, int],
    logits: torch.Tensor,
    norms: torch.Tensor,
    greatest: torch.Tensor,
) -> dict[int, TopTokens]:
    """Return the most probable tokens of the ``wanted`` rows; those of one run all want equally many."""
    rows: Sequence[int] = range(len(logits))
    # A copy of a row takes as long as the search in it.
    if 2 * len(wanted) < len(logits):
        rows = sorted(wanted)
        chosen = torch.tensor(rows, device=logits.device)
        logits, norms, greatest = logits[chosen], norms[chosen], greatest[chosen]
    return dict(
        zip(
            rows, top_tokens(logits, norms, greatest, max(wanted.values())), strict=True
        )
    )


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
    ) -> Iterator[list[tuple[int, Continuation | Failed]]]:
        """Yield numbers of sequences in ``rows`` and their continuations, those together that leave together.

        ``requests`` are indexed by these numbers.
        """
        waiting = sorted(rows, key=lambda row: len(row.tokens))
        while waiting or self._rows:
            sequences = self._sequences
            finished = [sequence for sequence in sequences if sequence.is_finished]
            if len(finished) >= _FINISHED * len(sequences) or self._is_full():
                if finished:
                    yield [
                        (sequence.number, sequence.result()) for sequence in finished
                    ]
                self._renew(
                    [one for one in sequences if not one.is_finished], waiting, requests
                )
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

    def _renew(
        self,
        running: list[RunningSequence],
        waiting: list[Row],
        requests: Sequence[GenerateRequest],
    ) -> None:
        """Lay out the running sequences anew, with as many of those that wait as there is room for."""
        row_of = {
            id(sequence): number
            for number, row in enumerate(self._rows)
            for sequence in row
        }
        lots = (
            [(self._cache, [(sequence, row_of[id(sequence)]) for sequence in running])]
            if running
            else []
        )
        self._cache, count = None, len(running)
        while rows := self._next(waiting, count):
            lots.append(self._prefill(rows, requests))
            count += len(lots[-1][1])
        self._merge(lots)

    def _next(self, waiting: list[Row], count: int) -> list[Row]:
        """Remove from ``waiting`` the rows that fit beside ``count`` sequences, and return them."""
        rows: list[Row] = []
        while waiting:
            row = waiting[-1]
            width = max(len(one.tokens) for one in (*rows, row))
            if count and count + len(row.outputs) > self._limits.texts:
                break
            if rows and (len(rows) + 1) * (self._before + width) > self._limits.budget:
                break
            count += len(row.outputs)
            rows.append(waiting.pop())
        return rows

    def _prefill(
        self, rows: Sequence[Row], requests: Sequence[GenerateRequest]
    ) -> tuple[Any, list[tuple[RunningSequence, int]]]:
        """Feed rows and append each sequence's first token; return the cache, and each with its row."""
        width = max(len(row.tokens) for row in rows)
        with torch.inference_mode():
            cache = preallocated_cache(len(rows), self._before + width, self._prefix)
        new, ends = [], []
        for number, row in enumerate(rows):
            for sequence, (end,) in row.outputs:
                slots = [self._before + index for index in _path(row, end)]
                new.append(
                    (
                        RunningSequence(
                            sequence, requests[sequence], self._endings, slots
                        ),
                        number,
                    )
                )
                ends.append(end)
        device = self._model.device
        inputs = row_inputs(self._model, rows, self._before, packed=self._packed)
        inputs["past_key_values"] = cache
        row_of = torch.tensor([row for _, row in new], device=device)
        logits = logits_at(
            self._model,
            row_of,
            torch.tensor(ends, device=device),
            inputs,
            use_cache=True,
        )
        with torch.inference_mode():
            append_next_tokens(
                [sequence for sequence, _ in new], range(len(new)), logits
            )
        return cache, new

    @torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
    def _merge(
        self, lots: Sequence[tuple[Any, list[tuple[RunningSequence, int]]]]
    ) -> None:
        """Put the sequences of several caches into one, in rows of about equally many."""
        members = [
            (which, sequence, row)
            for which, (_, lot) in enumerate(lots)
            for sequence, row in lot
        ]
        count = math.ceil(len(members) / self._limits.per_row)
        cuts = [number * len(members) // max(count, 1) for number in range(count + 1)]
        chunks = [members[start:end] for start, end in pairwise(cuts)]
        self._rows = [[sequence for _, sequence, _ in chunk] for chunk in chunks]
        if not members:
            return
        # What sequences of one row share is there once: new slots by (cache, row, slot).
        new_slots: list[dict[tuple[int, int, int], int]] = [{} for _ in chunks]
        for slots, chunk in zip(new_slots, chunks, strict=True):
            for which, sequence, row in chunk:
                sequence.slots = [
                    slots.setdefault((which, row, slot), self._before + len(slots))
                    for slot in sequence.slots
                ]
        self._slots = self._before + max(map(len, new_slots))
        ahead = min(max(sequence.remaining for sequence in self._sequences), _AHEAD)
        self._room = self._slots + ahead * self._width
        if self._limits.longest is not None:
            self._room = max(
                min(self._room, self._limits.longest), self._slots + self._width
            )
        moves = []
        for number, (cache, _) in enumerate(lots):
            width = cache.layers[0].room
            pairs = [
                (row * width + slot, new_row * self._room + new)
                for new_row, slots in enumerate(new_slots)
                for (which, row, slot), new in slots.items()
                if which == number
            ]
            sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
            moves.append(SlotMove(cache=cache, sources=sources, targets=targets))
        self._cache = rearranged_cache(
            len(chunks), self._slots, self._room, self._before, moves
        )
        self._mask = self._new_mask()

    def _new_mask(self) -> torch.Tensor:
        model, count = self._model, len(self._rows)
        visible = [
            (number, column, slot)
            for number, row in enumerate(self._rows)
            for column, sequence in enumerate(row)
            for slot in sequence.slots
        ]
        rows, columns, slots = torch.tensor(visible, device=model.device).T
        if not self._packed:
            mask = torch.zeros(
                (count, self._room), dtype=torch.long, device=model.device
            )
            mask[:, : self._before] = 1
            mask[rows, slots] = 1
            return mask
        hidden = torch.finfo(model.dtype).min
        shape = (count, 1, self._width, self._room)
        mask = torch.full(shape, hidden, dtype=model.dtype, device=model.device)
        mask[..., : self._before] = 0
        mask[rows, 0, columns, slots] = 0
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
        for number, row in enumerate(self._rows):
            for column, sequence in enumerate(row):
                sequence.slots.append(start + column)
                flat.append(number * width + column)
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
) -> list[Continuation | Failed]:
    """Continue prompts of any lengths by an encoder-decoder model, one answer each, greedily.

    Each distinct prompt is encoded once, and finished sequences leave the batch. All begin together and none
    ever has a gap, for such a decoder need not take positions; what waits comes in with the next batch.
    """
    running = [
        RunningSequence(number, request, endings)
        for number, request in enumerate(requests)
    ]
    answers: dict[int, Continuation | Failed] = {}
    inputs = encoder_outputs(model, prompts, int(model.generation_config.pad_token_id))
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
