"""Continues prompts of any number: in one loop where the checkpoint allows it, else in plain batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from pytest_kbrel.models.batching import Batcher, Budget, describe_error, is_out_of_memory
from pytest_kbrel.models.hf.batch_plan import Prompt, Size, alike_of, groups_of, may_loop, shared_of, size_of
from pytest_kbrel.models.hf.decode_loop import Loop, continue_encoded
from pytest_kbrel.models.hf.kv_cache import KeptPrefix, Layers
from pytest_kbrel.models.hf.prefix_tree import Asked, Group, plan
from pytest_kbrel.models.hf.scorer import feed_prefix, score_batch
from pytest_kbrel.models.hf.sharing import (
    RUNGS,
    TRIAL,
    Rung,
    agree,
    forget_lengths,
    packs,
    sample_pairs,
    window_of,
)
from pytest_kbrel.models.hf.stopping import Continuation, Endings, generate_batch
from pytest_kbrel.models.tokens import Pair
from pytest_kbrel.records import Failed, GenerateRequest

Answer = Continuation | Failed


class Generator:
    """One checkpoint's continuations. ``budget`` is in tokens a batch, ``longest`` what the model takes."""

    def __init__(self, model: Any, endings: Endings, *, budget: int | Budget, longest: int | None) -> None:
        self._model, self._endings = model, endings
        self._longest = longest
        # The first error of the loop that plain batches then had to answer.
        self.trouble = ""
        self._batcher = Batcher(budget)
        self._window = window_of(model.config)
        self._kept = KeptPrefix()

    def with_endings(self, endings: Endings) -> Generator:
        """Return what continues texts in the same way, on the same model, to other endings."""
        # What was found out about the checkpoint holds for both.
        _ = self.rung
        other = copy.copy(self)
        other._endings = endings
        return other

    @property
    def loops(self) -> bool:
        """Whether texts are continued in the loop."""
        return self.rung != "plain"

    @cached_property
    def rung(self) -> Rung:
        """In which rows the loop's numbers are those of plain batches, tried on the checkpoint itself."""
        # What an encoder reads is read once; it is never packed.
        config = self._model.config
        rungs = RUNGS[1:-1] if config.is_encoder_decoder or not packs(config) else RUNGS[:-1]
        return next((rung for rung in rungs if self._is_right(rung)), "plain")

    def _is_right(self, rung: Rung) -> bool:
        pairs, _ = sample_pairs(self._model, self._longest)
        ids = dict.fromkeys(one for pair in pairs for one in (pair.context, (*pair.context, *pair.targets)))
        prompts = [
            Prompt(ids=one, request=GenerateRequest(prompt="", max_new_tokens=1 + n % 4, stop=(), steps=True))
            for n, one in enumerate(ids)
        ]
        prompts = [p for p in prompts if self._longest is None or p.length <= self._longest]
        # Three at once of all of them: some must leave, and others must come in, in rows of two.
        beside, longest = (2, self._longest) if rung == "packed" else (1, None)
        size = Size(beside=beside, most=3, budget=TRIAL, longest=longest)
        try:
            written = self._tried(prompts, size, rung)
            steps = [one.steps for one in written if isinstance(one, Continuation)]
            if len(steps) < len(prompts):
                return False
            again = [
                Pair(prompt=p.ids, context=p.ids, targets=tuple(step.token_id for step in of))
                for p, of in zip(prompts, steps, strict=True)
            ]
            plain = score_batch(self._model, again, int(self._model.generation_config.pad_token_id))
        # Whatever an architecture raises here, it says that this way is closed.
        except Exception:
            return False
        finally:
            self._kept.forget()
        return agree(self._model, plain, [tuple(step.probability for step in of) for of in steps])

    def _tried(self, prompts: Sequence[Prompt], size: Size, rung: Rung) -> list[Answer]:
        requests = [prompt.request for prompt in prompts]
        if self._model.config.is_encoder_decoder:
            return continue_encoded(self._model, [prompt.ids for prompt in prompts], requests, self._endings)
        found: dict[int, Answer] = {}
        asked = [Asked(ids=prompt.ids, start=len(prompt.ids) - 1) for prompt in prompts]
        for group in plan(asked, 3 if rung == "packed" else 0):
            for batch in self._loop(group, size, rung).run(group.rows, requests):
                found.update(batch)
        return [found[number] for number in range(len(prompts))]

    def ready(self, prompts: Sequence[Prompt]) -> Iterator[list[tuple[int, Answer]]]:
        """Yield, some at a time, each prompt's number and answer; what fails is a :class:`Failed`."""
        alike = alike_of(prompts)
        places = list(alike.values())
        for batch in self._ready(list(alike)):
            yield [(place, answer) for number, answer in batch for place in places[number]]

    def _ready(self, prompts: Sequence[Prompt]) -> Iterator[list[tuple[int, Answer]]]:
        left = set(range(len(prompts)))
        fitting = [number for number, prompt in enumerate(prompts) if may_loop(prompt, self._window)]
        if fitting and self.loops:
            loop = self._encoded if self._model.config.is_encoder_decoder else self._looped
            for batch in loop([prompts[n] for n in fitting]):
                left -= {fitting[number] for number, _ in batch}
                yield [(fitting[number], answer) for number, answer in batch]
        groups: dict[tuple[object, ...], list[int]] = {}
        for number in sorted(left):
            groups.setdefault(prompts[number].kind, []).append(number)
        for numbers in sorted(groups.values(), key=lambda group: -len(prompts[group[0]].ids)):
            way = self._way([prompts[n] for n in numbers])
            for answers in self._batcher.ready([prompts[n] for n in numbers], self._cost, way):
                yield list(zip(numbers, answers, strict=False))
                del numbers[: len(answers)]

    def _looped(self, prompts: Sequence[Prompt]) -> Iterator[list[tuple[int, Answer]]]:
        """Yield the answers that could be had; whatever fails here is left for plain batches to explain."""
        left = dict(enumerate(prompts))
        while left:
            numbers = list(left)
            some = [left[number] for number in numbers]
            longest = max(prompt.length for prompt in some)
            halved = False
            for group in groups_of(some, self._budget, self.rung, self._longest):
                failure: Exception | None = None
                try:
                    for batch in self._behind(group, some):
                        for number, _ in batch:
                            del left[numbers[number]]
                        yield [(numbers[number], answer) for number, answer in batch]
                except Exception as error:
                    # Without its traceback the error no longer holds the batch's tensors in memory.
                    failure = error.with_traceback(None)
                if failure is not None and is_out_of_memory(failure) and self._budget > longest:
                    self._kept.forget()
                    self._batcher.halve(self._budget, longest)
                    halved = True
                    break
                if failure is not None:
                    self.trouble = self.trouble or describe_error(failure)
            if not halved:
                return

    def _encoded(self, prompts: Sequence[Prompt]) -> Iterator[list[tuple[int, Answer]]]:
        """Do as :meth:`_looped` does, for models with an encoder."""

        def cost(some: Sequence[Prompt]) -> int:
            return len(some) * max(prompt.length for prompt in some)

        def answer(some: Sequence[Prompt]) -> list[Answer]:
            requests = [prompt.request for prompt in some]
            return continue_encoded(self._model, [prompt.ids for prompt in some], requests, self._endings)

        # Those beside each other that end, and were read, alike.
        order = sorted(
            range(len(prompts)), key=lambda n: (-prompts[n].request.max_new_tokens, -prompts[n].length)
        )
        for answers in self._batcher.ready([prompts[n] for n in order], cost, answer):
            batch = list(zip(order, answers, strict=False))
            del order[: len(answers)]
            for failed in (found for found in answers if isinstance(found, Failed)):
                self.trouble = self.trouble or failed.error
            yield [(number, found) for number, found in batch if isinstance(found, Continuation)]

    def _behind(self, group: Group, prompts: Sequence[Prompt]) -> Iterator[list[tuple[int, Answer]]]:
        """Yield the answers of one group; texts of numbers that are none are left to plain batches.

        In a packed row such numbers spread to texts that have nothing to do with them.
        """
        members = [prompts[number] for row in group.rows for number, _ in row.places]
        ids = [prompt.ids for prompt in members]
        # What only two rows share has no forward pass of its own; it is in each of them once all the same.
        shared = shared_of(ids) if group.prefix or len(group.rows) <= 2 else 0
        size = size_of(
            shared,
            max(prompt.length for prompt in members) - shared,
            self._budget,
            longest=self._longest,
            vocabulary=int(self._model.get_input_embeddings().weight.shape[0]),
            packed=self.rung == "packed",
        )
        loop = self._loop(group, size, self.rung)
        for batch in loop.run(group.rows, [prompt.request for prompt in prompts]):
            yield [(number, answer) for number, answer in batch if isinstance(answer, Continuation)]

    def _loop(self, group: Group, size: Size, rung: Rung) -> Loop:
        prefix = self._kept.layers(group.prefix, lambda ids: feed_prefix(self._model, ids))
        packed = rung == "packed"
        return Loop(self._model, len(group.prefix), prefix, self._endings, size, packed=packed)

    @property
    def _budget(self) -> int:
        return self._batcher.budget

    def _way(self, prompts: Sequence[Prompt]) -> Callable[[Sequence[Prompt]], list[Answer]]:
        """Return how to answer prompts of one kind in plain batches: beams may share what all begin with."""
        if prompts[0].request.num_beams == 1 or not self._beams_share:
            return self._plain
        if self._window is not None and prompts[0].length >= self._window:
            return self._plain
        shared = shared_of([prompt.ids for prompt in prompts])
        if not shared:
            return self._plain

        def answer(some: Sequence[Prompt]) -> list[Answer]:
            try:
                prefix = self._kept.layers(prompts[0].ids[:shared], lambda ids: feed_prefix(self._model, ids))
                return self._plain(some, prefix)
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                self.trouble = self.trouble or describe_error(error)
            return self._plain(some)

        return answer

    @cached_property
    def _beams_share(self) -> bool:
        """Whether beams behind a prefix computed once are the same ones, tried on the checkpoint itself."""
        if self._model.config.is_encoder_decoder or not self.loops:
            return False
        pairs, _ = sample_pairs(self._model, self._longest)
        request = GenerateRequest(prompt="", max_new_tokens=3, stop=(), num_beams=2, steps=True)
        prompts = [Prompt(ids=pair.context, request=request) for pair in pairs[:1]]
        try:
            prefix = feed_prefix(self._model, prompts[0].ids[:2])
            found = [self._plain(prompts), self._plain(prompts, prefix)]
        # Whatever an architecture raises here, it says that this way is closed.
        except Exception:
            return False
        (one,), (other,) = found
        if not isinstance(one, Continuation) or not isinstance(other, Continuation):
            return False
        steps = [[tuple(step.probability for step in way.steps)] for way in (one, other)]
        return one.token_ids == other.token_ids and agree(self._model, *steps)

    def _plain(self, prompts: Sequence[Prompt], prefix: Layers = ()) -> list[Answer]:
        forget_lengths(self._model)
        requests = [prompt.request for prompt in prompts]
        ids = [prompt.ids for prompt in prompts]
        return generate_batch(self._model, ids, requests, self._endings, prefix)

    def _cost(self, prompts: Sequence[Prompt]) -> int:
        request = prompts[0].request
        # Which beam leads depends on when the whole batch ends, so its steps are taken one prompt at a time.
        if request.steps and request.num_beams > 1 and len(prompts) > 1:
            return self._batcher.budget + 1
        return len(prompts) * request.num_beams * prompts[0].length
