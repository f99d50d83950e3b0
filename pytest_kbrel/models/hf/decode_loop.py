"""Greedy continuations of many prompts at once: what they share is computed once, texts that have ended
leave the batch, and waiting ones take their places.

A packed row carries several texts behind one copy of the shared prefix, each in slots of its own; a mask
hides from each the slots of the others, and positions are stated. Where an architecture does not allow that,
a row carries one text. Which of them holds is tried before it is used
(:mod:`pytest_kbrel.models.hf.generator`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch

from pytest_kbrel.models.hf.kv_cache import Layers, Move, laid_out, roomy_cache
from pytest_kbrel.models.hf.lm_head import LOGITS_AT_ONCE, logits_at
from pytest_kbrel.models.hf.logprobs import right_padded
from pytest_kbrel.models.hf.packing import row_inputs, states_places
from pytest_kbrel.models.hf.sequence import Line, take_next
from pytest_kbrel.models.hf.stopping import Continuation, Endings
from pytest_kbrel.models.prefix_tree import Row
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, GenerateRequest, record

# Texts leave, and others come in, when so large a share of the batch has ended: doing so copies the cache.
_ENDED = 0.25
# In steps. Memory is taken for so many at a time: most answers are short.
_AHEAD = 16
# Reading a slot once more costs so many times what seeing one in vain does; measured on a CPU.
_READING = 9
_MOST_BESIDE = 32


@record
class Size:
    """How large a batch may be: ``most`` texts, of which ``beside`` in one row; ``budget`` slots in all.

    ``longest`` is the number of slots that a row may have, ``None`` for any.
    """

    beside: int
    most: int
    budget: int
    longest: int | None = None


def size_of(
    before: int, own: int, budget: int, *, longest: int | None, vocabulary: int, packed: bool
) -> Size:
    """Return the size of batches behind a prefix of ``before`` tokens, of texts of at most ``own`` more.

    The more texts share a row, the fewer copies of the prefix there are, and the more slots each passes over.
    """
    beside = 1
    if packed:
        room = min(budget, budget if longest is None else longest) - before
        best = round(math.sqrt(_READING * before / own))
        beside = max(1, min(best, _MOST_BESIDE, room // own))
    rows = max(1, budget // (before + beside * own))
    most = max(1, min(beside * rows, LOGITS_AT_ONCE // vocabulary))
    return Size(beside=beside, most=most, budget=budget, longest=longest if packed else None)


class Loop:
    """The batch behind one prefix of ``before`` tokens, whose keys and values are ``prefix``."""

    def __init__(
        self, model: Any, before: int, prefix: Layers, endings: Endings, size: Size, *, packed: bool
    ) -> None:
        self._model, self._before, self._prefix = model, before, prefix
        self._endings, self._size, self._packed = endings, size, packed
        self._states_places = states_places(model)
        self._rows: list[list[Line]] = []
        self._cache: Any = None
        self._slots = self._room = 0
        # Packed: additive, shape (rows, 1, texts, room); else which slots are in use, shape (rows, room).
        self._mask = torch.zeros((0, 0))

    @property
    def _lines(self) -> list[Line]:
        return [line for row in self._rows for line in row]

    def run(
        self, rows: Sequence[Row], requests: Sequence[GenerateRequest]
    ) -> Iterator[list[tuple[int, Continuation | Failed]]]:
        """Yield numbers of sequences in ``rows`` and their continuations, those together that leave together.

        ``requests`` are found by these numbers.
        """
        waiting = sorted(rows, key=lambda row: len(row.tokens))
        while waiting or self._rows:
            lines = self._lines
            over = [line for line in lines if line.over]
            if len(over) >= _ENDED * len(lines) or self._is_full():
                if over:
                    yield [(line.number, line.result()) for line in over]
                self._renew([line for line in lines if not line.over], waiting, requests)
            else:
                self._step()

    def _is_full(self) -> bool:
        """Tell whether the rows must be laid out anew before the next step."""
        if self._slots + self._width > self._room:
            return True
        if self._packed:
            return False
        # Texts that have ended take slots too. Beyond what any under way may come to need, a window would
        # cut off tokens that others still see, and a table of positions would end.
        lines = self._lines
        needed = (self._before + len(line.slots) + line.left for line in lines if not line.over)
        return any(line.over for line in lines) and self._slots >= max(needed)

    @property
    def _width(self) -> int:
        return max(map(len, self._rows), default=0)

    def _renew(self, living: list[Line], waiting: list[Row], requests: Sequence[GenerateRequest]) -> None:
        """Lay out the living anew, with as many of those that wait as there is room for."""
        places = {id(line): number for number, row in enumerate(self._rows) for line in row}
        lots = [(self._cache, [(line, places[id(line)]) for line in living])] if living else []
        self._cache, count = None, len(living)
        while taken := self._next(waiting, count):
            lots.append(self._read(taken, requests))
            count += len(lots[-1][1])
        self._lay(lots)

    def _next(self, waiting: list[Row], count: int) -> list[Row]:
        taken: list[Row] = []
        while waiting:
            row = waiting[-1]
            width = max(len(one.tokens) for one in (*taken, row))
            if count and count + len(row.places) > self._size.most:
                break
            if taken and (len(taken) + 1) * (self._before + width) > self._size.budget:
                break
            count += len(row.places)
            taken.append(waiting.pop())
        return taken

    def _read(
        self, rows: Sequence[Row], requests: Sequence[GenerateRequest]
    ) -> tuple[Any, list[tuple[Line, int]]]:
        """Feed rows and let each text write its first token; return the cache, and each with its row."""
        width = max(len(row.tokens) for row in rows)
        with torch.inference_mode():
            cache = roomy_cache(len(rows), self._before + width, self._prefix)
        new, ends = [], []
        for place, row in enumerate(rows):
            for number, (end,) in row.places:
                slots = [self._before + step for step in _path(row, end)]
                new.append((Line(number, requests[number], self._endings, slots), place))
                ends.append(end)
        device = self._model.device
        places = torch.tensor([place for _, place in new], device=device)
        inputs = row_inputs(self._model, rows, self._before, packed=self._packed)
        inputs["past_key_values"] = cache
        spots = torch.tensor(ends, device=device)
        logits = logits_at(self._model, places, spots, inputs, use_cache=True)
        with torch.inference_mode():
            take_next([line for line, _ in new], range(len(new)), logits)
        return cache, new

    @torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
    def _lay(self, lots: Sequence[tuple[Any, list[tuple[Line, int]]]]) -> None:
        """Put the texts of several caches into one, in rows of about equally many."""
        found = [(which, line, row) for which, (_, lines) in enumerate(lots) for line, row in lines]
        count = math.ceil(len(found) / self._size.beside)
        cuts = [number * len(found) // max(count, 1) for number in range(count + 1)]
        chunks = [found[start:end] for start, end in pairwise(cuts)]
        self._rows = [[line for _, line, _ in chunk] for chunk in chunks]
        if not found:
            return
        # What texts of one row share is there once: new slots by (cache, row, slot).
        moved: list[dict[tuple[int, int, int], int]] = [{} for _ in chunks]
        for known, chunk in zip(moved, chunks, strict=True):
            for which, line, row in chunk:
                line.slots = [
                    known.setdefault((which, row, slot), self._before + len(known)) for slot in line.slots
                ]
        self._slots = self._before + max(map(len, moved))
        ahead = min(max(line.left for line in self._lines), _AHEAD)
        self._room = self._slots + ahead * self._width
        if self._size.longest is not None:
            self._room = max(min(self._room, self._size.longest), self._slots + self._width)
        moves = []
        for number, (cache, _) in enumerate(lots):
            width = cache.layers[0].room
            pairs = [
                (row * width + slot, place * self._room + new)
                for place, known in enumerate(moved)
                for (which, row, slot), new in known.items()
                if which == number
            ]
            sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
            moves.append(Move(cache=cache, sources=sources, targets=targets))
        self._cache = laid_out(len(chunks), self._slots, self._room, self._before, moves)
        self._mask = self._new_mask()

    def _new_mask(self) -> torch.Tensor:
        model, rows = self._model, len(self._rows)
        spots = [
            (place, column, slot)
            for place, row in enumerate(self._rows)
            for column, line in enumerate(row)
            for slot in line.slots
        ]
        places, columns, slots = torch.tensor(spots, device=model.device).T
        if not self._packed:
            mask = torch.zeros((rows, self._room), dtype=torch.long, device=model.device)
            mask[:, : self._before] = 1
            mask[places, slots] = 1
            return mask
        hidden = torch.finfo(model.dtype).min
        shape = (rows, 1, self._width, self._room)
        mask = torch.full(shape, hidden, dtype=model.dtype, device=model.device)
        mask[..., : self._before] = 0
        mask[places, 0, columns, slots] = 0
        return mask

    @torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
    def _step(self) -> None:
        """Write one more token in every text; nobody looks at what one writes that is over."""
        width, start = self._width, self._slots
        self._slots += width
        if self._packed:
            # Every text sees its own new slot; so does what fills up a row.
            self._mask[:, 0, :, start : self._slots].diagonal(dim1=1, dim2=2).fill_(0)
        else:
            self._mask[:, start] = 1
        tokens = right_padded([[line.written[-1] for line in row] for row in self._rows], 0)
        named = {"input_ids": tokens, "attention_mask": self._mask[..., : self._slots]}
        if self._states_places:
            places = [[self._before + len(line.slots) for line in row] for row in self._rows]
            named["position_ids"] = right_padded(places, self._before)
        fed = {name: tensor.to(self._model.device) for name, tensor in named.items()}
        logits = self._model(**fed, past_key_values=self._cache, use_cache=True).logits
        for row in self._rows:
            for column, line in enumerate(row):
                line.slots.append(start + column)
        spots = [place * width + column for place, row in enumerate(self._rows) for column in range(len(row))]
        take_next(self._lines, spots, logits.flatten(0, 1))


def _path(row: Row, place: int) -> Ids:
    """Return the places of a token and its ancestors, the first in front."""
    found = []
    while place >= 0:
        found.append(place)
        place = row.parents[place]
    return tuple(reversed(found))
