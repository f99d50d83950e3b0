"""Greedy continuations of many prompts at once: a shared beginning is computed once, rows that have ended
leave the batch, and waiting ones take their places.

Rows have gaps where others are longer; a mask hides these, and positions are stated. Not every architecture
allows that: :mod:`pytest_kbrel.models.hf_generator` tries it before it is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pytest_kbrel.models.hf_caches import Layers, beside, cache_of, layers_of, moved_together
from pytest_kbrel.models.hf_generation import Continuation, Endings
from pytest_kbrel.models.hf_packed import states_places
from pytest_kbrel.models.hf_scoring import logits_at, right_padded
from pytest_kbrel.models.hf_tokens import Ids
from pytest_kbrel.records import Failed, GenerateRequest, Step, record

# Rows leave, and others come in, when so large a share of the batch has ended: doing so copies the cache.
_ENDED = 0.25


@record
class Task:
    """One prompt to continue: its number, what follows the shared prefix, and how long and where to stop."""

    number: int
    suffix: Ids
    request: GenerateRequest


class Loop:
    """The batch behind one prefix of ``before`` tokens; at most ``rows`` at once."""

    def __init__(self, model: Any, before: int, prefix: Layers, endings: Endings, rows: int) -> None:
        self._model, self._before, self._prefix = model, before, prefix
        self._endings, self._rows = endings, rows
        self._states_places = states_places(model)
        self._lines: list[_Line] = []
        self._cache: Any = None
        # Shape (rows, slots): which slots of the cache hold a token of the row.
        self._mask = torch.zeros((0, 0), dtype=torch.long)

    def run(self, tasks: Sequence[Task]) -> Iterator[list[tuple[int, Continuation | Failed]]]:
        """Yield each task's number and continuation, those together that leave the batch together."""
        waiting = list(reversed(tasks))
        while waiting or self._lines:
            over = sum(line.over for line in self._lines)
            if over >= _ENDED * len(self._lines) or (over and self._is_full()):
                if over:
                    yield [(line.task.number, line.result()) for line in self._lines if line.over]
                self._keep([place for place, line in enumerate(self._lines) if not line.over])
                room = self._rows - len(self._lines)
                if waiting and room:
                    self._admit([waiting.pop() for _ in range(min(room, len(waiting)))])
                    continue
            if self._lines:
                self._step()

    def _is_full(self) -> bool:
        """Tell whether the cache has as many slots as any row under way may come to need.

        Rows that have ended take slots too. Beyond this, a window would cut off tokens that rows still see,
        and a table of positions would end.
        """
        needed = (
            self._before + len(line.task.suffix) + line.task.request.max_new_tokens
            for line in self._lines
            if not line.over
        )
        return self._mask.shape[1] >= max(needed)

    def _keep(self, places: list[int]) -> None:
        if len(places) == len(self._lines):
            return
        self._lines = [self._lines[place] for place in places]
        layers, self._mask = moved_together(layers_of(self._cache), self._mask[places], places)
        self._cache = cache_of(self._model, layers) if places else None

    def _admit(self, tasks: Sequence[Task]) -> None:
        """Compute the first token of new tasks and put these beside those under way."""
        suffixes = [task.suffix for task in tasks]
        lengths = [len(suffix) for suffix in suffixes]
        mask = right_padded([[1] * (self._before + length) for length in lengths], 0)
        places = right_padded([range(self._before, self._before + length) for length in lengths], 0)
        shared = [
            (keys.expand(len(tasks), -1, -1, -1), values.expand(len(tasks), -1, -1, -1))
            for keys, values in self._prefix
        ]
        cache = cache_of(self._model, shared)
        ends = torch.tensor([length - 1 for length in lengths], device=self._model.device)
        rows = torch.arange(len(tasks), device=self._model.device)
        inputs = self._fed(right_padded(suffixes, 0), mask, places, cache)
        logits = logits_at(self._model, rows, ends, inputs, use_cache=True)
        new = [_Line(task, self._endings) for task in tasks]
        _take(new, logits)
        if self._lines:
            layers, mask = beside(layers_of(self._cache), self._mask, layers_of(cache), mask)
            cache = cache_of(self._model, layers)
        self._lines, self._cache, self._mask = [*self._lines, *new], cache, mask

    def _step(self) -> None:
        """Write one more token in every row; nobody looks at what a row writes that is over."""
        self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
        tokens = torch.tensor([[line.written[-1]] for line in self._lines])
        inputs = self._fed(tokens, self._mask, self._mask.sum(1, keepdim=True) - 1, self._cache)
        with torch.inference_mode():
            logits = self._model(**inputs, use_cache=True).logits[:, -1]
        _take(self._lines, logits)

    def _fed(
        self, tokens: torch.Tensor, mask: torch.Tensor, places: torch.Tensor, cache: Any
    ) -> dict[str, Any]:
        named = {"input_ids": tokens, "attention_mask": mask}
        if self._states_places:
            named["position_ids"] = places
        fed: dict[str, Any] = {name: tensor.to(self._model.device) for name, tensor in named.items()}
        return {**fed, "past_key_values": cache}


class _Line:
    """A task under way. ``seen`` has token, its probability or logit, and that of the watched token."""

    def __init__(self, task: Task, endings: Endings) -> None:
        self.task = task
        self.written: list[int] = []
        self.over = False
        self._seen: list[tuple[float, float | None]] = []
        self._endings = endings
        self._masks = [(stop, endings.mask(stop)) for stop in task.request.stop]

    @property
    def watched(self) -> int | None:
        """The token whose probability is asked for at the next step."""
        watch, step = self.task.request.watch, len(self.written)
        return watch[step] if self.task.request.steps and step < len(watch) else None

    def take(self, token: int, value: float, watched: float | None) -> None:
        self.written.append(token)
        self._seen.append((value, watched))
        self.over = (
            len(self.written) >= self.task.request.max_new_tokens
            or token in self._endings.eos_ids
            or not math.isfinite(value)
            or any(
                bool(mask[token]) if mask is not None else stop in self._endings.decode(self.written)
                for stop, mask in self._masks
            )
        )

    def result(self) -> Continuation | Failed:
        if any(not math.isfinite(value) for value, _ in self._seen):
            return Failed(error="not a number among the model's logits")
        end = self._endings.cut(tuple(self.written), self.task.request.stop)
        steps = tuple(
            Step(
                token_id=token,
                token=self._endings.piece(token),
                probability=min(value, 1.0),
                watched=watched,
            )
            for token, (value, watched) in zip(end.token_ids, self._seen, strict=False)
        )
        kept = steps if self.task.request.steps else ()
        return Continuation(text=end.text, token_ids=end.token_ids, finish=end.finish, steps=kept)


def _take(lines: Sequence[_Line], logits: torch.Tensor) -> None:
    # The maximum is not a number as soon as one of the row's values is not.
    scores = logits.float()
    if any(line.task.request.steps for line in lines):
        scores = scores.softmax(-1)
    values, tokens = scores.max(-1)
    for row, (line, value, token) in enumerate(zip(lines, values.tolist(), tokens.tolist(), strict=True)):
        if not line.over:
            watched = None if line.watched is None else float(scores[row, line.watched])
            line.take(token, value, watched)
