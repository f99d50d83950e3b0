"""Model behind an OpenAI-compatible server, and its replies."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from statistics import fmean
from typing import Any, TypeVar

import openai

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.models.base import ServedModel
from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.chat import marks_in, messages_of, text_of
from pytest_kbrel.models.openai.client import Connection, Replies
from pytest_kbrel.models.openai.replies import (
    Reply,
    Usage,
    cut_at_stop,
    read_reply,
    served_by,
)
from pytest_kbrel.models.openai.scoring import ServerScorer
from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
)

A = TypeVar("A")
NO_STEPS = "a server of this kind does not show the steps of what it writes"
# The protocol's own limit; what it cannot be sent is cut off here.
_MOST_STOPS = 4
# A first answer of fewer words is no thought that was cut off: with the end of a sentence, and without.
_SENTENCE, _LONG = 3, 5
_ENDS = tuple(".!?:…")
# What servers say of more tokens than they can write.
_TOO_MANY = re.compile(
    r"context (length|window|size)|max_(completion_|new_)?tokens|max_model_len", re.I
)
_REPEATS_KEY = "the server repeated its key in replies, where *** stands for it and is judged as it stands"


class OpenAIModel(ServedModel):
    """Model queried through the ``openai`` client, at temperature 0; see :class:`OpenAISpec`.

    Over the endpoint ``chat`` a prompt is a user message, over ``completions`` the text to continue. A model
    that thinks before it answers gets no stop strings and room for its thought, since a server has one limit
    for both. ``usage`` counts the tokens of the server's replies. ``served`` are the model names and system
    fingerprints of the replies so far. ``replies`` takes the place of the server.
    """

    def __init__(self, spec: OpenAISpec, replies: Replies | None = None) -> None:
        self._spec = spec
        self.usage = Usage(spec)
        self._connection = replies or Connection(spec, self.usage)
        self._pool = ThreadPoolExecutor(
            spec.max_concurrent, thread_name_prefix="kbrel-openai"
        )
        self._marks = marks_in(closing=spec.chat.think_end_token)
        # Whether thoughts have been seen of which the server shows the end alone.
        self._unopened = self._marks is not None and not self._marks.opening
        # Whether answers are asked for with room for a thought, and whether it was found out if they must be.
        self._thinks = spec.chat.thinks
        self._looked = self._thinks or spec.chat.enable_thinking is False
        self._scorer = ServerScorer(
            spec, self._connection, self._pool, self._prompt_tokens
        )
        self.served = set()

    def describe(self) -> Fingerprint:
        """Return the model's fingerprint: its name, its server, and what the server said that it serves.

        Once probabilities were needed, it says by what the server gives them.

        There are no digests, since nobody sees what a server serves under a name. ``architecture`` is the
        name, ``device`` the server's address, ``chat_template`` is True if the server wraps the prompts.
        """
        served = f", served {' and '.join(sorted(self.served))}" if self.served else ""
        scoring = f", {self._scorer.described}" if self._scorer.described else ""
        return Fingerprint(
            spec=self._spec.text,
            backend="openai",
            backend_version=f"openai {openai.__version__}{scoring}{served}",
            architecture=self._spec.name,
            parameters=0,
            weights_digest="",
            tokenizer_digest="",
            dtype="",
            device=self._spec.base_url,
            chat_template=self._spec.chats,
            scoring_version=SCORING_VERSION,
            decoding=self._spec.decoding,
            prompting=self._spec.prompting,
        )

    def rendered(self, request: Request) -> str:
        """Return what the server is sent: messages as JSON, or a text."""
        instruction = self._spec.chat.system_instruction
        if not self._spec.chats:
            return text_of(request, instruction)
        return json.dumps(messages_of(request, instruction), ensure_ascii=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its figures should know, a sentence each."""
        notes = [*self._spec.notes]
        if self._connection.repeats_key:
            notes.append(_REPEATS_KEY)
        if self._scorer.described:
            notes.append(f"the server gives {self._scorer.described}")
        if len(self.served) > 1:
            several = " and ".join(sorted(self.served)[:2])
            notes.append(f"several models answer under this name: {several}")
        return tuple(notes)

    @property
    def unscorable(self) -> str:
        """Why the server can score no answer; empty if it can. The first look may ask it."""
        return self._scorer.unscorable

    def about(self) -> str:
        """Return the server's entry for the model (``/v1/models``); empty if it has none."""
        return self._connection.about()

    def score_as_ready(self, requests: Sequence[ScoreRequest]) -> Batches[Scored]:
        """Yield each response of :meth:`score` with its position; raises as :meth:`generate_as_ready`."""
        if why := self.unscorable:
            yield [(position, Failed(error=why)) for position in range(len(requests))]
            return
        scorer = self._scorer
        pairs, refused = scorer.encoder.read(requests, scorer.encoder.pair)
        if refused:
            yield [*refused]
        futures = {
            self._pool.submit(scorer.score, pair): position for position, pair in pairs
        }
        yield from _as_ready(futures)

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Batches[Generated]:
        """Yield each response with its request's position as soon as it arrives, in any order.

        Raises :class:`ModelError` as :meth:`Connection.ask` does, once all responses under way have been
        yielded; further requests are then not sent.
        """
        first = 0 if self._looked else 1
        for request in requests[:first]:
            yield [(0, self._generate(request, is_first=True))]
        futures = {
            self._pool.submit(self._generate, request): position
            for position, request in enumerate(requests[first:], first)
        }
        yield from _as_ready(futures)

    def close(self) -> None:
        """Cancel the requests under way and close the connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._connection.close()
        self._pool.shutdown()

    def _prompt_tokens(self, request: GenerateRequest) -> int | Failed:
        reply = self._reply(request)
        return reply if isinstance(reply, Failed) else reply.prompt_tokens

    def _generate(
        self, request: GenerateRequest, *, is_first: bool = False
    ) -> Generated | Failed:
        """Return one response; the first one finds out whether this model thinks before it answers.

        A server that leaves thoughts in the text, without a mark at their beginning, shows them only where
        they come to their end.
        """
        if request.steps or request.watch:
            return Failed(error=NO_STEPS)
        if request.num_beams > 1:
            return Failed(error="a server of this kind has no beam search")
        if request.lead and (why := self.unscorable):
            return Failed(error=why)
        thinking = self._thinks and not request.lead
        reply = self._reply(request, thinking=thinking)
        # A failure shows nothing of whether the model thinks: the next first request does.
        if isinstance(reply, Failed):
            return reply
        self._looked |= is_first
        response = self._answer(request, reply, thinking=thinking)
        if thinking or request.lead:
            return response
        ends_lines = any(stop.isspace() for stop in request.stop)
        words, least = response.text.split(), _LONG
        if response.text.endswith(_ENDS):
            least = _SENTENCE
        may_be_cut = ends_lines and (not words or len(words) >= least)
        is_cut = response.finish == "length" or may_be_cut
        if reply.shows_thoughts or (is_first and is_cut and self._spec.chats):
            # The limit and the stop strings of an answer may have cut its thought.
            other = self._reply(request, thinking=True)
            thinks = isinstance(other, Reply) and other.shows_thoughts
            self._thinks |= thinks or reply.shows_thoughts
            if self._thinks:
                return (
                    other
                    if isinstance(other, Failed)
                    else self._answer(request, other, thinking=True)
                )
        if ends_lines and not response.text and response.finish == "stop":
            # It may begin with the line break at which the server has stopped.
            other = self._reply(request, stopping=False)
            if isinstance(other, Reply):
                return self._answer(request, other)
        return response

    def _reply(
        self, request: GenerateRequest, *, thinking: bool = False, stopping: bool = True
    ) -> Reply | Failed:
        # In a thought stop strings end nothing, and a server does not tell one from an answer.
        stops = request.stop[:_MOST_STOPS] if stopping and not thinking else ()
        most = request.max_new_tokens + (
            self._spec.chat.max_thinking_tokens if thinking else 0
        )
        data = self._connection.ask(*self._question(request, most, stops))
        if isinstance(data, Failed):
            if thinking and _TOO_MANY.search(data.error):
                most = self._spec.chat.max_thinking_tokens
                return Failed(
                    error=f"{data.error}; max_thinking_tokens of the model-args, here {most}, says how many of the "
                    "tokens that are asked for are for a thought: a smaller number may fit"
                )
            return data
        reply = read_reply(data)
        if isinstance(reply, Reply):
            self.served |= served_by(data)
            self._unopened = self._unopened or reply.hides_opening
        return reply

    def _question(
        self, request: GenerateRequest, most: int, stops: Sequence[str]
    ) -> tuple[str, dict[str, Any]]:
        """Return the path and the body that ask for at most so many tokens."""
        spec, chat = self._spec, self._spec.chat
        body = {"model": spec.name, "temperature": 0, "max_tokens": most, **spec.extra}
        if stops:
            body["stop"] = list(stops)
        if spec.seed is not None:
            body["seed"] = spec.seed
        chats = spec.chats and not request.lead
        if spec.logprobs:
            body["logprobs"] = True if chats else 1
        if chats:
            if chat.variables:
                body["chat_template_kwargs"] = chat.variables
            body["messages"] = messages_of(request, chat.system_instruction)
            return "/chat/completions", body
        # Not every server continues an answer that a chat has begun; all continue tokens.
        body["prompt"] = (
            list(self._scorer.encoder.prompt(request))
            if request.lead
            else text_of(request, chat.system_instruction)
        )
        return "/completions", body

    def _answer(
        self, request: GenerateRequest, reply: Reply, *, thinking: bool = False
    ) -> Generated:
        thought, answer, unclosed = reply.parted(
            self._marks, unopened=thinking and self._unopened
        )
        text, stopped = cut_at_stop("" if unclosed else answer, request)
        values = reply.probabilities(text, thought)
        return Generated(
            text=text,
            token_ids=(),
            finish="stop" if stopped or (reply.ended and not unclosed) else "length",
            prompt_tokens=reply.prompt_tokens,
            prompt_digest=self._prompt_digest(request),
            thought=thought,
            thought_tokens=reply.thought_tokens,
            probability=round(fmean(values), 6) if values else None,
            first_probability=values[0] if values else None,
        )

    def _prompt_digest(self, request: GenerateRequest) -> str:
        chat = self._spec.chat
        beside = [
            *(request.system, request.turns),
            *(chat.system_instruction, chat.variables),
            *filter(None, [request.lead]),
        ]
        context = json.dumps(beside, sort_keys=True) if any(beside) else ""
        return hashlib.sha256(
            f"{self._spec.endpoint}\n{context}{request.prompt}".encode()
        ).hexdigest()[:16]


def _as_ready(futures: Mapping[Future[A | Failed], int]) -> Batches[A]:
    failure = None
    try:
        for future in as_completed(futures):
            if future.cancelled():
                continue
            if (error := future.exception()) is None:
                yield [(futures[future], future.result())]
            else:
                failure = failure or error
                _cancel(futures)
    finally:
        _cancel(futures)
    if failure is not None:
        raise failure


def _cancel(futures: Iterable[Future[A]]) -> None:
    for future in futures:
        future.cancel()
