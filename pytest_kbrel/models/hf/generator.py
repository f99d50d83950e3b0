"""Continuations of prompts: by a decode loop where the checkpoint allows it, else in plain batches."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from pytest_kbrel.models.batching import (
    Batcher,
    Batches,
    describe_error,
    is_out_of_memory,
)
from pytest_kbrel.models.checkpoint.endings import Endings, vocabulary_of
from pytest_kbrel.models.hf.decode_loop import BatchLimits, DecodeLoop, continue_encoded
from pytest_kbrel.models.hf.lm_head import LOGITS_AT_ONCE
from pytest_kbrel.models.hf.prefix_tree import Group, TokenSequence, group_by_prefix
from pytest_kbrel.models.hf.scorer import (
    ROW_LENGTH,
    feed_prefix,
    score_batch,
    spares_passes,
)
from pytest_kbrel.models.hf.sharing import (
    SHARING_MODES,
    SharingMode,
    allows_packing,
    difference,
    plain_and_allowed,
    reset_rope_lengths,
    retried,
    sample_pairs,
    window_of,
)
from pytest_kbrel.models.hf.stopping import generate_batch
from pytest_kbrel.models.tokens import Pair, Prompt, common_prefix
from pytest_kbrel.records import Failed, Generated, GenerateRequest

Answer = Generated | Failed
# In tokens: a trial's texts do not all fit at once.
_TRIAL_BUDGET = 96
# Reading a slot once more costs so many times what seeing one in vain does; measured on a CPU.
_READING = 9
# At the end of a loop few texts are still written, in about so many forward passes.
_PASSES_OF_A_LOOP = 32
_MOST_PER_ROW = 32


class Generator:
    """Generator of one checkpoint; ``longest`` is how many tokens the model takes.

    ``trouble`` is the first error of the decode loop, which plain batches then answered. ``refused`` says of
    each sharing mode that was tried in vain why.
    """

    def __init__(
        self, model: Any, endings: Endings, batcher: Batcher, *, longest: int | None
    ) -> None:
        self._model, self._endings = model, endings
        self._longest = longest
        self.trouble = ""
        self.refused: list[str] = []
        self._batcher = batcher
        self._window = window_of(model.config) or math.inf

    def with_endings(self, endings: Endings) -> Generator:
        """Return a generator on the same model whose texts have other endings."""
        if endings is self._endings:
            return self
        # The sharing mode holds for both.
        _ = self.sharing_mode
        other = copy.copy(self)
        other._endings = endings
        return other

    @cached_property
    def sharing_mode(self) -> SharingMode:
        """The sharing mode in which the decode loop gives the numbers of plain batches, tried once."""
        # What an encoder reads is read once; it is never packed.
        config = self._model.config
        packs = allows_packing(config) and not config.is_encoder_decoder
        for mode in SHARING_MODES[0 if packs else 1 : -1]:
            if not (reason := self._difference(mode)):
                return mode
            self.refused.append(f"{mode}: {reason}")
        return "plain"

    def _difference(self, mode: SharingMode) -> str:
        """Return why the loop does not give the numbers of plain batches in a mode, else ``""``."""
        pairs, _ = sample_pairs(self._model, self._longest)
        ids = dict.fromkeys(
            one
            for pair in pairs
            for one in (pair.context, (*pair.context, *pair.targets))
        )
        prompts = []
        for n, one in enumerate(ids):
            request = GenerateRequest(
                prompt="", max_new_tokens=1 + n % 4, stop=(), steps=True
            )
            prompt = Prompt(ids=one, request=request)
            if self._longest is None or prompt.length <= self._longest:
                prompts.append(prompt)
        # Some must leave, and others must come in.
        trial = Generator(
            self._model, self._endings, Batcher(_TRIAL_BUDGET), longest=self._longest
        )
        answers = dict(one for batch in trial._looped(prompts, mode) for one in batch)
        steps = [
            answer.steps
            for _, answer in sorted(answers.items())
            if isinstance(answer, Generated)
        ]
        if len(steps) < len(prompts):
            return trial.trouble or "some texts were not written"
        again = [
            Pair(
                prompt=p.ids, context=p.ids, targets=tuple(step.token_id for step in of)
            )
            for p, of in zip(prompts, steps, strict=True)
        ]
        written = [tuple(step.probability for step in of) for of in steps]
        score = partial(score_batch, self._model)
        try:
            plain, allowed = retried(
                lambda: plain_and_allowed(self._model, score, again)
            )
        except Exception as error:
            return describe_error(error)
        return difference(plain, lambda _: written, again, allowed)

    def ready(self, prompts: Sequence[Prompt]) -> Batches[Generated]:
        """Yield, some at a time, each prompt's index and answer; what fails is a :class:`Failed`."""
        # Prompts of equal token ids and settings are answered once.
        positions = defaultdict(list)
        for number, prompt in enumerate(prompts):
            request = dataclasses.replace(prompt.request, prompt="")
            bare = Prompt(ids=prompt.ids, request=request)
            positions[bare].append(number)
        indices = list(positions.values())
        for batch in self._distinct(list(positions)):
            yield [
                (index, answer) for number, answer in batch for index in indices[number]
            ]

    def _distinct(self, prompts: Sequence[Prompt]) -> Batches[Generated]:
        remaining = set(range(len(prompts)))
        looped = [
            number
            for number, prompt in enumerate(prompts)
            if prompt.request.num_beams == 1 and prompt.length < self._window
        ]
        if looped and self.sharing_mode != "plain":
            some = [prompts[n] for n in looped]
            for batch in self._looped(some, self.sharing_mode):
                # In a packed row values that are no numbers spread to the texts beside them.
                texts = [
                    (looped[number], answer)
                    for number, answer in batch
                    if isinstance(answer, Generated)
                ]
                remaining -= {number for number, _ in texts}
                yield [*texts]
        groups = defaultdict(list)
        for number in sorted(remaining):
            groups[prompts[number].kind].append(number)
        for numbers in sorted(
            groups.values(), key=lambda group: -len(prompts[group[0]].ids)
        ):
            yield from self._batcher.ready(prompts, self._cost, self._plain, numbers)

    def _looped(
        self, prompts: Sequence[Prompt], mode: SharingMode
    ) -> Batches[Generated]:
        """Yield the answers of a decode loop; what fails here is left to plain batches."""
        if self._model.config.is_encoder_decoder:
            yield from self._encoded(prompts)
            return
        remaining = dict(enumerate(prompts))
        while remaining:
            numbers = list(remaining)
            waiting = [remaining[number] for number in numbers]
            longest = max(prompt.length for prompt in waiting)
            for group in self._groups(waiting, mode):
                failure: Exception | None = None
                try:
                    for batch in self._group(group, waiting, mode):
                        for number, _ in batch:
                            del remaining[numbers[number]]
                        yield [(numbers[number], answer) for number, answer in batch]
                except Exception as error:
                    # Without its traceback the error no longer holds the batch's tensors in memory.
                    failure = error.with_traceback(None)
                if failure is None:
                    continue
                if is_out_of_memory(failure) and self._budget > longest:
                    self._batcher.halve(self._budget, longest)
                    break
                self.trouble = self.trouble or describe_error(failure)
            else:
                return

    def _encoded(self, prompts: Sequence[Prompt]) -> Batches[Generated]:
        """Yield the answers of the loop for models with an encoder, as :meth:`_looped` does."""
        # Those side by side that are of like length.
        order = sorted(
            range(len(prompts)),
            key=lambda n: (-prompts[n].request.max_new_tokens, -prompts[n].length),
        )
        for batch in self._batcher.ready(
            prompts,
            lambda batch: len(batch) * max(prompt.length for prompt in batch),
            lambda batch: continue_encoded(self._model, batch, self._endings),
            order,
        ):
            for _, answer in batch:
                if isinstance(answer, Failed):
                    self.trouble = self.trouble or answer.error
            yield batch

    def _group(
        self, group: Group, prompts: Sequence[Prompt], mode: SharingMode
    ) -> Batches[Generated]:
        """Yield the answers of one group."""
        members = [prompts[number] for row in group.rows for number, _ in row.outputs]
        # What only two rows share has no forward pass of its own, but each of them holds it once.
        is_shared = group.prefix or len(group.rows) <= 2
        shared = _shared_length(members) if is_shared else 0
        loop = DecodeLoop(
            self._model,
            len(group.prefix),
            feed_prefix(self._model, group.prefix),
            self._endings,
            self._limits(shared, members, mode),
            packed=mode == "packed",
        )
        return loop.run(group.rows, [prompt.request for prompt in prompts])

    def _groups(
        self, prompts: Sequence[Prompt], mode: SharingMode
    ) -> tuple[Group, ...]:
        """Return the groups of prompts that share a beginning: one decode loop each."""
        sequences = [
            TokenSequence(ids=prompt.ids, start=len(prompt.ids) - 1)
            for prompt in prompts
        ]
        farthest = max(prompt.length for prompt in prompts)
        if mode == "packed":
            limits = self._limits(_shared_length(prompts), prompts, mode)
            # As many tokens as a batch may have texts: a row must not hold more of these.
            most = min(ROW_LENGTH, self._room - farthest, limits.texts)
            pays = partial(spares_passes, self._model, _PASSES_OF_A_LOOP)
            return group_by_prefix(sequences, max(1, most), pays)
        # A loop of its own for fewer than a batch would leave the model with little to do at a time.
        least = self._budget // farthest
        return group_by_prefix(sequences, 0, lambda rows, _: rows >= least)

    def _limits(
        self, before: int, prompts: Sequence[Prompt], mode: SharingMode
    ) -> BatchLimits:
        """Return the limits of batches of texts behind a prefix of ``before`` tokens.

        The more texts share a row, the fewer copies of the prefix there are, and the more slots each passes
        over.
        """
        own = max(prompt.length for prompt in prompts) - before
        per_row = 1
        if mode == "packed":
            best = round(math.sqrt(_READING * before / own))
            per_row = max(1, min(best, _MOST_PER_ROW, (self._room - before) // own))
        rows = max(1, self._budget // (before + per_row * own))
        most = LOGITS_AT_ONCE // vocabulary_of(self._model)
        return BatchLimits(
            per_row=per_row,
            texts=max(1, min(per_row * rows, most)),
            budget=self._budget,
            longest=self._longest if mode == "packed" else None,
        )

    @property
    def _room(self) -> int:
        """Slots that a row may have."""
        longest = self._budget if self._longest is None else self._longest
        return min(self._budget, longest)

    @property
    def _budget(self) -> int:
        return self._batcher.budget

    def _plain(self, prompts: Sequence[Prompt]) -> list[Answer]:
        reset_rope_lengths(self._model)
        return generate_batch(self._model, prompts, self._endings)

    def _cost(self, prompts: Sequence[Prompt]) -> int:
        request = prompts[0].request
        # Which beam leads depends on when the whole batch ends, so its steps are taken one prompt at a time.
        if request.steps and request.num_beams > 1 and len(prompts) > 1:
            return self._batcher.budget + 1
        return len(prompts) * request.num_beams * prompts[0].length


def _shared_length(prompts: Sequence[Prompt]) -> int:
    """Return how many tokens all prompts begin with; the last token of a prompt is never shared."""
    ids = [prompt.ids for prompt in prompts]
    return min(common_prefix(min(ids), max(ids)), min(map(len, ids)) - 1)
