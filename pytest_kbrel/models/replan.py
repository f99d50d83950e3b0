"""The same model under another batch plan: what an A/A comparison asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pytest_kbrel.models.base import Model
from pytest_kbrel.records import Failed, Fingerprint, Generated, GenerateRequest, Scored, ScoreRequest


@runtime_checkable
class Replans(Protocol):
    """A model that can answer in batches of another size without being loaded again."""

    def replanned(self) -> Model:
        """Return the same model with another batch plan."""
        ...


class Replanned:
    """Asks a model in the reverse order, and in batches of another size where it can choose these.

    The model stays its owner's: closing this closes nothing.
    """

    def __init__(self, model: Model) -> None:
        self._model = model.replanned() if isinstance(model, Replans) else model

    def describe(self) -> Fingerprint:
        """Say what the model is: the same one."""
        return self._model.describe()

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return one answer per request, in the order of the requests."""
        return self._model.score(requests[::-1])[::-1]

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return one answer per request, in the order of the requests."""
        return self._model.generate(requests[::-1])[::-1]

    def close(self) -> None:
        """Leave the model to its owner."""
