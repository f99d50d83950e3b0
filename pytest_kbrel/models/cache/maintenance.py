"""Looking after a store: what is in it, what may go, and all of it as text."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.store import FILE, Store
from pytest_kbrel.records import Fingerprint, record
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.untrusted import parse

_AT_ONCE = 500
# As many hex digits tell models apart in print.
SHORT = 12


@record
class KeptModel:
    """A model with answers in a store.

    ``digest`` is what tells it from others, ``model`` how it was described when its first answer was kept.
    ``first`` and ``last`` are when answers came (seconds since 1970), ``characters`` is their length.
    ``for_one_run`` is set where they are those of a served model, and go when the run that asked has ended.
    """

    digest: str
    model: Fingerprint
    answers: int
    first: int
    last: int
    characters: int
    for_one_run: bool = False


class Upkeep:
    """An existing store, opened to be looked after.

    Raises :class:`StoreError` where there is none, and as :class:`Store` does.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / FILE).is_file():
            raise StoreError(f"{folder}: no answers are kept here (there is no {FILE})")
        self._store = Store(folder)
        self.path = self._store.path

    def size(self) -> int:
        """Return the bytes the store takes on the disk, what is not yet in its main file included."""
        files = self.path.parent.glob(f"{FILE}*")
        return sum(os.stat(file).st_size for file in files)

    def models(self) -> tuple[KeptModel, ...]:
        """Return the models that have answers, those with most first."""
        rows: list[Any] = self._store.query(
            (
                "SELECT digest, described, count(*) AS n, min(created), max(created), sum(length(response)), "
                "digest IN (SELECT digest FROM journals) "
                "FROM answers JOIN models ON models.id = answers.model GROUP BY models.id "
                "ORDER BY n DESC, digest",
                (),
            )
        )
        return tuple(
            KeptModel(
                digest=digest,
                model=self._described(digest, text),
                answers=answers,
                first=first,
                last=last,
                characters=characters,
                for_one_run=bool(unfinished),
            )
            for digest, text, answers, first, last, characters, unfinished in rows
        )

    def model(self, beginning: str) -> KeptModel:
        """Return the model whose digest begins so; raises :class:`StoreError` for none and for several."""
        models = self.models()
        found = [model for model in models if model.digest.startswith(beginning.lower())]
        if len(found) == 1 and beginning:
            return found[0]
        allowed = ", ".join(model.digest[:SHORT] for model in models) or "none, for nothing is kept"
        what = f"{len(found)} models begin so" if found else "no model begins so"
        raise StoreError(f"{self.path}: found {beginning!r}, and {what}; allowed: {allowed}")

    def prune(self, *, model: KeptModel | None = None, before: float | None = None) -> int:
        """Forget answers, of one model or of all, those older than ``before`` or all; return how many.

        The room is given back to the disk.
        """
        conditions: list[str] = ["1"]
        values: list[object] = []
        if model is not None:
            conditions.append("model = (SELECT id FROM models WHERE digest = ?)")
            values.append(model.digest)
        if before is not None:
            conditions.append("created < ?")
            values.append(int(before))
        where = " AND ".join(conditions)
        ((gone,),) = self._store.query((f"SELECT count(*) FROM answers WHERE {where}", values))
        self._store.query(
            (f"DELETE FROM answers WHERE {where}", values),
            ("DELETE FROM models WHERE id NOT IN (SELECT model FROM answers)", ()),
        )
        self._store.shrink()
        return int(str(gone))

    def lines(self, model: KeptModel | None = None) -> Iterator[str]:
        """Yield each answer as a line of JSON, those of one model or all, in the order they came.

        Raises :class:`StoreError` at an answer that is not as it was put.
        """
        last = 0
        chosen = "" if model is None else "AND digest = ?"
        while True:
            values: Sequence[object] = (last,) if model is None else (last, model.digest)
            rows: list[Any] = self._store.query(
                (
                    "SELECT answers.rowid, key, digest, created, response, checksum FROM answers "
                    f"JOIN models ON models.id = answers.model WHERE answers.rowid > ? {chosen} "
                    f"ORDER BY answers.rowid LIMIT {_AT_ONCE}",
                    values,
                )
            )
            for number, key, digest, created, text, checksum in rows:
                last = number
                self._store.sound(key, text, checksum)
                kept = {"key": key.hex(), "model": digest, "created": created, "answer": parse(text)}
                yield json.dumps(kept)
            if not rows:
                return

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def _described(self, digest: str, text: str) -> Fingerprint:
        try:
            return from_wire(Fingerprint, parse(text))
        except (ValueError, TypeError) as error:
            raise StoreError(
                f"{self.path}: what is said of the model {digest[:SHORT]} cannot be read: {error}; delete "
                f"{self.path} (its answers are then asked for anew)"
            ) from None
