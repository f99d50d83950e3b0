"""Model that transformers runs."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from pytest_kbrel.models.base import (
    check_ids,
    check_request,
    generated,
    in_order,
    read_requests,
    scored,
)
from pytest_kbrel.models.batching import Budget
from pytest_kbrel.models.hf.batch_plan import Prompt
from pytest_kbrel.models.hf.generator import Generator
from pytest_kbrel.models.hf.loading import LoadedCheckpoint, quiet
from pytest_kbrel.models.hf.scorer import Scorer
from pytest_kbrel.models.hf.sharing import SharingMode, check_length
from pytest_kbrel.models.hf.stopping import Endings
from pytest_kbrel.models.memory import token_budget
from pytest_kbrel.models.thinking import Thinker, thought_endings
from pytest_kbrel.models.tokens import Pair
from pytest_kbrel.printing import printable
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
)

T = TypeVar("T")

# By sharing mode, of scoring and of generating.
_ENGINES: dict[SharingMode, tuple[str, str]] = {
    "packed": ("scored in packed rows", "written in a loop of packed rows"),
    "prefix": (
        "scored behind shared prefixes",
        "written in a loop behind shared prefixes",
    ),
    "plain": ("scored in plain batches", "written in plain batches"),
}


class HfModel:
    """A causal or encoder-decoder checkpoint in memory; made by :func:`pytest_kbrel.models.hf.backend.load`.

    ``parts`` is the loaded checkpoint, ``files`` what it was read from, ``notes`` what readers of its figures
    should know. Responses do not depend on the other requests of a call: probabilities agree within 1e-4 in
    float32, texts are equal. ``budget`` is shared by scoring and generating; by default it is that of the
    spec. Several threads may call, and are answered in turns. Weights may be pages of their file: once a file
    of the checkpoint has changed, every call raises :class:`~pytest_kbrel.errors.ModelError`, and no response
    of the batch in which it changed is given.
    """

    def __init__(
        self,
        parts: LoadedCheckpoint,
        *,
        shares: bool = True,
        budget: Budget | None = None,
    ) -> None:
        self.parts, self.files, self.notes = parts, parts.files, parts.notes
        self._fingerprint = parts.fingerprint
        self._budget = budget or Budget(
            token_budget(parts.spec, parts.model.device.type)
        )
        self._scorer = Scorer(
            parts.model, budget=self._budget, longest=parts.max_length, shares=shares
        )
        self._vocabulary = int(parts.model.get_input_embeddings().weight.shape[0])
        eos_ids = parts.model.generation_config.eos_token_id or ()
        self._endings = Endings(
            parts.tokenizer, vocabulary=self._vocabulary, eos_ids=eos_ids
        )
        self._generator = Generator(
            parts.model, self._endings, budget=self._budget, longest=parts.max_length
        )
        self._warned: set[str] = set()
        # The batches put hooks on the one model there is.
        self._lock = threading.Lock()

    @property
    def engine(self) -> str:
        """The sharing modes in words; empty while none has been tried."""
        # Where ``cached_property`` stores it: the attribute itself would try it now.
        scored, written = (
            vars(part).get("sharing_mode") for part in (self._scorer, self._generator)
        )
        once = scored == "prefix" and self.parts.model.config.is_encoder_decoder
        words = (
            ["scored behind shared encoder output" if once else _ENGINES[scored][0]]
            if scored
            else []
        )
        words += [_ENGINES[written][1]] if written else []
        return ", ".join(
            [*words, f"batches of up to {self._budget.tokens} tokens"] if words else []
        )

    def rendered(self, request: Request) -> str:
        """Return a request's prompt as the model reads it, special tokens by name."""
        with self._lock, quiet():
            return self.parts.encoder.rendered(request)

    @property
    def unscorable(self) -> str:
        """Why the model can score no continuation; empty if it can."""
        return self.parts.encoder.unscorable

    def describe(self) -> Fingerprint:
        """Return the fingerprint of the checkpoint's content."""
        return self._fingerprint

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the probabilities (float32 softmax) of the continuations' tokens, one per request."""
        return in_order(self.score_as_ready(requests))

    def score_as_ready(
        self, requests: Sequence[ScoreRequest]
    ) -> Iterator[list[tuple[int, Scored | Failed]]]:
        """Yield the responses of :meth:`score`, each with its request's index, batch by batch."""
        encoder = self.parts.encoder
        with self._lock, quiet():
            pairs, refused = read_requests(encoder, requests, self._pair)
        if refused:
            yield [*refused]
        for batch in self._in_turns(self._scorer.ready([pair for _, pair in pairs])):
            yield [
                (pairs[n][0], scored(encoder, pairs[n][1], result))
                for n, result in batch
            ]
        self._warn(self._scorer.trouble)

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return greedy or beam continuations, one response per request."""
        return in_order(self.generate_as_ready(requests))

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Iterator[list[tuple[int, Generated | Failed]]]:
        """Yield the responses of :meth:`generate`, each with its request's index, some at a time."""
        encoder = self.parts.encoder
        with self._lock, quiet():
            prompts, refused = read_requests(encoder, requests, self._prompt)
        if refused:
            yield [*refused]
        ready = self._generator.ready if self._thinker is None else self._thinker.ready
        for batch in self._in_turns(ready([prompt for _, prompt in prompts])):
            yield [
                (prompts[n][0], generated(encoder, prompts[n][1].ids, text))
                for n, text in batch
            ]
        self._warn(self._generator.trouble)

    @cached_property
    def _thinker(self) -> Thinker | None:
        """Generator of thoughts before answers; ``None`` where nothing declares marks of thoughts."""
        marks = self.parts.encoder.marks
        if marks is None:
            return None
        thoughts = thought_endings(self._endings, marks)
        return Thinker(
            self._generator.ready,
            lambda some: self._generator.with_endings(thoughts).ready(some),
            marks,
            answers=self._endings,
            thoughts=thoughts,
            most=self.parts.spec.chat.max_thinking_tokens,
            longest=self.parts.max_length,
        )

    def close(self) -> None:
        """Free the weights; the model cannot be used any more."""
        del self.parts, self.files, self.notes, self._scorer, self._generator
        vars(self).pop("_thinker", None)

    def _in_turns(self, batches: Iterator[T]) -> Iterator[T]:
        """Yield the batches; no two threads have theirs computed at once."""
        # A process that reads a page of a file that was cut short is killed.
        self.files.check()
        while True:
            # Not held while a caller works with a batch. ``quiet`` silences the whole process.
            with self._lock, quiet():
                batch = next(batches, None)
            if batch is None:
                return
            self.files.check()
            yield batch

    def _warn(self, trouble: str) -> None:
        if trouble and trouble not in self._warned:
            self._warned.add(trouble)
            warnings.warn(
                printable(
                    f"a shared batch failed, and plain ones answered: right, but slow ({trouble})"
                ),
                RuntimeWarning,
                stacklevel=3,
            )

    def _pair(self, request: ScoreRequest) -> Pair:
        pair = self.parts.encoder.pair(request)
        check_ids((*pair.context, *pair.targets), self._vocabulary)
        self._check_length(len(pair.context), len(pair.lead) + len(pair.targets))
        return pair

    def _prompt(self, request: GenerateRequest) -> Prompt:
        ids = self.parts.encoder.prompt(request)
        check_request(request, ids, self._vocabulary)
        self._check_length(len(ids), request.max_new_tokens)
        return Prompt(ids=ids, request=request)

    def _check_length(self, prompt: int, behind: int) -> None:
        encoder_decoder = self.parts.model.config.is_encoder_decoder
        check_length(
            prompt, behind, self.parts.max_length, encoder_decoder=encoder_decoder
        )
