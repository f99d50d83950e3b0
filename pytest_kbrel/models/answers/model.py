"""Model whose answers were made elsewhere: the OpenAI backend over a file in place of a server."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.models.answers.spec import (
    MISSING,
    PROBE,
    UNSCORABLE,
    AnswerFiles,
    AnswersSpec,
    read_answers,
    request_id,
)
from pytest_kbrel.models.openai.client import Replies
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.replies import Reply, read_reply
from pytest_kbrel.records import Failed, Fingerprint, Generated, GenerateRequest

Wanted = Callable[[str, str, Mapping[str, Any]], None]
"""Gets the id, path and body of each request that is without an answer, or has an error in its place."""

_NO_PROBE = (
    "whether the model thinks before it answers is not known, since the file of answers has no reply to the "
    f"request {PROBE}; enable_thinking=True of the model-args says that it does"
)


class _MissingError(ResponseError):
    """A request has no answer."""


class AnswersModel(OpenAIModel):
    """Model whose replies are read from files; what a reply means is decided as for a server.

    A request without an answer gets ``MISSING``. A reply may lead to another request as behind a server, with
    room for a thought, or without stop strings. ``used`` are the ids of all requests. ``name`` is that of the
    model, and ``endpoint`` the one of its requests.
    """

    is_storable = False

    def __init__(self, spec: AnswersSpec) -> None:
        self.answers = AnswerFiles(()) if spec.path is None else read_answers(spec.path)
        requests = dataclasses.replace(spec.requests, max_concurrent=1)
        if not spec.named:
            requests = dataclasses.replace(requests, name=self.answers.name)
        self.name, self.endpoint = requests.name, requests.endpoint
        self._file = _FileConnection(self.answers)
        super().__init__(requests, self._file)
        self._text = spec.text
        # One probe in the file shows the same to every process, whichever request it asks first.
        self._probes = requests.chats and not self._looked and not self._thinks
        self._looked = True
        probe = self.answers.find(PROBE) if self._probes else None
        self._has_no_probe = self._probes and bool(spec.path) and probe is None
        if isinstance(probe, dict) and isinstance(reply := read_reply(probe), Reply):
            self._thinks = reply.shows_thoughts
            self._unopened = self._unopened or reply.hides_opening
        self._probes = self._probes and probe is None

    @property
    def used(self) -> set[str]:
        """The ids of all requests so far."""
        return self._file.used

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of its figures should know, a sentence each."""
        return super().notes + (_NO_PROBE,) * self._has_no_probe

    @property
    def unscorable(self) -> str:
        """Why no given text has probabilities."""
        return UNSCORABLE

    def listen(self, wanted: Wanted) -> None:
        """Hand each request that is without an answer to ``wanted``, once a try."""
        self._file.wanted = wanted

    def describe(self) -> Fingerprint:
        """Return the model's fingerprint: its name in the replies, and the digest of the files."""
        served = " and ".join(sorted(self.answers.served))
        return dataclasses.replace(
            super().describe(),
            spec=self._text,
            backend="answers",
            backend_version=f"served {served}" if served else "",
            weights_digest=self.answers.digest,
            device="",
        )

    def _generate(
        self, request: GenerateRequest, *, is_first: bool = False
    ) -> Generated | Failed:
        if self._probes and self._file.wanted is not None and not request.lead:
            self._probes = False
            most = request.max_new_tokens + self._spec.chat.max_thinking_tokens
            self._file.wanted(PROBE, *self._question(request, most, ()))
        try:
            return super()._generate(request, is_first=is_first)
        except _MissingError:
            return MISSING


class _FileConnection(Replies):
    """Files of answers in the place of a connection to a server."""

    def __init__(self, answers: AnswerFiles) -> None:
        self._answers = answers
        self.used: set[str] = set()
        self.wanted: Wanted | None = None

    def ask(self, path: str, body: Mapping[str, Any]) -> Any | Failed:
        """Return the JSON of a reply, as builtins, or the error that the batch has in its place."""
        name = request_id(path, body)
        self.used.add(name)
        reply = self._answers.find(name)
        if self.wanted is not None and (reply is None or isinstance(reply, Failed)):
            self.wanted(name, path, body)
        if reply is None:
            raise _MissingError(MISSING.error)
        return reply
