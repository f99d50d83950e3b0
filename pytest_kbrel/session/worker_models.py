"""The models of several workers held against each other: a file may change before all have read it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_kbrel.models.cache.store import identity
from pytest_kbrel.records import BASELINE, Fingerprint


def difference(
    known: dict[str, Fingerprint], models: Iterable[tuple[str, Fingerprint]]
) -> str:
    """Return in words how a model of a worker differs from the ``known`` one; empty if none does.

    Models are known by their names in ``Ask.to``, and those that are not yet are added.
    """
    for name, model in models:
        first, now = identity(known.setdefault(name, model)), identity(model)
        for key in (*first, *now):
            if first.get(key) != now.get(key):
                own = {"": "the model", BASELINE: "the baseline model"}
                return (
                    f"{own.get(name, name)} is not the same one in all workers: {key} "
                    f"({first.get(key)!s:.12} and {now.get(key)!s:.12}); its files changed before all had "
                    "read them: run again when nothing writes there, or gate a copy"
                )
    return ""
