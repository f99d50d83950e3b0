"""Journals: responses of a served model, stored as long as a run is unfinished, and their spot check.

What a server serves under a name may change, so its responses must not serve later runs. A killed run does go
on where it stopped, after a spot check: some of its requests are sent again and the responses compared.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import operator
import sqlite3
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from pytest_kbrel.errors import BudgetError, ModelError, StoreError
from pytest_kbrel.models.base import Model, ServedModel, responses_of
from pytest_kbrel.models.cache.store import (
    FILE,
    MODEL,
    Answer,
    Store,
    chunks,
    digest_of,
    make_folder,
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
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.store.database import Lock, is_held, network_of
from pytest_kbrel.untrusted import parse

T = TypeVar("T")
# Seconds after its last response for which an unfinished run can go on.
LIMIT = 24 * 3600
# Seconds that a worker waits for another one to ask some questions again, and a run for one that looks whether
# it is alive.
_PATIENCE, _SWEEP = 600.0, 5.0
_RUN = "run-"


class Journal:
    """Responses of one served model in one unfinished run; in the store they belong to its ``digest``."""

    def __init__(self, store: Store, digest: str, model: ServedModel) -> None:
        self.digest = digest
        self._store = store
        self._model = model
        self._noted: frozenset[str] = frozenset()

    def use(self, keys: Sequence[str]) -> None:
        """Note that this run used stored responses."""
        for marks, chunk in chunks(keys):
            self._store.rows(
                f"UPDATE answers SET used = 1 WHERE key IN ({marks})", *chunk
            )

    def note(self, failed: int) -> None:
        """Note that requests ``failed``, and what the server says of itself."""
        if failed:
            self._store.rows(
                "UPDATE journals SET failed = failed + ? WHERE digest = ?",
                failed,
                self.digest,
            )
        if self._model.served - self._noted:
            ((before,),) = self._store.rows(
                "SELECT served FROM journals WHERE digest = ?", self.digest
            ) or [("[]",)]
            self._noted = frozenset({*self._model.served, *_served_in(before)})
            self._store.rows(
                "UPDATE journals SET served = ? WHERE digest = ?",
                json.dumps(sorted(self._noted)),
                self.digest,
            )


def begin(store: Store, run: str, model: ServedModel) -> Journal:
    """Return a served model's journal in this run, the same for all workers of the run.

    It takes over the journals of unfinished runs if the server's entry for the model and its responses to a few
    requests, which are sent again, are the same; otherwise they are deleted. One worker checks, others wait.

    Raises :class:`ModelError` if these requests get no response, and as :class:`Store` does.
    """
    lock = Lock(lock_path(store.path.parent, run, "check"))
    if not lock.take(_PATIENCE):
        raise StoreError(
            f"{lock.path}: another worker did not find out in {_PATIENCE:.0f} seconds what is kept"
        )
    try:
        return _begun(store, run, model)
    finally:
        lock.free()


class _Row(NamedTuple):
    """A stored journal: what the server said of the model (``entry``) and of itself (``served``)."""

    digest: str
    run: str
    entry: str
    served: str
    started: int
    answers: int
    newest: int


def _begun(store: Store, run: str, model: ServedModel) -> Journal:
    who = digest_of(model.describe())
    rows = [
        _Row(*row)
        for row in store.rows(
            "SELECT journals.digest, run, entry, served, started, count(key), ifnull(max(created), 0) "
            "FROM journals LEFT JOIN models ON models.digest = journals.digest "
            "LEFT JOIN answers ON answers.model = models.id "
            "WHERE who = ? GROUP BY journals.digest ORDER BY started DESC, journals.digest",
            who,
        )
    ]
    for row in rows:
        if row.run == run:
            model.served |= _served_in(row.served)
            return Journal(store, row.digest, model)
    notes: list[str] = []
    usable: list[_Row] = []
    for row in rows:
        if is_held(lock_path(store.path.parent, row.run)):
            continue
        is_late = row.newest < time.time() - LIMIT
        reason, note = ("", "") if is_late else _check(store, row, model)
        if is_late or reason:
            with store.writing() as file:
                _delete(file, row.digest)
        else:
            usable.append(row)
        notes += filter(None, [note])
    note = "\n".join(notes)
    if not usable:
        digest = hashlib.sha256(f"{who} {uuid.uuid4().hex}".encode()).hexdigest()
        started = int(time.time())
        store.rows(
            "INSERT INTO journals (digest, run, who, entry, served, started, checked, failed, note) "
            "VALUES (?, ?, ?, ?, '[]', ?, 1, 0, ?)",
            *(digest, run, who, model.about(), started, note),
        )
        return Journal(store, digest, model)
    first, *others = (row.digest for row in usable)
    # All at once: a process that is killed here has taken over all or nothing.
    with store.writing() as file:
        for other in others:
            file.execute(
                f"UPDATE answers SET model = {MODEL} WHERE model = {MODEL}",
                (first, other),
            )
            _delete(file, other)
        file.execute(f"UPDATE answers SET used = 0 WHERE model = {MODEL}", (first,))
        file.execute(
            "UPDATE journals SET run = ?, failed = 0, note = ? WHERE digest = ?",
            (run, note, first),
        )
    model.served |= set().union(*(_served_in(row.served) for row in usable))
    return Journal(store, first, model)


def _check(store: Store, row: _Row, model: ServedModel) -> tuple[str, str]:
    """Return why a journal's model is not the one that answers now, empty if it is, and a note of it."""
    spec, before, now = model.describe().spec, frozenset(model.served), model.about()
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(row.started)) + " UTC"
    repeated = 0
    reason = _differs("of the model", row.entry, now)
    if not reason or not now:
        questions = choose_questions(store, row.digest)
        repeated = len(questions)
        try:
            reason = reason or find_difference(model, questions)
        except BudgetError:
            raise
        except ModelError as error:
            # The server cannot be asked at all: the answers stay for a run that can ask it.
            raise ModelError(
                f"{error}; so nothing tells whether it still is the model of the run that did not end. Its "
                "answers stay; --kb-use-cache=off asks all anew"
            ) from None
    said, says = _served_in(row.served), model.served - before
    if not reason and says and said and not says & said:
        reason = _differs("of itself", ", ".join(sorted(said)), ", ".join(sorted(says)))
    if reason:
        return reason, (
            f"{row.answers} answers of {spec} from the run of {when}, which did not end, are not used, "
            f"and all is asked anew: {reason}"
        )
    return "", (
        f"{row.answers} answers of {spec} taken over from the run of {when}, which did not end; "
        f"{repeated} of the questions were asked again, and the answers are the same. --kb-use-cache=off "
        "asks all anew"
    )


def _delete(file: sqlite3.Connection, digest: str) -> None:
    """Delete a journal with its responses."""
    file.execute(f"DELETE FROM answers WHERE model = {MODEL}", (digest,))
    for table in ("models", "journals"):
        file.execute(f"DELETE FROM {table} WHERE digest = ?", (digest,))


def end(store: Store, run: str) -> None:
    """Delete the responses that a run used or got, with journals that are then empty.

    What it took over and did not need stays for the next run, which checks the model again.
    """
    with store.writing() as file:
        digests = file.execute("SELECT digest FROM journals WHERE run = ?", (run,))
        for digest in digests.fetchall():
            file.execute(f"DELETE FROM answers WHERE used AND model = {MODEL}", digest)
            left = f"SELECT 1 FROM answers WHERE model = {MODEL} LIMIT 1"
            if not file.execute(left, digest).fetchall():
                _delete(file, *digest)
            file.execute(
                "UPDATE journals SET failed = 0, note = '' WHERE digest = ?", digest
            )


def lock_path(folder: Path, run: str, what: str = "lock") -> Path:
    """Return the path of a lock file: ``lock`` is held as long as the run goes on, ``check`` while it begins."""
    return folder / f"{_RUN}{run}.{what}"


def _served_in(text: str) -> set[str]:
    return set(map(str, parse(text)))


def _differs(what: str, then: str, now: str) -> str:
    if then == now:
        return ""
    return f"then the server said {what} {then or 'nothing'!r:.200}, now {now or 'nothing'!r:.200}"


@record
class JournalSummary:
    """Contents of a run's journals.

    ``notes`` say where it went on; ``unused`` of the ``answers`` were taken over and not needed; ``failed``
    requests got no answer.
    """

    notes: tuple[str, ...] = ()
    answers: int = 0
    failed: int = 0
    unused: int = 0


class RunLock:
    """Lock in ``folder`` that a run against served models holds; its journals are deleted when it ends.

    If the store cannot be used, nothing happens: the processes that ask the models say so.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder
        self._run = run
        self._lock: Lock | None = None

    def prepare(self) -> None:
        """Create the folder, which says to all processes of this run that a model will be asked."""
        if not network_of(self._folder):
            with contextlib.suppress(OSError):
                make_folder(self._folder)

    def acquire(self) -> None:
        """Take the lock, once :meth:`prepare` was called, and delete the lock files of killed runs."""
        with contextlib.suppress(StoreError, OSError):
            if (
                self._lock is not None
                or not self._folder.is_dir()
                or network_of(self._folder)
            ):
                return
            lock = Lock(lock_path(self._folder, self._run))
            # A run that sweeps may look at it just now, or have deleted its file.
            while lock.take(_SWEEP) and not lock.path.exists():
                lock.free()
            self._lock = lock
            _sweep(self._folder, self._run)

    def summary(self) -> JournalSummary:
        """Return what is in the journals of this run."""
        return self._in_store(_summary) or JournalSummary()

    def release(self, *, ended: bool) -> None:
        """Release the lock, and delete what a run that has ``ended`` used; else all stays for the next."""
        if ended:
            self._in_store(end)
        if self._lock is not None:
            self._lock.free()
            _unlink(self._folder, self._run)
        self._lock = None

    def _in_store(self, use: Callable[[Store, str], T]) -> T | None:
        """Return what ``use`` makes of the store and the run, ``None`` where there is no store to use."""
        if (self._folder / FILE).is_file():
            with (
                contextlib.suppress(StoreError),
                contextlib.closing(Store(self._folder)) as store,
            ):
                return use(store, self._run)
        return None


def _summary(store: Store, run: str) -> JournalSummary:
    rows = store.rows(
        "SELECT note, failed, count(answers.key), ifnull(sum(NOT used), 0) "
        "FROM journals LEFT JOIN models ON models.digest = journals.digest "
        "LEFT JOIN answers ON answers.model = models.id "
        "WHERE run = ? GROUP BY journals.digest ORDER BY started",
        run,
    )
    if not rows:
        return JournalSummary()
    notes, *counts = zip(*rows, strict=True)
    failed, answers, unused = map(sum, counts)
    told = tuple(filter(None, notes))
    return JournalSummary(notes=told, answers=answers, failed=failed, unused=unused)


def _sweep(folder: Path, run: str) -> None:
    """Delete the files of all runs but ``run`` that no living process holds."""
    runs = {
        path.name.removeprefix(_RUN).partition(".")[0]
        for path in folder.glob(f"{_RUN}*")
    }
    for dead in runs - {run}:
        lock = Lock(lock_path(folder, dead))
        if lock.take():
            # While it is held: a process that waits for it then sees that the file is gone.
            _unlink(folder, dead)
            lock.free()
            _unlink(folder, dead)


def _unlink(folder: Path, run: str) -> None:
    for path in folder.glob(f"{_RUN}{run}.*"):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


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


def choose_questions(store: Store, digest: str) -> list[Question]:
    """Return some stored questions of a journal: of different kinds, and with different responses.

    Fewer are returned if there are no more. The same responses give the same choice.

    Raises :class:`StoreError` for a damaged row.
    """
    rows = store.rows(
        "SELECT key, response, checksum, request FROM answers "
        f"WHERE model = {MODEL} ORDER BY key LIMIT {_AMONG}",
        digest,
    )
    of_kind, contents, ranked = Counter[object](), set[object](), []
    for key, text, checksum, request in rows:
        question = Question(
            request=_request(store, key, request),
            answer=store.decode(key, text, checksum),
        )
        content = _content(question.answer)
        kind = type(question.request), question.request.prompt[:_BEGINNING]
        # The first of each kind, then the second of each; those with another response come first.
        ranked.append(((content in contents, of_kind[kind]), question))
        of_kind[kind] += 1
        contents.add(content)
    ranked.sort(key=operator.itemgetter(0))
    return [question for _, question in ranked[:COUNT]]


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
    return _content(then) == _content(now)


def _content(answer: Answer) -> object:
    return answer.text if isinstance(answer, Generated) else answer.probabilities


def _request(store: Store, key: bytes, text: str | None) -> Request:
    try:
        kind, data = parse(text or "")
        scores = kind == "ScoreRequest"
        form: type[Request] = ScoreRequest if scores else GenerateRequest
        request: Request = from_wire(form, data)
    except (ValueError, TypeError, KeyError) as error:
        raise store.error(
            f"{store.path}: the question {key.hex()[:12]} is broken: {error}"
        ) from None
    return request
