"""SQLite store of model responses, and the keys that responses are stored under.

The store is one file, ``answers.sqlite``, in a folder that several processes of one machine may use at once.
A response that was put there stays, whatever happens to the process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytest_kbrel.errors import StoreError
from pytest_kbrel.records import (
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
)
from pytest_kbrel.serialization import encoder, fields_of, from_wire, to_wire, values_of
from pytest_kbrel.store.database import Database, network_of
from pytest_kbrel.untrusted import LINE, parse

FILE = "answers.sqlite"
# Seconds that a writer waits for the others.
PATIENCE = 60.0
# SQLite allows 32,766 values in a statement, older builds 999.
_CHUNK = 500
# Not WITHOUT ROWID: responses are longer than what that is made for, and writing took twice the time.
_TABLES = (
    "CREATE TABLE models (id INTEGER PRIMARY KEY, digest TEXT UNIQUE NOT NULL, described TEXT NOT NULL)",
    "CREATE TABLE answers (key BLOB PRIMARY KEY, model INTEGER NOT NULL, created INTEGER NOT NULL, "
    "response TEXT NOT NULL, checksum BLOB NOT NULL, request TEXT, "
    "used INTEGER NOT NULL DEFAULT 0)",
)
# Responses for an unfinished run only (see journal.py).
_JOURNALS = (
    "CREATE TABLE journals (digest TEXT PRIMARY KEY, run TEXT NOT NULL, who TEXT NOT NULL, "
    "entry TEXT NOT NULL, served TEXT NOT NULL, started INTEGER NOT NULL, checked INTEGER NOT NULL, "
    "failed INTEGER NOT NULL, note TEXT NOT NULL)"
)
Answer = Scored | Generated
_dumps = encoder(separators=(",", ":"))
# The number of a model, or journal, by its digest.
MODEL = "(SELECT id FROM models WHERE digest = ?)"


class Store(Database):
    """Responses of all models in one folder, which is made at the first opening.

    ``patience`` is how many seconds a writer waits for another one.

    Raises :class:`StoreError`, with the file and the way out, if it is unreadable, of another program or
    version, on a network folder, or may not be written.
    """

    version = 4
    tables = (*_TABLES, _JOURNALS)
    synchronous = "NORMAL"

    def __init__(self, folder: Path, *, patience: float = PATIENCE) -> None:
        self.path = path = folder / FILE
        super().__init__(
            path, f"{path}: kept answers cannot be read or written", patience
        )
        if kind := network_of(folder):
            raise StoreError(
                f"{path}: is on a network folder ({kind}), where a file that several machines write is "
                "not safe; give a folder on a local disk with --kb-use-cache"
            )
        with super().reading():
            self._inode = self._identity()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Hand out the open file; raise where it was deleted: what is written to it is lost."""
        with super().reading() as file:
            if self._identity() != self._inode:
                raise StoreError(
                    f"{self.path}: was deleted or replaced while it was in use; the next run makes a new one"
                )
            yield file

    def get(self, keys: Sequence[str], digest: str) -> dict[str, Answer]:
        """Return the stored responses by key (hex) that belong to the model, or journal, with this digest.

        Raises :class:`StoreError` for a damaged one.
        """
        rows = []
        for marks, chunk in chunks(keys):
            rows += self.rows(
                f"SELECT key, response, checksum FROM answers WHERE key IN ({marks}) AND model = {MODEL}",
                *chunk,
                digest,
            )
        return {
            key.hex(): self.decode(key, text, checksum) for key, text, checksum in rows
        }

    def put(
        self,
        answers: Iterable[tuple[str, Request, Answer]],
        model: Fingerprint,
        digest: str,
        *,
        with_requests: bool = False,
    ) -> None:
        """Store responses in one transaction, each with its key and request; a key that is there stays.

        They belong to ``model`` under this digest, its own or that of a journal, which has them
        ``with_requests``: such responses count as used by this run.
        """
        now = int(time.time())
        rows = []
        for name, request, answer in answers:
            kind = "scored" if isinstance(answer, Scored) else "generated"
            key = bytes.fromhex(name)
            text = _dumps({"kind": kind, **fields_of(answer)})
            asked = None
            if with_requests:
                asked = json.dumps([type(request).__name__, to_wire(request)])
            checksum = _checksum(key, text)
            rows.append((key, digest, now, text, checksum, asked, with_requests))
        if not rows:
            return
        with self.writing() as file:
            # Each time: another process may have deleted the model.
            file.execute(
                "INSERT OR IGNORE INTO models (digest, described) VALUES (?, ?)",
                (digest, _described(model)),
            )
            file.executemany(
                f"INSERT OR IGNORE INTO answers VALUES (?, {MODEL}, ?, ?, ?, ?, ?)",
                rows,
            )

    def decode(self, key: bytes, text: str, checksum: bytes) -> Answer:
        """Return the response of a row; raise :class:`StoreError` if it is not the one of this key."""
        try:
            if _checksum(key, text) != checksum:
                raise ValueError("its checksum is wrong")
            data = parse(text)
            kind: type[Answer] = Scored if data["kind"] == "scored" else Generated
            answer: Answer = from_wire(kind, data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self.error(
                f"{self.path}: the answer {key.hex()[:12]} is broken: {error}"
            ) from None
        return answer

    @property
    def way_out(self) -> str:  # type: ignore[override]
        """End of an error message: what to do about an unusable store."""
        return (
            f"delete {self.path} (its answers are then asked for anew), or give another folder with "
            "--kb-use-cache"
        )

    def _identity(self) -> tuple[int, int]:
        try:
            status = self.path.stat()
        except OSError:
            return 0, 0
        return status.st_dev, status.st_ino

    def _opened(self) -> sqlite3.Connection:
        make_folder(self.path.parent)
        # Of a folder that may not be written SQLite only says that it cannot open its file.
        tempfile.TemporaryFile(dir=self.path.parent).close()
        file = super()._opened()
        # Anybody who shares the file could have written more into it than any response has.
        file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LINE)
        # A commit is then safe from the end of the process, and cheap enough for one after each response.
        # SQLite's own waiting does not cover the change of the journal's mode.
        end = time.monotonic() + self._patience
        while True:
            try:
                (mode,) = file.execute("PRAGMA journal_mode = WAL").fetchone()
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.05)
        if mode != "wal":
            file.close()
            raise StoreError(
                f"{self.path}: processes cannot share a file there (journal mode {mode}); give a folder "
                "on a local disk with --kb-use-cache"
            )
        return file


def chunks(keys: Sequence[str]) -> Iterator[tuple[str, list[bytes]]]:
    """Yield keys (hex) in chunks that one SQL statement takes, each with as many question marks."""
    for start in range(0, len(keys), _CHUNK):
        chunk = [bytes.fromhex(key) for key in keys[start : start + _CHUNK]]
        yield ",".join("?" * len(chunk)), chunk


def key_of(model: str, request: Request) -> str:
    """Return the key of a response (sha256, hex): a digest of the model and of the request with its settings.

    ``model`` is the model's :func:`digest_of`.
    """
    kind = "generate" if isinstance(request, GenerateRequest) else "score"
    values = values_of(request)
    if not request.rounding:
        values = values[:-1]
    if not (request.lead or request.rounding):
        values = values[:-1]
        # Keys of older versions, which had none of these last fields, stay valid.
        top_k = isinstance(request, GenerateRequest) and request.top_k
        if isinstance(request, GenerateRequest) and not top_k:
            values = values[:-1]
        if not (request.system or request.turns or top_k):
            values = values[:-2]
    return hashlib.sha256(json.dumps([model, kind, values]).encode()).hexdigest()


def digest_of(model: Fingerprint) -> str:
    """Return the digest (sha256, hex) of a model's :func:`identity`."""
    return hashlib.sha256(
        json.dumps(identity(model), sort_keys=True).encode()
    ).hexdigest()


def identity(model: Fingerprint) -> dict[str, object]:
    """Return the fields that two models must have in common to share their responses.

    A checkpoint is identified by its contents and by the code that computes its responses, not by its name,
    path or device. Of a model behind a server only its name and the server's address are known.
    """
    fields = {
        "backend": model.backend,
        "weights": model.weights_digest,
        "tokenizer": model.tokenizer_digest,
        "dtype": model.dtype,
        "derived": model.derived,
        "quantisation": model.quantisation,
        "decoding": model.decoding,
        "chat_template": model.chat_template,
        "adds_bos": model.adds_bos,
        **({"prompting": model.prompting} if model.prompting else {}),
    }
    if model.weights_digest:
        # Who tries a new version of a library wants to know what that one answers.
        return fields | {
            "computed_by": model.backend_version,
            "scoring": model.scoring_version,
        }
    return fields | {"name": model.architecture, "server": model.device}


@functools.lru_cache
def _described(model: Fingerprint) -> str:
    return json.dumps(to_wire(model))


def _checksum(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(
        key + text.encode("utf-8", "surrogatepass"), digest_size=8
    ).digest()


def make_folder(folder: Path) -> None:
    """Create a folder that version control ignores; one that exists is left as it is."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")
