"""Journals: responses of a served model, stored as long as a run is unfinished, and their spot check.

What a server serves under a name may change, so its responses must not serve later runs. A killed run does go
on where it stopped, after a spot check: some of its requests are sent again and the responses compared.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_kbrel.errors import BudgetError, ModelError, StoreError
from pytest_kbrel.models.base import Model, ServedModel, responses_of
from pytest_kbrel.models.cache.store import (
    Answer,
    Lock,
    Store,
    chunks,
    digest_of,
    is_held,
    key_of,
)
from pytest_kbrel.records import (
    Failed,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
    record,
)
from pytest_kbrel.serialization import from_wire, to_wire
from pytest_kbrel.untrusted import parse

# Seconds after its last response for which an unfinished run can go on.
LIMIT = 24 * 3600
# Seconds that a worker waits for another one to ask some questions again.
_PATIENCE = 600.0
# A run's lock files: the first is held as long as the run goes on, the second by the worker that begins.
LOCKS = ("lock", "check")
RUN = "run-"
_MODEL = "(SELECT id FROM models WHERE digest = ?)"


class Journal:
    """Responses of one served model in one unfinished run.

    New ones are stored under the first of ``digests`` and looked up under all, since the journals of several
    unfinished runs may have been taken over.
    """

    def __init__(self, model: ServedModel, *digests: str) -> None:
        self.digest = digests[0]
        self._digests = digests
        self._model = model
        self._noted: frozenset[str] = frozenset()

    def get(self, store: Store, requests: Mapping[str, Request]) -> dict[str, Answer]:
        """Return the stored responses by the keys of ``requests``, and mark them as used by this run."""
        answers: dict[str, Answer] = {}
        for digest in self._digests:
            keys = {
                key_of(digest, request): key
                for key, request in requests.items()
                if key not in answers
            }
            stored = store.get(list(keys))
            for marks, chunk in chunks(list(stored)):
                store.query(
                    f"UPDATE answers SET used = 1 WHERE key IN ({marks})", *chunk
                )
            answers |= {keys[key]: answer for key, answer in stored.items()}
        return answers

    def put(
        self,
        store: Store,
        answers: Sequence[tuple[str, Answer]],
        requests: Mapping[str, Request],
        failed: int = 0,
    ) -> None:
        """Store responses with their requests, what the server said of itself, and the number of failures."""
        texts = {}
        for key, _ in answers:
            request = requests[key]
            texts[key] = json.dumps([type(request).__name__, to_wire(request)])
        store.put(answers, self._model.describe(), digest=self.digest, requests=texts)
        served = frozenset(self._model.served)
        if served - self._noted:
            rows = store.query(
                "SELECT served FROM journals WHERE digest = ?", self.digest
            )
            before = _parse_served(store, rows[0][0]) if rows else ()
            both = json.dumps(sorted(served.union(before)))
            store.query(
                "UPDATE journals SET served = ? WHERE digest = ?", both, self.digest
            )
            self._noted = served
        if failed:
            store.query(
                "UPDATE journals SET failed = failed + ? WHERE digest = ?",
                failed,
                self.digest,
            )


def begin(store: Store, run: str, model: ServedModel) -> Journal:
    """Return a served model's journal in this run, the same for all workers of the run.

    Journals of unfinished runs are taken over if the server's entry for the model and its responses to a few
    requests, which are sent again, are the same; otherwise they are deleted. One worker checks, others wait.

    Raises :class:`ModelError` if these requests get no response, and as :class:`Store` does.
    """
    lock = Lock(lock_path(store.path.parent, run, "check"))
    if not lock.take(_PATIENCE):
        raise StoreError(
            f"{lock.path}: another worker did not find out in {_PATIENCE:.0f} seconds what is kept"
        )
    try:
        return _Beginning(store, run, model).journal()
    finally:
        lock.free()


class _Row(NamedTuple):
    """A stored journal: what the server said of the model (``entry``) and of itself (``served``)."""

    digest: str
    entry: str
    served: tuple[str, ...]
    started: int
    checked: bool


class _Beginning:
    def __init__(self, store: Store, run: str, model: ServedModel) -> None:
        self._store = store
        self._run = run
        self._model = model
        self._spec = model.describe().spec
        self._who = digest_of(model.describe())
        self._before = frozenset(model.served)

    def journal(self) -> Journal:
        """Return this run's journal: its own, those taken over from earlier runs, or a new one."""
        usable: list[_Row] = []
        reasons: list[str] = []
        for row in self._own() or self._taken_over():
            reason = "" if row.checked else self._check(row)
            if reason:
                reasons.append(reason)
            else:
                usable.append(row)
        for row in usable:
            self._model.served |= set(row.served)
        if not usable:
            return self._new("\n".join(reasons))
        if reasons:
            note = "".join(f"\n{reason}" for reason in reasons)
            self._store.query(
                "UPDATE journals SET note = note || ? WHERE digest = ?",
                note,
                usable[0].digest,
            )
        return Journal(self._model, *(row.digest for row in usable))

    def _check(self, row: _Row) -> str:
        """Open a journal to this run, or delete it and return the reason if its model has changed."""
        ((answers,),) = self._store.query(
            f"SELECT count(*) FROM answers WHERE model = {_MODEL}", row.digest
        )
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(row.started)) + " UTC"
        repeated = 0
        now = self._model.about()
        if row.entry and not now:
            # Raises where the server cannot be asked at all: the answers stay for a run that can ask it.
            self._ask_again(row)
        reason = _differs("of the model", row.entry, now)
        if not reason:
            repeated, reason = self._ask_again(row)
        if reason:
            delete(self._store, row.digest)
            return (
                f"{answers} answers of {self._spec} from the run of {when}, which did not end, are not used, "
                f"and all is asked anew: {reason}"
            )
        note = (
            f"{answers} answers of {self._spec} taken over from the run of {when}, which did not end; "
            f"{repeated} of the questions were asked again, and the answers are the same. --kb-use-cache=off "
            f"asks all anew"
        )
        self._store.transaction(
            (f"UPDATE answers SET used = 0 WHERE model = {_MODEL}", row.digest),
            (
                "UPDATE journals SET checked = 1, failed = 0, note = ? WHERE digest = ?",
                note,
                row.digest,
            ),
        )
        return ""

    def _own(self) -> list[_Row]:
        rows = self._store.query(
            "SELECT digest, entry, served, started, checked FROM journals WHERE run = ? AND who = ? "
            "ORDER BY started DESC, digest",
            self._run,
            self._who,
        )
        return [
            _Row(
                digest,
                entry,
                _parse_served(self._store, served),
                started,
                bool(checked),
            )
            for digest, entry, served, started, checked in rows
        ]

    def _taken_over(self) -> list[_Row]:
        """Make the journals of runs that are over this run's own, and delete those that are too old."""
        rows = self._store.query(
            "SELECT journals.digest, run, ifnull(max(created), 0) FROM journals "
            "LEFT JOIN models ON models.digest = journals.digest "
            "LEFT JOIN answers ON answers.model = models.id "
            "WHERE who = ? GROUP BY journals.digest",
            self._who,
        )
        for digest, run, newest in rows:
            if is_held(lock_path(self._store.path.parent, run)):
                continue
            if newest < time.time() - LIMIT:
                delete(self._store, digest)
            else:
                change = "UPDATE journals SET run = ?, checked = 0 WHERE digest = ? AND run = ?"
                self._store.query(change, self._run, digest, run)
        return self._own()

    def _ask_again(self, row: _Row) -> tuple[int, str]:
        """Ask some stored questions again; return how many, and in words what differs."""
        questions = choose_questions(self._store, row.digest)
        try:
            difference = find_difference(self._model, questions)
        except BudgetError:
            raise
        except ModelError as error:
            raise ModelError(
                f"{error}; so nothing tells whether it still is the model of the run that did not end. Its "
                "answers stay; --kb-use-cache=off asks all anew"
            ) from None
        now = self._model.served - self._before
        if not difference and now and row.served and not now & set(row.served):
            difference = _differs(
                "of itself", ", ".join(row.served), ", ".join(sorted(now))
            )
        return len(questions), difference

    def _new(self, note: str) -> Journal:
        digest = hashlib.sha256(f"{self._who} {uuid.uuid4().hex}".encode()).hexdigest()
        values = (
            digest,
            self._run,
            self._who,
            self._model.about(),
            "[]",
            int(time.time()),
            1,
            0,
            note,
        )
        self._store.query(
            f"INSERT INTO journals VALUES ({','.join('?' * len(values))})", *values
        )
        return Journal(self._model, digest)


def delete(store: Store, digest: str) -> None:
    """Delete a journal with its responses."""
    store.transaction(
        (f"DELETE FROM answers WHERE model = {_MODEL}", digest),
        ("DELETE FROM models WHERE digest = ?", digest),
        ("DELETE FROM journals WHERE digest = ?", digest),
    )


def end(store: Store, run: str) -> None:
    """Delete the responses that a run used or got, with journals that are then empty.

    What it took over and did not need stays for the next run, which checks the model again.
    """
    for (digest,) in store.query(
        "SELECT digest FROM journals WHERE run = ? AND checked", run
    ):
        store.transaction(
            (f"DELETE FROM answers WHERE used AND model = {_MODEL}", digest),
            (
                "DELETE FROM models WHERE digest = ? AND id NOT IN (SELECT model FROM answers)",
                digest,
            ),
            (
                f"DELETE FROM journals WHERE digest = ? AND {_MODEL} IS NULL",
                digest,
                digest,
            ),
            (
                "UPDATE journals SET checked = 0, failed = 0, note = '' WHERE digest = ?",
                digest,
            ),
        )


def lock_path(folder: Path, run: str, what: str = LOCKS[0]) -> Path:
    """Return the path of one of a run's lock files (:data:`LOCKS`)."""
    return folder / f"{RUN}{run}.{what}"


def _parse_served(store: Store, text: object) -> tuple[str, ...]:
    try:
        return tuple(str(entry) for entry in parse(str(text)))
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"{store.path}: what a server said of itself cannot be read: {error}; delete {store.path} (its "
            "answers are then asked for anew)"
        ) from None


def _differs(what: str, then: str, now: str) -> str:
    if then == now:
        return ""
    return f"then the server said {what} {then or 'nothing'!r:.200}, now {now or 'nothing'!r:.200}"


COUNT = 5
# Probabilities of a server differ by this much with what else it is asked at the moment.
TOLERANCE = 0.01
# The questions are chosen among this many responses, which stand in the order of a hash.
_AMONG = 2000
# Prompts that begin alike are of one kind: they share an instruction.
_BEGINNING = 24


@record
class Question:
    """A stored request with its response."""

    request: Request
    answer: Answer


def choose_questions(store: Store, digest: str) -> tuple[Question, ...]:
    """Return some stored questions of a journal: of different kinds, and with different responses.

    Fewer are returned if there are no more. The same responses give the same choice.

    Raises :class:`StoreError` for a damaged row.
    """
    rows = store.query(
        "SELECT key, response, checksum, request FROM answers "
        f"WHERE model = {_MODEL} ORDER BY key LIMIT {_AMONG}",
        digest,
    )
    kinds: dict[object, list[Question]] = {}
    for key, text, checksum, request in rows:
        question = Question(
            request=_request(store, digest, key, request),
            answer=store.decode(key, text, checksum),
        )
        kind = type(question.request), question.request.prompt[:_BEGINNING]
        kinds.setdefault(kind, []).append(question)
    # In turns: the first of each kind, then the second of each; those with another response come first.
    in_turns = [
        one
        for turn in itertools.zip_longest(*kinds.values())
        for one in turn
        if one is not None
    ]
    contents: set[object] = set()
    new: list[Question] = []
    repeated: list[Question] = []
    for one in in_turns:
        (repeated if _content(one.answer) in contents else new).append(one)
        contents.add(_content(one.answer))
    return (*new, *repeated)[:COUNT]


def find_difference(model: Model, questions: Sequence[Question]) -> str:
    """Ask a model stored questions; return in words the first response that differs, or ``""``.

    Raises :class:`ModelError` if there is no response to compare with.
    """
    responses = responses_of(model, [question.request for question in questions])
    for question in questions:
        response = responses[question.request]
        if isinstance(response, Failed):
            raise ModelError(
                f"{model.describe().spec}: a stored question asked again got no answer: {response.error}"
            )
        if not _same(question.answer, response):
            then, now = _content(question.answer), _content(response)
            return f"asked again, the server said {now!r:.80}, and then {then!r:.80}"
    return ""


def _same(then: Answer, now: Answer) -> bool:
    if isinstance(then, Scored) and isinstance(now, Scored):
        pairs = zip(then.probabilities, now.probabilities, strict=False)
        return then.token_ids == now.token_ids and all(
            abs(a - b) <= TOLERANCE for a, b in pairs
        )
    return (
        isinstance(then, Generated)
        and isinstance(now, Generated)
        and then.text == now.text
    )


def _content(answer: Answer) -> object:
    return answer.text if isinstance(answer, Generated) else answer.probabilities


def _request(store: Store, digest: str, key: bytes, text: str | None) -> Request:
    try:
        kind, data = parse(text or "")
        request: Request = (
            from_wire(ScoreRequest, data)
            if kind == "ScoreRequest"
            else from_wire(GenerateRequest, data)
        )
        if key_of(digest, request) != key.hex():
            raise ValueError("it belongs to another answer")
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"{store.path}: the question {key.hex()[:12]} is broken: {error}; {store.way_out}"
        ) from None
    return request
