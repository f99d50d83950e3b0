"""Texts under way: what each has written so far, whether it has ended, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from pytest_kbrel.models.hf.stopping import Continuation, Endings
from pytest_kbrel.records import Failed, GenerateRequest, Step


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
