"""Spot check of a served model: a few stored questions are asked again and the responses compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_kbrel.errors import ModelError, StoreError
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.cache.store import Answer, Store, key_of
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
# The questions are chosen among this many responses, which stand in the order of a hash.
_AMONG = 2000
# Prompts that begin alike are of one kind: they share an instruction.
_BEGINNING = 24


@record
class Question:
    """A stored request with its response."""

    request: Request
    answer: Answer


def choose_questions(store: Store, digest: str, count: int = COUNT) -> tuple[Question, ...]:
    """Return ``count`` stored questions of a journal: of different kinds, and with different responses.

    Fewer are returned if there are no more. The same responses give the same choice.

    Raises :class:`StoreError` for a damaged row.
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
            request=_request(store, digest, key, request), answer=store.decode(key, text, checksum)
        )
        kinds.setdefault(_kind(question.request), []).append(question)
    chosen: list[Question] = []
    for only_new in (True, False):
        # In turns: first of each kind, then the second of each.
        waiting = [list(kind) for kind in kinds.values()]
        while any(waiting) and len(chosen) < count:
            for kind in waiting:
                contents = {_content(one.answer) for one in chosen}
                eligible = [
                    one
                    for one in kind
                    if one not in chosen and not (only_new and _content(one.answer) in contents)
                ]
                kind[:] = eligible[1:]
                chosen += eligible[:1]
    return tuple(chosen[:count])


def find_difference(model: Model, questions: Sequence[Question]) -> str:
    """Ask a model stored questions; return in words the first response that differs, or ``""``.

    Raises :class:`ModelError` if there is no response to compare with.
    """
    responses = _responses(model, [question.request for question in questions])
    for question, response in zip(questions, responses, strict=True):
        if isinstance(response, Failed):
            raise ModelError(
                f"{model.describe().spec}: a stored question asked again got no answer: {response.error}"
            )
        if not _same(question.answer, response):
            then, now = _content(question.answer), _content(response)
            return f"asked again, the server said {now!r:.80}, and then {then!r:.80}"
    return ""


def _responses(model: Model, requests: Sequence[Request]) -> list[Response]:
    responses: dict[int, Response] = {}
    to_generate = [(n, one) for n, one in enumerate(requests) if isinstance(one, GenerateRequest)]
    to_score = [(n, one) for n, one in enumerate(requests) if isinstance(one, ScoreRequest)]
    if to_generate:
        texts = model.generate([one for _, one in to_generate])
        responses |= zip((n for n, _ in to_generate), texts, strict=True)
    if to_score:
        responses |= zip((n for n, _ in to_score), model.score([one for _, one in to_score]), strict=True)
    return [responses[n] for n in range(len(requests))]


def _same(then: Answer, now: Answer) -> bool:
    if isinstance(then, Scored) and isinstance(now, Scored):
        pairs = zip(then.probabilities, now.probabilities, strict=False)
        return then.token_ids == now.token_ids and all(abs(a - b) <= TOLERANCE for a, b in pairs)
    return isinstance(then, Generated) and isinstance(now, Generated) and then.text == now.text


def _kind(request: Request) -> object:
    if isinstance(request, ScoreRequest):
        return "score", request.prompt[:_BEGINNING]
    return request.max_new_tokens, request.stop, request.num_beams, request.steps, request.prompt[:_BEGINNING]


def _content(answer: Answer) -> object:
    return answer.text if isinstance(answer, Generated) else answer.probabilities


def _request(store: Store, digest: str, key: bytes, text: str | None) -> Request:
    try:
        kind, data = parse(text or "")
        request: Request = (
            from_wire(ScoreRequest, data) if kind == "ScoreRequest" else from_wire(GenerateRequest, data)
        )
        if key_of(digest, request) != key.hex():
            raise ValueError("it belongs to another answer")
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"{store.path}: the question {key.hex()[:12]} is broken: {error}; delete {store.path} (its "
            "answers are then asked for anew), or give another folder with --kb-use-cache"
        ) from None
    return request
