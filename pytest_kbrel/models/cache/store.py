"""SQLite store of model responses, and the keys that responses are stored under.

The store is one file, ``answers.sqlite``, in a folder that several processes of one machine may use at once.
A response that was put there stays, whatever happens to the process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pytest_kbrel.errors import StoreError
from pytest_kbrel.records import (
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
)
from pytest_kbrel.serialization import encoder, fields_of, from_wire, to_wire, values_of
from pytest_kbrel.untrusted import LINE, parse

FILE = "answers.sqlite"
SCHEMA_VERSION = 4
# Marks the file as ours, in SQLite's own header ("kbrl").
_APPLICATION = 0x6B62726C
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
T = TypeVar("T")


class Store:
    """Responses of all models in one folder, which is made at the first opening.

    ``patience`` is how many seconds a writer waits for another one.

    Raises :class:`StoreError`, with the file and the way out, if it is unreadable, of another program or
    version, on a network folder, or may not be written.
    """

    def __init__(self, folder: Path, *, patience: float = PATIENCE) -> None:
        self.path = folder / FILE
        self._patience = patience
        if kind := network_of(folder):
            raise StoreError(
                f"{self.path}: is on a network folder ({kind}), where a file that several machines write is "
                "not safe; give a folder on a local disk with --kb-use-cache"
            )
        with self._guarded():
            make_folder(folder)
            # Of a folder that may not be written SQLite only says that it cannot open its file.
            tempfile.TemporaryFile(dir=folder).close()
            self._connection = self._open()
            self._inode = self._file()

    def get(self, keys: Sequence[str], digest: str) -> dict[str, Answer]:
        """Return the stored responses by key (hex) that belong to the model, or journal, with this digest.

        Raises :class:`StoreError` for a damaged one.
        """
        rows: list[tuple[bytes, str, bytes]] = []
        with self._guarded():
            self._check_file()
            for marks, chunk in chunks(keys):
                rows += self._connection.execute(
                    f"SELECT key, response, checksum FROM answers WHERE key IN ({marks}) "
                    "AND model = (SELECT id FROM models WHERE digest = ?)",
                    [*chunk, digest],
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
            rows.append((key, now, text, _checksum(key, text), asked, with_requests))
        if not rows:
            return
        with self._guarded(), self._connection:
            self._check_file()
            self._connection.execute("BEGIN IMMEDIATE")
            # Each time: another process may have deleted the model.
            self._connection.execute(
                "INSERT OR IGNORE INTO models (digest, described) VALUES (?, ?)",
                (digest, _described(model)),
            )
            (number,) = self._connection.execute(
                "SELECT id FROM models WHERE digest = ?", (digest,)
            ).fetchone()
            self._connection.executemany(
                f"INSERT OR IGNORE INTO answers VALUES (?, {int(number)}, ?, ?, ?, ?, ?)",
                rows,
            )

    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement with its values; return its rows."""
        return self.transaction((text, *values))

    def transaction(self, *statements: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Run statements, each with its values, in one transaction; return the rows of the last."""
        rows: list[tuple[Any, ...]] = []
        with self._guarded(), self._connection:
            self._check_file()
            self._connection.execute("BEGIN")
            for text, *values in statements:
                rows = self._connection.execute(text, values).fetchall()
        return rows

    def decode(self, key: bytes, text: str, checksum: bytes) -> Answer:
        """Return the response of a row; raise :class:`StoreError` if it is not the one of this key."""
        try:
            if _checksum(key, text) != checksum:
                raise ValueError("its checksum is wrong")
            data = parse(text)
            return (
                from_wire(Scored, data)
                if data["kind"] == "scored"
                else from_wire(Generated, data)
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(
                f"{self.path}: the answer {key.hex()[:12]} is broken: {error}; {self.way_out}"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _check_file(self) -> None:
        # What is written to a deleted file is lost, and SQLite does not say so.
        if self._file() != self._inode:
            raise StoreError(
                f"{self.path}: was deleted or replaced while it was in use; the next run makes a new one"
            )

    def _file(self) -> tuple[int, int]:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return 0, 0
        return status.st_dev, status.st_ino

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._patience, isolation_level=None
        )
        # Anybody who shares the file could have written more into it than any response has.
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LINE)
        try:
            # A commit is then safe from the end of the process, and cheap enough for one after each response.
            (mode,) = self._patiently(
                lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone()
            )
            if mode != "wal":
                raise StoreError(
                    f"{self.path}: processes cannot share a file there (journal mode {mode}); give a folder "
                    "on a local disk with --kb-use-cache"
                )
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            self._prepare(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables and not application:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            for table in (*_TABLES, _JOURNALS):
                connection.execute(table)
        elif application != _APPLICATION:
            raise StoreError(
                f"{self.path}: is the database of another program; {self.way_out}"
            )
        elif version != SCHEMA_VERSION:
            newer = "update pytest-kbrel, or " if version > SCHEMA_VERSION else ""
            raise StoreError(
                f"{self.path}: found schema version {version}, this pytest-kbrel knows {SCHEMA_VERSION}; "
                f"{newer}{self.way_out}"
            )

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{self.path}: kept answers cannot be read or written: {error}; {self.way_out}"
            ) from None

    def _patiently(self, action: Callable[[], T]) -> T:
        # SQLite's own waiting does not cover the change of the journal's mode.
        end = time.monotonic() + self._patience
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    @property
    def way_out(self) -> str:
        """End of an error message: what to do about an unusable store."""
        return (
            f"delete {self.path} (its answers are then asked for anew), or give another folder with "
            "--kb-use-cache"
        )


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
    if not request.lead:
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
    fields: dict[str, object] = {
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


# File systems that another machine may write at the same time, as Linux names them.
_NETWORK = (
    *(
        "nfs",
        "cifs",
        "smb",
        "afs",
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "gluster",
        "orangefs",
        "panfs",
    ),
    *(
        "wekafs",
        "fuse.sshfs",
        "fuse.gluster",
        "fuse.ceph",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.gcsfuse",
    ),
    "fuse.juicefs",
)
_MOUNTS = Path("/proc/self/mounts")


def make_folder(folder: Path) -> None:
    """Create a folder that version control ignores; one that exists is left as it is."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n", encoding="utf-8")


def network_of(folder: Path, mounts: str | None = None) -> str:
    """Return the name of a folder's file system if that is a network's, else ``""``.

    The folder need not exist. Linux says so in ``/proc/self/mounts`` (``mounts`` are its lines), Windows in
    the path of a share. Other systems do not say, and nothing is refused there.
    """
    path, kind = folder.resolve(), ""
    if path.drive.startswith("\\\\"):
        return "Windows share"
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""
    depth = -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount = Path(re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[1]))
        # Of two mounts at one path the later one is seen.
        if path.is_relative_to(mount) and len(mount.parts) >= depth:
            depth, kind = len(mount.parts), fields[2]
    return kind if kind.startswith(_NETWORK) else ""


class Lock:
    """Lock file that one process at a time can hold; the kernel frees it when its holder dies.

    The file is empty. SQLite locks it, since SQLite can do so on every system.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def take(self, patience: float = 0.0) -> bool:
        """Take the lock within ``patience`` seconds; return False if another process holds it.

        Raises :class:`StoreError` if the file cannot be made or locked at all.
        """
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(
                self.path, timeout=patience, isolation_level=None
            )
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            if "locked" in str(error):
                return False
            raise StoreError(
                f"{self.path}: cannot be locked: {error}; give another folder with --kb-use-cache"
            ) from None
        self._connection = connection
        return True

    def free(self) -> None:
        """Release the lock if it is held. Its file stays: processes that wait for it have it open."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def is_held(path: Path, patience: float = 1.0) -> bool:
    """Return True if a living process holds the lock at ``path``.

    The lock is tried for ``patience`` seconds, since other processes may be trying it as well.
    """
    lock = Lock(path)
    if not path.exists():
        return False
    try:
        return not lock.take(patience)
    finally:
        lock.free()
