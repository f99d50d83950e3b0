"""A model behind an OpenAI-compatible server: it writes, and shows no probabilities."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.models.asking import in_order
from pytest_kbrel.models.openai_client import Connection
from pytest_kbrel.models.openai_spec import OpenAISpec
from pytest_kbrel.records import Failed, Fingerprint, Generated, GenerateRequest, Scored, ScoreRequest
from pytest_kbrel.wire import whole

if TYPE_CHECKING:
    import openai

NO_PROBABILITIES = "a server of this kind gives no probabilities of given tokens"
# The protocol's own limit; what it cannot be sent is cut off here.
_MOST_STOPS = 4
_NEWER_LIMIT = "max_completion_tokens"
_DECODING = "temperature 0"


class OpenAIModel:
    """A model asked through the ``openai`` client, at temperature 0; see :class:`OpenAISpec`.

    Over the endpoint ``chat`` a prompt is one user message, over ``completions`` the text to go on with.
    ``served`` is what the replies so far said that they come from.
    """

    def __init__(self, spec: OpenAISpec) -> None:
        self._spec = spec
        self._connection = Connection(spec)
        self._pool = ThreadPoolExecutor(spec.max_concurrent, thread_name_prefix="kbrel-openai")
        self._limit = "max_tokens"
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
        )

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
        futures = {
            self._pool.submit(self._generate, request): place for place, request in enumerate(requests)
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
        """Stop asking and close the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._connection.close()

    def _generate(self, request: GenerateRequest) -> Generated | Failed:
        if request.steps or request.watch:
            return Failed(error=NO_PROBABILITIES)
        if request.num_beams > 1:
            return Failed(error="a server of this kind has no beam search")
        reply = self._connection.ask(lambda client: self._create(client, request))
        return reply if isinstance(reply, Failed) else self._read(request, reply)

    def _create(self, client: openai.OpenAI, request: GenerateRequest) -> Any:
        import openai

        options: dict[str, Any] = {"model": self._spec.name, "temperature": 0}
        if request.stop:
            options["stop"] = list(request.stop[:_MOST_STOPS])
        if self._spec.seed is not None:
            options["seed"] = self._spec.seed
        # Typed as anything: the client's own types allow no options that are not known beforehand.
        if self._spec.endpoint == "completions":
            complete: Any = client.completions.create
            return complete(prompt=request.prompt, max_tokens=request.max_new_tokens, **options)
        chat: Any = client.chat.completions.create
        options["messages"] = [{"role": "user", "content": request.prompt}]
        limit = self._limit
        try:
            return chat(**options, **{limit: request.max_new_tokens})
        except openai.BadRequestError as error:
            # Newer models of OpenAI refuse the name that all other servers know.
            if limit == _NEWER_LIMIT or _NEWER_LIMIT not in str(error):
                raise
            self._limit = _NEWER_LIMIT
            return chat(**options, **{_NEWER_LIMIT: request.max_new_tokens})

    def _read(self, request: GenerateRequest, reply: Any) -> Generated | Failed:
        choices = getattr(reply, "choices", None)
        if not choices:
            return Failed(error=f"the server's reply holds no answer: {str(reply)[:100]!r}")
        self._note(reply)
        choice = choices[0]
        finish = getattr(choice, "finish_reason", None)
        if finish in ("content_filter", "tool_calls", "function_call"):
            return Failed(error=f"the server gave no answer: {finish}")
        message = getattr(choice, "message", choice)
        # A refusal, and a model that spent all its tokens on thinking, leave nothing: an empty answer.
        text = getattr(message, "text" if message is choice else "content", None) or ""
        if not isinstance(text, str):
            return Failed(error=f"the server's reply holds no text: {str(text)[:100]!r}")
        cut = min((text.find(stop) for stop in request.stop if stop in text), default=len(text))
        usage = getattr(reply, "usage", None)
        return Generated(
            text=whole(text[:cut].strip()),
            token_ids=(),
            finish="length" if finish == "length" and cut == len(text) else "stop",
            prompt_tokens=getattr(usage, "prompt_tokens", None) or 0,
            prompt_digest=self._prompt_digest(request.prompt),
        )

    def _note(self, reply: Any) -> None:
        told = [getattr(reply, "model", None), getattr(reply, "system_fingerprint", None)]
        self.served.add(whole(" ".join(part for part in told if isinstance(part, str))))

    def _prompt_digest(self, prompt: str) -> str:
        return hashlib.sha256(f"{self._spec.endpoint}\n{prompt}".encode()).hexdigest()[:16]


def _cancel(futures: Iterable[Future[Generated | Failed]]) -> None:
    for future in futures:
        future.cancel()
