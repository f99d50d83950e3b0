"""Model of a recorded run: its fingerprint, and failures for requests that the run has no responses to."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.models.base import Model
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
)

NOT_RECORDED = Failed(error="not recorded")


class RecordedModel(Model):
    """Model that a recorded run asked; its recorded responses are in the store of the run."""

    def __init__(self, fingerprint: Fingerprint, notes: tuple[str, ...] = ()) -> None:
        self._fingerprint = fingerprint
        self._notes = notes

    @property
    def notes(self) -> tuple[str, ...]:
        """The recorded remarks on the models."""
        return self._notes

    def describe(self) -> Fingerprint:
        """Return the recorded fingerprint."""
        return self._fingerprint

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return a failure for each request."""
        return [NOT_RECORDED] * len(requests)

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return a failure for each request."""
        return [NOT_RECORDED] * len(requests)
