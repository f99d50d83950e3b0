"""The models of several workers held against each other: a file may change before all have read it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_kbrel.models.cache.store import identity
from pytest_kbrel.records import BASELINE, Fingerprint


class WorkerModels:
    """The first fingerprint of each model by its name in ``Ask.to``, with which all others are compared."""

    def __init__(self) -> None:
        """Begin with no model."""
        self._first: dict[str, Fingerprint] = {}

    def difference(self, models: Iterable[tuple[str, Fingerprint]]) -> str:
        """Return in words how a model of a worker differs from that of the first one; empty if none does."""
        for name, model in models:
            first, now = identity(self._first.setdefault(name, model)), identity(model)
            if differing := [
                key for key in (*first, *now) if first.get(key) != now.get(key)
            ]:
                which = {"": "the model", BASELINE: "the baseline model"}.get(
                    name, name
                )
                key = differing[0]
                return (
                    f"{which} is not the same one in all workers: {key} ({first.get(key)!s:.12} and "
                    f"{now.get(key)!s:.12}); its files changed before all had read them: run again when "
                    "nothing writes there, or gate a copy"
                )
        return ""
