"""Per-session response cache in a temporary SQLite file, and a wrapper that asks a model each thing once."""

from __future__ import annotations

import pickle
import sqlite3
import threading
import weakref
from collections.abc import Mapping, Sequence

from pytest_kbrel.models.base import Model, check_count, numbers_only, within_size
from pytest_kbrel.models.cache.store import chunks, key_of
from pytest_kbrel.records import Failed, GenerateRequest, Request, Response, ScoreRequest
from pytest_kbrel.serialization import record_of, values_of


class SessionCache:
    """Responses by the keys of their requests (hex), in a temporary file, so that memory does not grow.

    The file is SQLite's own, has no name and ends with this object. If it cannot be written any more (a full
    disk), all is forgotten, and nothing is stored from there on: requests are then asked anew. Any thread may
    use it.
    """

    def __init__(self) -> None:
        # The garbage collector ends this object in whichever thread it runs.
        self._file: sqlite3.Connection | None = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False
        )
        self._lock = threading.Lock()
        self._file.execute(
            "CREATE TABLE responses (key BLOB PRIMARY KEY, response BLOB NOT NULL) WITHOUT ROWID"
        )
        weakref.finalize(self, self._file.close)

    def get(self, keys: Sequence[str]) -> dict[str, Response]:
        """Return the cached responses by key."""
        responses: dict[str, Response] = {}
        with self._lock:
            if self._file is None:
                return {}
            try:
                for marks, chunk in chunks(keys):
                    rows = self._file.execute(
                        f"SELECT key, response FROM responses WHERE key IN ({marks})", chunk
                    )
                    responses.update((key.hex(), _read(response)) for key, response in rows)
            except sqlite3.Error:
                self._file = None
                return {}
        return responses

    def put(self, responses: Mapping[str, Response]) -> None:
        """Store responses by key; a later one replaces an earlier one."""
        rows = [(bytes.fromhex(key), _written(response)) for key, response in responses.items()]
        with self._lock:
            if self._file is None:
                return
            try:
                self._file.execute("BEGIN")
                self._file.executemany("INSERT OR REPLACE INTO responses VALUES (?, ?)", rows)
                self._file.execute("COMMIT")
            except sqlite3.Error:
                self._file = None


class Asker:
    """Wraps a model for one session: the same request is put to it once, whoever repeats it.

    ``asked`` counts the requests that came in, ``answered`` those that the model was given. Failures are not
    cached: a repeated request gets another try.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.asked = 0
        self.answered = 0
        self._cache = SessionCache()

    def ask(self, requests: Sequence[Request]) -> list[Response]:
        """Return one response per request, in order.

        Raises :class:`ResponseError` if the model returns more or fewer responses than it was asked for.
        """
        keys = {request: key_of("", request) for request in dict.fromkeys(requests)}
        cached = self._cache.get(list(keys.values()))
        new = [request for request, key in keys.items() if key not in cached]
        to_score = [request for request in new if isinstance(request, ScoreRequest)]
        to_generate = [request for request in new if isinstance(request, GenerateRequest)]
        responses: dict[Request, Response] = {}
        if to_score:
            scores = check_count(to_score, self.model.score(to_score))
            responses.update(zip(to_score, scores, strict=True))
        if to_generate:
            texts = check_count(to_generate, self.model.generate(to_generate))
            responses.update(zip(to_generate, texts, strict=True))
        responses = {one: within_size(one, numbers_only(response)) for one, response in responses.items()}
        self.asked += len(requests)
        self.answered += len(new)
        self._cache.put(
            {keys[one]: response for one, response in responses.items() if not isinstance(response, Failed)}
        )
        responses |= {one: cached[key] for one, key in keys.items() if key in cached}
        return [responses[request] for request in requests]


# Not a format for others: the file is this process's own, and nobody else can open it. A record's own way
# to be pickled takes twice the time.
def _written(response: Response) -> bytes:
    return pickle.dumps((type(response), values_of(response)))


def _read(written: bytes) -> Response:
    kind, values = pickle.loads(written)
    response: Response = record_of(kind, values)
    return response
