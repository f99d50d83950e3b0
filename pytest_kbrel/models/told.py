"""What a model has said in this session, kept outside memory: answers are many, and few come twice."""

from __future__ import annotations

import pickle
import sqlite3
import threading
import weakref
from collections.abc import Sequence

from pytest_kbrel.models.store_keys import key_of
from pytest_kbrel.records import Request, Response

# SQLite allows 32,766 places in a statement, older builds 999.
_AT_ONCE = 500


class Told:
    """Responses by request, in a temporary file of SQLite's that has no name and ends with this object.

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

    def find(self, requests: Sequence[Request]) -> dict[Request, Response]:
        """Return what is known of these requests."""
        with self._lock:
            return self._find(requests)

    def keep(self, answers: dict[Request, Response]) -> None:
        """Keep what was said to these requests."""
        with self._lock:
            self._keep(answers)

    def _find(self, requests: Sequence[Request]) -> dict[Request, Response]:
        if self._file is None:
            return {}
        found: dict[Request, Response] = {}
        try:
            for start in range(0, len(requests), _AT_ONCE):
                asked = {_key(request): request for request in requests[start : start + _AT_ONCE]}
                places = ",".join("?" * len(asked))
                rows = self._file.execute(
                    f"SELECT key, response FROM told WHERE key IN ({places})", list(asked)
                )
                # Not a format for others: the file is this process's own, and nobody else can open it.
                found.update((asked[key], pickle.loads(response)) for key, response in rows)
        except sqlite3.Error:
            self._file = None
            return {}
        return found

    def _keep(self, answers: dict[Request, Response]) -> None:
        if self._file is None:
            return
        try:
            self._file.execute("BEGIN")
            self._file.executemany(
                "INSERT OR REPLACE INTO told VALUES (?, ?)",
                ((_key(request), pickle.dumps(response)) for request, response in answers.items()),
            )
            self._file.execute("COMMIT")
        except sqlite3.Error:
            self._file = None


def _key(request: Request) -> bytes:
    return bytes.fromhex(key_of("", request))
