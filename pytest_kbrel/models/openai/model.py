"""A model behind an OpenAI-compatible server: it writes, and shows no probabilities."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.models.base import in_order
from pytest_kbrel.models.chat.messages import messages_of, text_of
from pytest_kbrel.models.chat.thoughts import marks_in
from pytest_kbrel.models.openai.client import Connection, Post, refuses
from pytest_kbrel.models.openai.limits import limits_for
from pytest_kbrel.models.openai.replies import Reply, cut_at_stop, read_reply
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
from pytest_kbrel.serialization import whole

NO_PROBABILITIES = "a server of this kind gives no probabilities of given tokens"
# The protocol's own limit; what it cannot be sent is cut off here.
_MOST_STOPS = 4
# A first answer of fewer words is no thought that was cut off: with the end of a sentence, and without.
_SENTENCE, _LONG = 3, 5
_ENDS = tuple(".!?:…")
_NEWER_LIMIT = "max_completion_tokens"
# What servers say of more tokens than they can write.
_TOO_MANY = re.compile(r"context (length|window|size)|max_(completion_|new_)?tokens|max_model_len", re.I)
_DECODING = "temperature 0"
_REPEATS_KEY = "the server repeated its key in replies, where *** stands for it and is judged as it stands"
# The longest tokens that we know of have 128 characters, a character has up to 6 bytes in JSON, and some
# servers tell a thought twice.
_TOKEN_BYTES = 4_000


class OpenAIModel:
    """A model asked through the ``openai`` client, at temperature 0; see :class:`OpenAISpec`.

    Over the endpoint ``chat`` a prompt is a user message, over ``completions`` the text to go on with. A
    model that thinks before it answers is asked without stop strings and with room for its thought: a
    server's limit is one for both. ``served`` is what the replies so far said that they come from.
    """

    def __init__(self, spec: OpenAISpec) -> None:
        self._spec = spec
        self._connection = Connection(spec)
        self._pool = ThreadPoolExecutor(spec.max_concurrent, thread_name_prefix="kbrel-openai")
        self._limit = "max_tokens"
        self._takes_stops = True
        self._marks = marks_in(closing=spec.chat.think_end_token) if spec.chat.think_end_token else None
        # Whether thoughts have been seen of which the server shows the end alone.
        self._unopened = self._marks is not None and not self._marks.opening
        # Whether answers are asked for with room for a thought, and whether it was found out if they must be.
        self._thinks = self._looked = spec.chat.thinks
        if spec.chat.enable_thinking is False:
            self._looked = True
        self.served: set[str] = set()

    def describe(self) -> Fingerprint:
        """Say what is known of the model: its name, its server, and what the server said it is.

        There are no digests: what a server serves under a name is its own affair. ``architecture`` is the
        name, ``device`` the server's address, ``chat_template`` whether the server wraps the prompts.
        """
        import openai

        served = f", served {' and '.join(sorted(self.served))}" if self.served else ""
        return Fingerprint(
            spec=self._spec.text,
            backend="openai",
            backend_version=f"openai {openai.__version__}{served}",
            architecture=self._spec.name,
            parameters=0,
            weights_digest="",
            tokenizer_digest="",
            dtype="",
            device=self._spec.base_url,
            chat_template=self._spec.endpoint == "chat",
            scoring_version=SCORING_VERSION,
            decoding=_DECODING if self._spec.seed is None else f"{_DECODING}, seed {self._spec.seed}",
            prompting=self._spec.chat.told(),
        )

    def rendered(self, request: Request) -> str:
        """Return what the server is sent: messages as JSON, for its template is its own, or a text."""
        instruction = self._spec.chat.system_instruction
        if self._spec.endpoint == "completions":
            return text_of(request, instruction)
        return json.dumps(messages_of(request, instruction), ensure_ascii=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its figures should know, a sentence each."""
        return self._spec.notes + (_REPEATS_KEY,) * self._connection.repeats_key

    def about(self) -> str:
        """Ask the server what it says of the model (``/v1/models``); empty where it says nothing."""
        return self._connection.about()

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return a failure for each request: the protocol has no such question."""
        return [Failed(error=NO_PROBABILITIES) for _ in requests]

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return the texts, one answer per request, in their order."""
        return in_order(self.generate_as_ready(requests))

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Iterator[list[tuple[int, Generated | Failed]]]:
        """Yield each answer with its request's place as soon as it is there, in any order.

        Raises :class:`ModelError` as :meth:`Connection.ask` does, once all that was under way has been handed
        out; what was not yet asked then stays unasked.
        """
        first = 0 if self._looked else 1
        for place, request in enumerate(requests[:first]):
            yield [(place, self._first(request))]
        futures = {
            self._pool.submit(self._generate, request): place
            for place, request in enumerate(requests)
            if place >= first
        }
        failure: BaseException | None = None
        try:
            for future in as_completed(futures):
                error = None if future.cancelled() else future.exception()
                if error is not None and failure is None:
                    failure = error
                    _cancel(futures)
                elif error is None and not future.cancelled():
                    yield [(futures[future], future.result())]
        finally:
            _cancel(futures)
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Stop asking, give up what is under way, and close the connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._connection.close()
        self._pool.shutdown()

    def _first(self, request: GenerateRequest) -> Generated | Failed:
        """Return the first answer, and find out whether this model thinks before it answers.

        A server that leaves thoughts in the text, without a mark at their beginning, shows them only where
        they come to their end.
        """
        found = self._once(request)
        # What failed shows nothing: the next first question does.
        self._looked = not isinstance(found, Failed)
        if isinstance(found, Failed) or self._thinks or self._spec.endpoint != "chat":
            return self._behind_blanks(request, found)
        stopped = _ends_lines(request) and (not found.text or _is_sentence(found.text))
        if found.finish == "length" or stopped:
            reply = self._asked(request, thinking=True)
            if isinstance(reply, Reply) and reply.shows_thoughts:
                self._thinks = True
                return self._answer(request, reply, thinking=True)
        return self._behind_blanks(request, found)

    def _generate(self, request: GenerateRequest) -> Generated | Failed:
        return self._behind_blanks(request, self._once(request))

    def _once(self, request: GenerateRequest) -> Generated | Failed:
        if request.steps or request.watch:
            return Failed(error=NO_PROBABILITIES)
        if request.num_beams > 1:
            return Failed(error="a server of this kind has no beam search")
        thinking = self._thinks
        reply = self._asked(request, thinking=thinking)
        if isinstance(reply, Reply) and reply.shows_thoughts and not thinking:
            # The limit and the stop strings of an answer have cut its thought.
            self._thinks = thinking = True
            reply = self._asked(request, thinking=True)
        return reply if isinstance(reply, Failed) else self._answer(request, reply, thinking=thinking)

    def _behind_blanks(self, request: GenerateRequest, found: Generated | Failed) -> Generated | Failed:
        """Return an answer that is not empty because it begins with a line break, at which a server stops."""
        if isinstance(found, Failed) or found.text or self._thinks or found.finish == "length":
            return found
        if not _ends_lines(request):
            return found
        reply = self._asked(request, thinking=False, stopping=False)
        return found if isinstance(reply, Failed) else self._answer(request, reply)

    def _asked(self, request: GenerateRequest, *, thinking: bool, stopping: bool = True) -> Reply | Failed:
        # In a thought stop strings end nothing, and a server does not tell one from an answer.
        stops = request.stop[:_MOST_STOPS] if stopping and not thinking else ()
        most = request.max_new_tokens + (self._spec.chat.max_thinking_tokens if thinking else 0)
        reply = self._connection.ask(
            lambda post: self._posted(post, request, most, stops),
            limits_for(self._spec.timeout, most, _TOKEN_BYTES, "token"),
        )
        if isinstance(reply, Failed):
            return self._with_hint(reply) if thinking else reply
        found = read_reply(reply)
        if isinstance(found, Reply):
            self._note(reply)
            self._unopened = self._unopened or found.hides_opening
        return found

    def _with_hint(self, failed: Failed) -> Failed:
        if not _TOO_MANY.search(failed.error):
            return failed
        most = self._spec.chat.max_thinking_tokens
        return Failed(
            error=f"{failed.error}; max_thinking_tokens of the model-args, here {most}, says how many of the "
            "tokens that are asked for are for a thought: a smaller number may fit"
        )

    async def _posted(self, post: Post, request: GenerateRequest, most: int, stops: Sequence[str]) -> bytes:
        import openai

        chat = self._spec.chat
        body: dict[str, Any] = {"model": self._spec.name, "temperature": 0}
        stops = stops if self._takes_stops else ()
        if stops:
            body["stop"] = list(stops)
        if self._spec.seed is not None:
            body["seed"] = self._spec.seed
        limit = self._limit
        if self._spec.endpoint == "completions":
            path = "/completions"
            body["prompt"] = text_of(request, chat.system_instruction)
        else:
            path = "/chat/completions"
            body["messages"] = messages_of(request, chat.system_instruction)
        if chat.variables:
            body["chat_template_kwargs"] = chat.variables
        try:
            return await post(path, body | {limit: most})
        except openai.BadRequestError as error:
            # Newer models of OpenAI refuse what all other servers know. Answers are cut here as well.
            if stops and refuses(error, "stop"):
                self._takes_stops = False
            elif limit != _NEWER_LIMIT and _NEWER_LIMIT in str(error):
                self._limit = _NEWER_LIMIT
            else:
                raise
            return await self._posted(post, request, most, stops)

    def _answer(self, request: GenerateRequest, reply: Reply, *, thinking: bool = False) -> Generated:
        thought, answer, unclosed = reply.parted(self._marks, unopened=thinking and self._unopened)
        text, stopped = cut_at_stop("" if unclosed else answer, request)
        return Generated(
            text=text,
            token_ids=(),
            finish="stop" if stopped or (reply.ended and not unclosed) else "length",
            prompt_tokens=reply.prompt_tokens,
            prompt_digest=self._prompt_digest(request),
            thought=thought,
            thought_tokens=reply.thought_tokens,
        )

    def _note(self, reply: Mapping[str, Any]) -> None:
        told = [reply.get("model"), reply.get("system_fingerprint")]
        self.served.add(whole(" ".join(part for part in told if isinstance(part, str))))

    def _prompt_digest(self, request: GenerateRequest) -> str:
        chat = self._spec.chat
        beside = [request.system, request.turns, chat.system_instruction, chat.variables]
        told = json.dumps(beside, sort_keys=True) if any(beside) else ""
        return hashlib.sha256(f"{self._spec.endpoint}\n{told}{request.prompt}".encode()).hexdigest()[:16]


def _ends_lines(request: GenerateRequest) -> bool:
    return any(stop.isspace() for stop in request.stop)


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= (_SENTENCE if text.endswith(_ENDS) else _LONG)


def _cancel(futures: Iterable[Future[Generated | Failed]]) -> None:
    for future in futures:
        future.cancel()
