"""Model of a checkpoint whose tokenizer is here: from requests to token ids, and from ids to responses."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from pytest_kbrel.models.base import Model
from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.checkpoint.endings import Endings, vocabulary_of
from pytest_kbrel.models.checkpoint.integrity import FileRecord
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.checkpoint.thinking import Thinker
from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.models.tokens import (
    NO_START,
    Ids,
    Pair,
    Prompt,
    PromptEncoder,
)
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
    record,
)

A = TypeVar("A")
J = TypeVar("J")
Q = TypeVar("Q", bound=Request)
R = TypeVar("R")


@record
class LoadedCheckpoint:
    """A loaded checkpoint.

    ``max_length`` is in tokens, ``None`` where the architecture sets no limit. ``files`` is what it was read
    from. ``notes`` are what a reader of its figures should know, a sentence each.
    """

    spec: ModelSpec
    model: Any
    tokenizer: Any
    encoder: PromptEncoder
    fingerprint: Fingerprint
    files: FileRecord
    max_length: int | None
    notes: tuple[str, ...] = ()


class CheckpointModel(Model):
    """Model of a checkpoint that is computed on this machine.

    ``parts`` is the loaded checkpoint. Several threads may call, and are answered in turns. Weights may be
    pages of their file: once a file of the checkpoint has changed, every call raises
    :class:`~pytest_kbrel.errors.ModelError`, and no response of the batch in which it changed is given.
    """

    def __init__(self, parts: LoadedCheckpoint) -> None:
        self.parts = parts
        self._fingerprint = parts.fingerprint
        self._vocabulary = vocabulary_of(parts.model)
        self._endings = Endings(
            parts.tokenizer,
            eos_ids=parts.model.generation_config.eos_token_id or (),
        )
        # One model computes everything, and ``quiet`` silences the whole process.
        self._lock = threading.Lock()

    @abstractmethod
    def _scores(self, pairs: Sequence[Pair]) -> Batches[tuple[float, ...]]:
        """Yield batches of each pair's index and the probabilities of its targets."""

    @abstractmethod
    def _texts(self, prompts: Sequence[Prompt], endings: Endings) -> Batches[Generated]:
        """Yield batches of each prompt's index and text."""

    def _warn(self) -> None:
        """Warn of what went wrong and changed no response."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What readers of its figures should know, a sentence each."""
        return self.parts.notes

    @property
    def unscorable(self) -> str:
        """Why the model can score no continuation; empty if it can."""
        return self.parts.encoder.unscorable

    def rendered(self, request: Request) -> str:
        """Return a request's prompt as the model reads it, special tokens by name."""
        with self._lock, quiet():
            return self.parts.encoder.rendered(request)

    def describe(self) -> Fingerprint:
        """Return the fingerprint of the checkpoint's content."""
        return self._fingerprint

    def check_files(self) -> None:
        """Raise ``ModelError`` where a file of the checkpoint has changed."""
        self.parts.files.check()

    def score_as_ready(self, requests: Sequence[ScoreRequest]) -> Batches[Scored]:
        """Yield the responses of :meth:`score`, by float32 softmax, batch by batch."""
        respond = self.parts.encoder.scored
        return self._as_ready(requests, self._pair, self._scores, respond)

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Batches[Generated]:
        """Yield the responses of :meth:`generate`, some at a time."""
        write = self._written if self._thinker is None else self._thinker.ready
        return self._as_ready(requests, self._prompt, write, self._generated)

    def _as_ready(
        self,
        requests: Sequence[Q],
        read: Callable[[Q], J],
        ask: Callable[[Sequence[J]], Iterator[list[tuple[int, R]]]],
        respond: Callable[[J, R], A | Failed],
    ) -> Batches[A]:
        with self._lock, quiet():
            jobs, refused = self.parts.encoder.read(requests, read)
        if refused:
            yield [*refused]
        # A process that reads a page of a file that was cut short is killed.
        self.check_files()
        batches = ask([job for _, job in jobs])
        while True:
            # Not held while a caller works with a batch.
            with self._lock, quiet():
                batch = next(batches, None)
            if batch is None:
                break
            self.check_files()
            yield [(jobs[n][0], respond(jobs[n][1], answer)) for n, answer in batch]
        self._warn()

    def _generated(
        self, prompt: Prompt, text: Generated | Failed
    ) -> Generated | Failed:
        if isinstance(text, Failed):
            return text
        digest = self.parts.encoder.digest(prompt.ids)
        return replace(text, prompt_tokens=len(prompt.ids), prompt_digest=digest)

    def _written(self, prompts: Sequence[Prompt]) -> Batches[Generated]:
        return self._texts(prompts, self._endings)

    @cached_property
    def _thinker(self) -> Thinker | None:
        """Generator of thoughts before answers; ``None`` where nothing declares marks of thoughts."""
        marks = self.parts.encoder.marks
        if marks is None:
            return None
        return Thinker(
            self._texts,
            marks,
            self._endings,
            most=self.parts.spec.chat.max_thinking_tokens,
            longest=self.parts.max_length,
        )

    def _pair(self, request: ScoreRequest) -> Pair:
        pair = self.parts.encoder.pair(request)
        self._check_ids((*pair.context, *pair.targets))
        self._check_length(len(pair.context), len(pair.lead) + len(pair.targets))
        return pair

    def _prompt(self, request: GenerateRequest) -> Prompt:
        ids = self.parts.encoder.prompt(request)
        if request.max_new_tokens < 1 or request.num_beams < 1:
            raise ValueError("max_new_tokens and num_beams must be at least 1")
        if not ids:
            raise ValueError(f"an empty prompt {NO_START}")
        self._check_ids((*ids, *request.watch))
        self._check_length(len(ids), request.max_new_tokens)
        return Prompt(ids=ids, request=request)

    def _check_ids(self, ids: Ids) -> None:
        # One of them would stop the whole batch, and on a GPU the process.
        for token in ids:
            if not 0 <= token < self._vocabulary:
                raise ValueError(
                    f"token {token} is beyond the model's {self._vocabulary} tokens"
                )

    def _check_length(self, prompt: int, behind: int) -> None:
        """Raise ``ValueError`` where the model takes fewer tokens than a prompt and what comes behind it."""
        limit = self.parts.max_length
        # Encoder and decoder each have the limit for themselves.
        is_encoder_decoder = self.parts.model.config.is_encoder_decoder
        longest = max(prompt, behind) if is_encoder_decoder else prompt + behind
        if limit is not None and longest > limit:
            raise ValueError(
                f"too long: {prompt} tokens of prompt and {behind} behind it; the model takes {limit}"
            )
