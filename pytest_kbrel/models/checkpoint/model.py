"""Model of a checkpoint whose tokenizer is here: from requests to token ids, and from ids to responses.

A model that thinks before it answers gets both written, first the thought, then the answer behind it. Stop
strings and the length limit of an answer hold behind the thought, which has a limit of its own. Each part is
an ordinary continuation of the prompt with all that was written so far.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from pytest_kbrel.models.base import Model
from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.chat import ThoughtMarks
from pytest_kbrel.models.checkpoint.endings import Endings, vocabulary_of
from pytest_kbrel.models.checkpoint.files import FileRecord
from pytest_kbrel.models.checkpoint.spec import ModelSpec
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

Answer = Generated | Failed


class Thinker:
    """Generator of answers that lets a model finish the thoughts it begins.

    ``write`` continues prompts to endings; ``answers`` are those of answers. ``longest`` is the model's limit
    of tokens, ``None`` without one; ``most`` is the limit of a thought.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Prompt], Endings], Batches[Generated]],
        marks: ThoughtMarks,
        answers: Endings,
        *,
        most: int,
        longest: int | None,
    ) -> None:
        self._write, self._marks, self._answers = write, marks, answers
        closing = answers.tokenizer.encode(marks.closing, add_special_tokens=False)
        ends = [*answers.eos_ids, *(closing if len(closing) == 1 else [])]
        self._thoughts = Endings(answers.tokenizer, ends, special=True)
        self._most, self._longest = most, longest

    def ready(self, prompts: Sequence[Prompt]) -> Batches[Generated]:
        """Yield batches of each prompt's index and answer; a failure is a :class:`Failed`."""
        # What has been written of each thought so far.
        thoughts: dict[int, Ids] = {
            n: () for n, prompt in enumerate(prompts) if self._thinks_at_once(prompt)
        }
        direct = {n: p for n, p in enumerate(prompts) if n not in thoughts}
        for batch in self._written(direct):
            begun = {
                n: answer.token_ids
                for n, answer in batch
                if isinstance(answer, Generated)
                and self._begins_to_think(prompts[n], answer)
            }
            thoughts |= begun
            yield [(n, answer) for n, answer in batch if n not in begun]
        closed = {}
        unthought = {}
        for n, result in self._thought_on(prompts, thoughts):
            if result is None:
                unthought[n] = prompts[n]
            elif isinstance(result, tuple):
                closed[n] = result
            else:
                yield [(n, result)]
        yield from self._written(unthought)
        behind = {n: _further(prompts[n], written) for n, written in closed.items()}
        for batch in self._written(behind):
            yield [(n, self._with_thought(answer, closed[n])) for n, answer in batch]

    def _written(
        self, prompts: Mapping[int, Prompt], endings: Endings | None = None
    ) -> Batches[Generated]:
        indices = list(prompts)
        for batch in (
            self._write(list(prompts.values()), endings or self._answers)
            if prompts
            else ()
        ):
            yield [(indices[n], answer) for n, answer in batch]

    def _thinks_at_once(self, prompt: Prompt) -> bool:
        # Without an opening mark nothing tells a thought from an answer before its end.
        at_once = not self._marks.opening or self._marks.opened_by(
            self._text(prompt.ids)
        )
        return at_once and _may_think(prompt)

    def _begins_to_think(self, prompt: Prompt, answer: Generated) -> bool:
        text, opening = self._text(answer.token_ids).lstrip(), self._marks.opening
        # A short answer may end within the mark.
        cut = answer.finish == "length" and text and opening.startswith(text)
        return _may_think(prompt) and (bool(cut) or self._marks.begun_by(text))

    def _thought_on(
        self, prompts: Sequence[Prompt], thoughts: Mapping[int, Ids]
    ) -> Iterator[tuple[int, Ids | Answer | None]]:
        """Yield each prompt's index with its closed thought, an answer, or ``None`` where nothing was thought."""
        further = {}
        for n, written in thoughts.items():
            prompt, closed = prompts[n], self._closed(written)
            room = self._room(prompt) - len(written)
            if closed is not None:
                yield n, closed
            elif written and (written[-1] in self._answers.eos_ids or room < 1):
                yield n, self._unclosed(written)
            elif room < 1:
                error = f"no room to think: {len(prompt.ids)} tokens of prompt, and {self._longest} are all"
                yield n, Failed(error=error)
            else:
                request = replace(
                    prompt.request,
                    stop=(self._marks.closing,),
                    max_new_tokens=room,
                    top_k=0,
                )
                further[n] = Prompt(ids=prompt.ids + written, request=request)
        for batch in self._written(further, self._thoughts):
            for n, text in batch:
                yield n, self._ended(prompts[n], thoughts[n], text)

    def _ended(self, prompt: Prompt, written: Ids, text: Answer) -> Ids | Answer | None:
        if isinstance(text, Failed):
            return text
        written += text.token_ids
        begun = self._thinks_at_once(prompt) or self._marks.begun_by(
            self._text(written)
        )
        closed = self._closed(written) if begun else None
        if not begun or closed is not None:
            return closed
        if not self._marks.opening and text.finish == "stop":
            return None
        return self._unclosed(written)

    def _closed(self, written: Ids) -> Ids | None:
        """Return a thought up to its closing mark, ``None`` without one."""
        closing = self._marks.closing
        if closing in self._text(written):
            for count, token in enumerate(written, start=1):
                able = self._thoughts.may_end(closing, token)
                if able and closing in self._text(written[:count]):
                    return written[:count]
        return None

    def _unclosed(self, written: Ids) -> Generated:
        ended = written[-1:] and written[-1] in self._answers.eos_ids
        text = self._text(written[:-1] if ended else written).lstrip()
        return Generated(
            text="",
            token_ids=(),
            finish="length",
            prompt_tokens=0,
            prompt_digest="",
            thought=text.removeprefix(self._marks.opening).strip(),
            thought_tokens=len(written),
        )

    def _with_thought(self, answer: Answer, written: Ids) -> Answer:
        if isinstance(answer, Failed):
            return answer
        thought, _ = self._marks.split(self._text(written))
        return replace(answer, thought=thought, thought_tokens=len(written))

    def _room(self, prompt: Prompt) -> int:
        longest = self._most if self._longest is None else self._longest - prompt.length
        return min(self._most, longest)

    def _text(self, ids: Ids) -> str:
        return self._thoughts.decode(ids)


def _may_think(prompt: Prompt) -> bool:
    # Others are asked where an answer stands when nothing is thought.
    request = prompt.request
    return not request.steps and not request.lead and request.num_beams == 1


def _further(prompt: Prompt, written: Ids) -> Prompt:
    return Prompt(ids=prompt.ids + written, request=prompt.request)


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
        return replace(pair, rounding=request.rounding)

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
