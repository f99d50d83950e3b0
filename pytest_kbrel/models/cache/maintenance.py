"""Inspection, pruning and export of the response store (``kbrel cache``)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.store import FILE, Store
from pytest_kbrel.records import Fingerprint, record
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.untrusted import parse

_CHUNK = 500
# Hex digits of a digest that are printed.
SHORT = 12


@record
class CachedModel:
    """A model with responses in a store.

    ``model`` is its description at its first response. ``first`` and ``last`` are when responses were stored
    (seconds since 1970), ``characters`` is their length. ``for_one_run`` is set for a served model, whose
    responses are deleted when the run that asked has ended.
    """

    digest: str
    model: Fingerprint
    answers: int
    first: int
    last: int
    characters: int
    for_one_run: bool = False


class Maintenance:
    """An existing store, opened for inspection, pruning and export.

    Raises :class:`StoreError` if there is none, and as :class:`Store` does.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / FILE).is_file():
            raise StoreError(f"{folder}: no answers are kept here (there is no {FILE})")
        self._store = Store(folder)
        self.path = self._store.path

    def size(self) -> int:
        """Return the bytes that the store takes on the disk, SQLite's own files beside it included."""
        files = self.path.parent.glob(f"{FILE}*")
        return sum(os.stat(file).st_size for file in files)

    def models(self) -> tuple[CachedModel, ...]:
        """Return the models that have responses, those with most first."""
        rows = self._store.query(
            "SELECT digest, described, count(*) AS n, min(created), max(created), sum(length(response)), "
            "digest IN (SELECT digest FROM journals) "
            "FROM answers JOIN models ON models.id = answers.model GROUP BY models.id "
            "ORDER BY n DESC, digest"
        )
        return tuple(
            CachedModel(
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

    def model(self, beginning: str) -> CachedModel:
        """Return the model whose digest begins so; raise :class:`StoreError` unless exactly one does."""
        models = self.models()
        matches = [
            model for model in models if model.digest.startswith(beginning.lower())
        ]
        if len(matches) == 1 and beginning:
            return matches[0]
        allowed = (
            ", ".join(model.digest[:SHORT] for model in models)
            or "none, for nothing is kept"
        )
        what = f"{len(matches)} models begin so" if matches else "no model begins so"
        raise StoreError(
            f"{self.path}: found {beginning!r}, and {what}; allowed: {allowed}"
        )

    def prune(
        self, *, model: CachedModel | None = None, before: float | None = None
    ) -> int:
        """Delete responses, of one model or of all, those older than ``before`` or all; return how many.

        Their space is returned to the disk.
        """
        where, values = "1", []
        if model is not None:
            where += " AND model = (SELECT id FROM models WHERE digest = ?)"
            values.append(model.digest)
        if before is not None:
            where += f" AND created < {int(before)}"
        ((count,),) = self._store.query(
            f"SELECT count(*) FROM answers WHERE {where}", *values
        )
        self._store.transaction(
            (f"DELETE FROM answers WHERE {where}", *values),
            ("DELETE FROM models WHERE id NOT IN (SELECT model FROM answers)",),
        )
        self._store.shrink()
        return int(count)

    def lines(self, model: CachedModel | None = None) -> Iterator[str]:
        """Yield each response as a line of JSON, those of one model or all, in the order they were stored.

        Raises :class:`StoreError` at a damaged response.
        """
        last, values = 0, [] if model is None else [model.digest]
        chosen = "AND digest = ?" if values else ""
        while rows := self._store.query(
            "SELECT answers.rowid, key, digest, created, response, checksum FROM answers "
            f"JOIN models ON models.id = answers.model WHERE answers.rowid > {last} {chosen} "
            f"ORDER BY answers.rowid LIMIT {_CHUNK}",
            *values,
        ):
            for _, key, digest, created, text, checksum in rows:
                self._store.decode(key, text, checksum)
                yield json.dumps(
                    {
                        "key": key.hex(),
                        "model": digest,
                        "created": created,
                        "answer": parse(text),
                    }
                )
            last = rows[-1][0]

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
