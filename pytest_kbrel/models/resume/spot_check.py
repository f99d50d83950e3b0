"""A few stored questions asked again: is it still the model that gave the stored answers?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_kbrel.errors import ModelError, StoreError
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.cache.keys import key_of
from pytest_kbrel.models.cache.store import Sound, Store
from pytest_kbrel.records import (
    Failed,
    Generated,
    GenerateRequest,
    Request,
    Response,
    Scored,
    ScoreRequest,
    record,
)
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.untrusted import parse

COUNT = 5
# Probabilities of a server differ by this much with what else it is asked at the moment.
TOLERANCE = 0.01
# Of this many answers the questions are chosen; they stand in the order of a hash.
_AMONG = 2000
# Prompts that begin alike are of one kind: they share an instruction.
_BEGINNING = 24


@record
class Question:
    """A stored request with its answer."""

    request: Request
    answer: Sound


def questions(store: Store, digest: str, count: int = COUNT) -> tuple[Question, ...]:
    """Return ``count`` stored questions of a journal: of different kinds, and with different answers.

    Fewer where there are no more. The same answers give the same choice.

    Raises :class:`StoreError` for a row that is not as it was put.
    """
    rows: list[Any] = store.query(
        (
            "SELECT key, response, checksum, request FROM answers "
            "WHERE model = (SELECT id FROM models WHERE digest = ?) ORDER BY key LIMIT ?",
            (digest, _AMONG),
        )
    )
    kinds: dict[object, list[Question]] = {}
    for key, text, checksum, request in rows:
        question = Question(
            request=_request(store, digest, key, request), answer=store.sound(key, text, checksum)
        )
        kinds.setdefault(_kind(question.request), []).append(question)
    chosen: list[Question] = []
    for fresh in (True, False):
        # In turns: first of each kind, then the second of each.
        waiting = [list(kind) for kind in kinds.values()]
        while any(waiting) and len(chosen) < count:
            for kind in waiting:
                said = {_said(one.answer) for one in chosen}
                able = [
                    one for one in kind if one not in chosen and (not fresh or _said(one.answer) not in said)
                ]
                kind[:] = able[1:]
                chosen += able[:1]
    return tuple(chosen[:count])


def difference(model: Model, asked: Sequence[Question]) -> str:
    """Ask a model stored questions; return in words where an answer differs from the stored one, or ``""``.

    Raises :class:`ModelError` where there is no answer to compare with.
    """
    for question, now in zip(asked, _answers(model, [one.request for one in asked]), strict=True):
        if isinstance(now, Failed):
            raise ModelError(
                f"{model.describe().spec}: a stored question asked again got no answer: {now.error}"
            )
        if not _same(question.answer, now):
            then, said = _said(question.answer), _said(now)
            return f"asked again, the server said {said!r:.80}, and then {then!r:.80}"
    return ""


def _answers(model: Model, requests: Sequence[Request]) -> list[Response]:
    found: dict[int, Response] = {}
    writing = [(n, one) for n, one in enumerate(requests) if isinstance(one, GenerateRequest)]
    scoring = [(n, one) for n, one in enumerate(requests) if isinstance(one, ScoreRequest)]
    if writing:
        found |= zip((n for n, _ in writing), model.generate([one for _, one in writing]), strict=True)
    if scoring:
        found |= zip((n for n, _ in scoring), model.score([one for _, one in scoring]), strict=True)
    return [found[n] for n in range(len(requests))]


def _same(then: Sound, now: Sound) -> bool:
    if isinstance(then, Scored) and isinstance(now, Scored):
        pairs = zip(then.probabilities, now.probabilities, strict=False)
        return then.token_ids == now.token_ids and all(abs(a - b) <= TOLERANCE for a, b in pairs)
    return isinstance(then, Generated) and isinstance(now, Generated) and then.text == now.text


def _kind(request: Request) -> object:
    if isinstance(request, ScoreRequest):
        return "score", request.prompt[:_BEGINNING]
    return request.max_new_tokens, request.stop, request.num_beams, request.steps, request.prompt[:_BEGINNING]


def _said(answer: Sound) -> object:
    return answer.text if isinstance(answer, Generated) else answer.probabilities


def _request(store: Store, digest: str, key: bytes, text: str | None) -> Request:
    try:
        kind, data = parse(text or "")
        found: Request = (
            from_wire(ScoreRequest, data) if kind == "ScoreRequest" else from_wire(GenerateRequest, data)
        )
        if key_of(digest, found) != key.hex():
            raise ValueError("it belongs to another answer")
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"{store.path}: the question {key.hex()[:12]} is broken: {error}; delete {store.path} (its "
            "answers are then asked for anew), or give another folder with --kb-use-cache"
        ) from None
    return found
