"""Continues prompts of any number: in one loop where the checkpoint allows it, else in plain batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from pytest_kbrel.models.batching import Batcher, is_out_of_memory, release_memory
from pytest_kbrel.models.hf_generation import Continuation, Endings, generate_batch
from pytest_kbrel.models.hf_ladder import agree, sample_pairs
from pytest_kbrel.models.hf_loop import Loop, Task
from pytest_kbrel.models.hf_packed import feed_prefix
from pytest_kbrel.models.hf_scoring import score_batch
from pytest_kbrel.models.hf_tokens import Ids, Pair
from pytest_kbrel.models.hf_window import window_of
from pytest_kbrel.models.sharing import Asked, plan
from pytest_kbrel.records import Failed, GenerateRequest, record

Answer = Continuation | Failed


@record
class Prompt:
    """A prompt's token ids and what is asked about it."""

    ids: Ids
    request: GenerateRequest

    @property
    def length(self) -> int:
        """The most tokens that prompt and continuation can have."""
        return len(self.ids) + self.request.max_new_tokens

    @property
    def kind(self) -> tuple[object, ...]:
        """What prompts must share to be answered in one plain batch."""
        r = self.request
        return (len(self.ids), r.max_new_tokens, r.num_beams, r.steps, r.stop)


class Generator:
    """One checkpoint's continuations. ``budget`` is in tokens a batch, ``longest`` what the model takes."""

    def __init__(self, model: Any, endings: Endings, *, budget: int, longest: int | None) -> None:
        self._model, self._endings = model, endings
        self._longest = longest
        self._budget = budget
        self._batcher = Batcher(budget)
        self._window = window_of(model.config)

    @cached_property
    def loops(self) -> bool:
        """Whether the loop's numbers are those of plain batches, tried on the checkpoint itself."""
        if self._model.config.is_encoder_decoder:
            return False
        pairs, _ = sample_pairs(self._model, self._longest)
        prompts = [
            Prompt(
                ids=pair.context,
                request=GenerateRequest(prompt="", max_new_tokens=1 + place % 4, stop=(), steps=True),
            )
            for place, pair in enumerate(pairs)
        ]
        tasks = [
            Task(number=n, suffix=prompt.ids, request=prompt.request) for n, prompt in enumerate(prompts)
        ]
        try:
            # Three rows for all of them: rows must leave, and others must come in.
            loop = Loop(self._model, 0, [], self._endings, 3)
            found = {number: answer for batch in loop.run(tasks) for number, answer in batch}
            written = [found[number] for number in range(len(prompts))]
            if any(isinstance(one, Failed) for one in written):
                return False
            steps = [one.steps for one in written if isinstance(one, Continuation)]
            again = [
                Pair(prompt=p.ids, context=p.ids, targets=tuple(step.token_id for step in of))
                for p, of in zip(prompts, steps, strict=True)
            ]
            plain = score_batch(self._model, again, int(self._model.generation_config.pad_token_id))
        # Whatever an architecture raises here, it says that this way is closed.
        except Exception:
            return False
        return agree(self._model, plain, [tuple(step.probability for step in of) for of in steps])

    def ready(self, prompts: Sequence[Prompt]) -> Iterator[list[tuple[int, Answer]]]:
        """Yield, some at a time, each prompt's number and answer; what fails is a :class:`Failed`."""
        left = set(range(len(prompts)))
        fitting = [number for number, prompt in enumerate(prompts) if self._fits(prompt)]
        if fitting and self.loops:
            for batch in self._looped([prompts[n] for n in fitting]):
                left -= {fitting[number] for number, _ in batch}
                yield [(fitting[number], answer) for number, answer in batch]
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in sorted(left):
            groups.setdefault(prompts[number].kind, []).append(number)
        for numbers in sorted(groups.values(), key=lambda group: -len(prompts[group[0]].ids)):
            for answers in self._batcher.ready([prompts[n] for n in numbers], self._cost, self._plain):
                yield list(zip(numbers, answers, strict=False))
                del numbers[: len(answers)]

    def _looped(self, prompts: Sequence[Prompt]) -> Iterator[list[tuple[int, Answer]]]:
        """Yield the answers that could be had; whatever fails here is left for plain batches to explain."""
        asked = [Asked(ids=prompt.ids, start=len(prompt.ids) - 1) for prompt in prompts]
        # A loop of its own for fewer than a batch would leave the model with little to do at a time.
        longest = max(prompt.length for prompt in prompts)
        for group in plan(asked, 0, least_rows=self._budget // longest):
            numbers = [number for row in group.rows for number, _ in row.places]
            yield from self._behind(group.prefix, numbers, prompts)

    def _behind(
        self, prefix: Ids, numbers: list[int], prompts: Sequence[Prompt]
    ) -> Iterator[list[tuple[int, Answer]]]:
        left = {number: prompts[number] for number in sorted(numbers, key=lambda n: -prompts[n].length)}
        while left:
            longest = max(prompt.length for prompt in left.values())
            rows = max(1, self._budget // longest)
            tasks = [
                Task(number=number, suffix=prompt.ids[len(prefix) :], request=prompt.request)
                for number, prompt in left.items()
            ]
            failure: Exception | None = None
            try:
                loop = Loop(self._model, len(prefix), feed_prefix(self._model, prefix), self._endings, rows)
                for batch in loop.run(tasks):
                    for number, _ in batch:
                        del left[number]
                    yield batch
            except Exception as error:
                # Without its traceback the error no longer holds the batch's tensors in memory.
                failure = error.with_traceback(None)
            if failure is not None:
                if not is_out_of_memory(failure) or rows == 1:
                    return
                loop = None  # type: ignore[assignment]
                release_memory()
                self._budget = max(longest, self._budget // 2)

    def _plain(self, prompts: Sequence[Prompt]) -> list[Answer]:
        requests = [prompt.request for prompt in prompts]
        return generate_batch(self._model, [prompt.ids for prompt in prompts], requests, self._endings)

    def _cost(self, prompts: Sequence[Prompt]) -> int:
        request = prompts[0].request
        # Which beam leads depends on when the whole batch ends, so its steps are taken one prompt at a time.
        if request.steps and request.num_beams > 1 and len(prompts) > 1:
            return self._batcher.budget + 1
        return len(prompts) * request.num_beams * prompts[0].length

    def _fits(self, prompt: Prompt) -> bool:
        return prompt.request.num_beams == 1 and (self._window is None or prompt.length < self._window)
