"""What a model has said in this session, kept outside memory: answers are many, and few come twice."""

from __future__ import annotations

import pickle
import sqlite3
import threading
import weakref
from collections.abc import Mapping, Sequence

from pytest_kbrel.records import Response
from pytest_kbrel.serialization import record_of, values_of

# SQLite allows 32,766 places in a statement, older builds 999.
_AT_ONCE = 500


class Told:
    """Responses by the keys of their requests (hex), in a temporary file.

    It is SQLite's own, has no name and ends with this object.

    Where that file cannot be written any more (a full disk) all is forgotten, and nothing is kept from there
    on: whoever asks again is answered anew. Any thread may use it.
    """

    def __init__(self) -> None:
        # The garbage collector ends this object in whichever thread it runs.
        self._file: sqlite3.Connection | None = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False
        )
        self._lock = threading.Lock()
        self._file.execute("CREATE TABLE told (key BLOB PRIMARY KEY, response BLOB NOT NULL) WITHOUT ROWID")
        weakref.finalize(self, self._file.close)

    def find(self, keys: Sequence[str]) -> dict[str, Response]:
        """Return what is known of the requests with these keys."""
        with self._lock:
            return self._find(keys)

    def keep(self, answers: Mapping[str, Response]) -> None:
        """Keep what was said to the requests with these keys."""
        with self._lock:
            self._keep(answers)

    def _find(self, keys: Sequence[str]) -> dict[str, Response]:
        if self._file is None:
            return {}
        found: dict[str, Response] = {}
        try:
            for start in range(0, len(keys), _AT_ONCE):
                some = [bytes.fromhex(key) for key in keys[start : start + _AT_ONCE]]
                places = ",".join("?" * len(some))
                rows = self._file.execute(f"SELECT key, response FROM told WHERE key IN ({places})", some)
                found.update((key.hex(), _read(response)) for key, response in rows)
        except sqlite3.Error:
            self._file = None
            return {}
        return found

    def _keep(self, answers: Mapping[str, Response]) -> None:
        if self._file is None:
            return
        rows = [(bytes.fromhex(key), _written(response)) for key, response in answers.items()]
        try:
            self._file.execute("BEGIN")
            self._file.executemany("INSERT OR REPLACE INTO told VALUES (?, ?)", rows)
            self._file.execute("COMMIT")
        except sqlite3.Error:
            self._file = None


# Not a format for others: the file is this process's own, and nobody else can open it. A record's own way
# to be pickled takes twice the time.
def _written(response: Response) -> bytes:
    return pickle.dumps((type(response), values_of(response)))


def _read(written: bytes) -> Response:
    kind, values = pickle.loads(written)
    response: Response = record_of(kind, values)
    return response
