"""What a model is to the rest of the house."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
)


class Model(Protocol):
    """A checkpoint that answers. Batching, order and sharing of prefixes are its own business.

    Answers come back one for each request, in the order of the requests; an answer that could not be had is a
    :class:`~pytest_kbrel.records.Failed`, not an exception.
    """

    def describe(self) -> Fingerprint:
        """Say what this model is, by content."""
        ...

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the probabilities of given continuations' tokens."""
        ...

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return continuations the model makes itself."""
        ...

    def close(self) -> None:
        """Free what the model holds."""
        ...


@runtime_checkable
class Renders(Protocol):
    """A model that shows a prompt as it reads it; others read a request's text as it is."""

    def rendered(self, request: Request) -> str:
        """Return the prompt of a request as the model reads it; nothing is computed and no server asked."""
        ...
