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
from transformers import DynamicCache, EncoderDecoderCache

from pytest_kbrel.models.hf.batch_plan import Size
from pytest_kbrel.models.hf.kv_cache import Layers, Move, laid_out, roomy_cache
from pytest_kbrel.models.hf.lm_head import logits_at
from pytest_kbrel.models.hf.prefix_tree import Row
from pytest_kbrel.models.hf.scorer import right_padded, row_inputs, states_places
from pytest_kbrel.models.hf.stopping import Continuation, Endings
from pytest_kbrel.models.tokens import Ids
from pytest_kbrel.records import Failed, GenerateRequest, Step

# Texts leave, and others come in, when so large a share of the batch has ended: doing so copies the cache.
_ENDED = 0.25
# In steps. Memory is taken for so many at a time: most answers are short.
_AHEAD = 16


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


class Line:
    """One text under way. ``slots`` are those of the row's cache that it sees behind the shared prefix."""

    def __init__(
        self, number: int, request: GenerateRequest, endings: Endings, slots: Sequence[int] = ()
    ) -> None:
        self.number, self.request = number, request
        self.slots = list(slots)
        self.written: list[int] = []
        self.over = False
        # A token's probability or logit, and that of the watched token.
        self._seen: list[tuple[float, float | None]] = []
        self._endings = endings
        self._masks = [endings.mask(stop) for stop in request.stop]

    @property
    def left(self) -> int:
        """How many more tokens it may write."""
        return self.request.max_new_tokens - len(self.written)

    @property
    def watched(self) -> int | None:
        """The token whose probability is asked for at the next step."""
        watch, step = self.request.watch, len(self.written)
        return watch[step] if self.request.steps and step < len(watch) else None

    def take(self, token: int, value: float, watched: float | None) -> None:
        """Write one more token, of which ``value`` is the probability or the logit."""
        self.written.append(token)
        self._seen.append((value, watched))
        self.over = (
            self.left <= 0
            or token in self._endings.eos_ids
            or not math.isfinite(value)
            or (
                any(mask is None or bool(mask[token]) for mask in self._masks)
                and self._endings.stops(self.written, self.request.stop)
            )
        )

    def result(self) -> Continuation | Failed:
        """Return what was written, up to where it ends."""
        if any(not math.isfinite(value) for value, _ in self._seen):
            return Failed(error="not a number among the model's logits")
        end = self._endings.cut(tuple(self.written), self.request.stop)
        steps = tuple(
            Step(
                token_id=token,
                token=self._endings.piece(token),
                probability=min(value, 1.0),
                watched=watched,
            )
            for token, (value, watched) in zip(end.token_ids, self._seen, strict=False)
        )
        kept = steps if self.request.steps else ()
        return Continuation(text=end.text, token_ids=end.token_ids, finish=end.finish, steps=kept)


def take_next(lines: Sequence[Line], places: Sequence[int], logits: torch.Tensor) -> None:
    """Let every line write the most probable token by its row ``places[i]`` of ``logits``."""
    scores = logits.float()
    if any(line.request.steps for line in lines):
        scores = scores.softmax(-1)
    on_cpu = scores.device.type == "cpu"
    # PyTorch's own search for the greatest takes ten times as long.
    tokens = torch.from_numpy(scores.numpy().argmax(-1)) if on_cpu else scores.argmax(-1)
    # The greatest is not a number as soon as one of the row's values is not.
    values = scores.gather(-1, tokens[:, None])[:, 0].tolist()
    written = tokens.tolist()
    for line, place in zip(lines, places, strict=True):
        if not line.over:
            watched = None if line.watched is None else float(scores[place, line.watched])
            line.take(written[place], values[place], watched)


@torch.inference_mode()  # type: ignore[untyped-decorator,unused-ignore]
def continue_encoded(
    model: Any, prompts: Sequence[Ids], requests: Sequence[GenerateRequest], endings: Endings
) -> list[Continuation | Failed]:
    """Continue prompts of any lengths, one answer each; ``requests`` must be greedy ones."""
    lines = [Line(number, request, endings) for number, request in enumerate(requests)]
    found: list[Continuation | Failed] = [Failed(error="not asked")] * len(lines)
    distinct = {ids: place for place, ids in enumerate(dict.fromkeys(prompts))}
    tokens = right_padded(list(distinct), int(model.generation_config.pad_token_id)).to(model.device)
    mask = right_padded([[1] * len(ids) for ids in distinct], 0).to(model.device)
    encoded = model.get_encoder()(input_ids=tokens, attention_mask=mask)
    rows = torch.tensor([distinct[ids] for ids in prompts], device=model.device)
    states, mask = encoded.last_hidden_state[rows.to(encoded.last_hidden_state.device)], mask[rows]
    own = roomy_cache(len(lines), max(request.max_new_tokens for request in requests), [])
    cache = EncoderDecoderCache(own, DynamicCache())
    start = int(model.generation_config.decoder_start_token_id)
    while lines:
        fed = [[line.written[-1] if line.written else start] for line in lines]
        logits = model(
            # Of its own class: some decoders ask for more than the states.
            encoder_outputs=type(encoded)(last_hidden_state=states),
            attention_mask=mask,
            decoder_input_ids=torch.tensor(fed, device=model.device),
            past_key_values=cache,
            use_cache=True,
        ).logits
        take_next(lines, range(len(lines)), logits[:, -1])
        over = [line for line in lines if line.over]
        if len(over) >= _ENDED * len(lines):
            for line in over:
                found[line.number] = line.result()
            places = [place for place, line in enumerate(lines) if not line.over]
            lines = [lines[place] for place in places]
            if lines:
                kept = torch.tensor(places, device=model.device)
                states, mask = states[kept.to(states.device)], mask[kept]
                for part in (cache.self_attention_cache, cache.cross_attention_cache):
                    for layer in part.layers:
                        layer.batch_select_indices(kept.to(layer.keys.device))
    return found
