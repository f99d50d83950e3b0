"""``responses.jsonl``: one exchange with the model a line, so that a run can be decided again without it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.records import (
    Ask,
    Exchange,
    Failed,
    Generated,
    GenerateRequest,
    Request,
    Response,
    Scored,
    ScoreRequest,
)
from pytest_kbrel.serialization import encoder, fields_of, from_wire, values_of
from pytest_kbrel.untrusted import lines, parse

REQUESTS: Mapping[str, type[Request]] = {
    "score": ScoreRequest,
    "generate": GenerateRequest,
}
_RESPONSES: dict[str, type[Response]] = {
    "scored": Scored,
    "generated": Generated,
    "failed": Failed,
}
# ASCII keeps every string a tokenizer makes, lone surrogates too, and has no line break but the last.
_written = encoder()
_encoded = json.JSONEncoder(default=str).encode
_KINDS = {kind: tag for tag, kind in (*REQUESTS.items(), *_RESPONSES.items())}
# In a line as it is written here, a quotation mark without a backslash ends or begins a string: this stands in
# no text.
_ANSWER = b', "response": {'


def to_line(exchange: Exchange) -> bytes:
    """Return the line of an exchange, with its newline."""
    ask = exchange.ask
    wire = {
        "case": exchange.case,
        "fact": ask.fact_id,
        "role": ask.role,
        **({"to": ask.to} if ask.to else {}),
        "request": {"kind": _KINDS[type(ask.request)], **fields_of(ask.request)},
        "response": {
            "kind": _KINDS[type(exchange.response)],
            **fields_of(exchange.response),
        },
    }
    return _written(wire).encode("ascii") + b"\n"


def from_line(line: bytes) -> Exchange:
    """Return the exchange a line holds; raises ``ValueError`` saying what is wrong with it."""
    data = _parse(line)
    ask = Ask(
        fact_id=data["fact"],
        role=data["role"],
        request=_part(data, "request", REQUESTS),
        to=data.get("to", ""),
    )
    response = _part(data, "response", _RESPONSES)
    return Exchange(case=data["case"], ask=ask, response=response)


def response_in(line: bytes) -> Response:
    """Return the response of the exchange a line holds; raises ``ValueError`` where it is none."""
    response: Response = _part(_parse(line), "response", _RESPONSES)
    return response


def _part(data: dict[str, Any], key: str, kinds: Mapping[str, Any]) -> Any:
    return from_wire(_kind(data, key, kinds), data[key])


def asked_digest(line: bytes) -> bytes:
    """Return a digest of all but the response of a line as :func:`to_line` writes it."""
    return hashlib.blake2b(line.partition(_ANSWER)[0], digest_size=16).digest()


def request_key(to: str, request: Request) -> bytes:
    """Return the key of a request: equal requests to one model have one key, whichever case asks."""
    return _key(to, _KINDS[type(request)], values_of(request))


def key_of_line(data: Mapping[str, Any]) -> bytes:
    """Return the key of the request in a line that :func:`parse_line` read."""
    request = data["request"]
    # A field that a later version brings is absent in older records, which had its default.
    values = [
        request.get(name, default) for name, default in _defaults(request["kind"])
    ]
    return _key(data.get("to", ""), request["kind"], values)


@functools.cache
def _defaults(kind: str) -> list[tuple[str, Any]]:
    return [(field.name, field.default) for field in dataclasses.fields(REQUESTS[kind])]


def _key(to: str, kind: str, values: Iterable[object]) -> bytes:
    text = _encoded([to, kind, *values])
    return hashlib.blake2b(text.encode("ascii"), digest_size=16).digest()


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the wire form of an exchange: whose it is, and that request and response are of known kinds.

    Raises ``ValueError``; what request and response hold is not looked at.
    """
    data = _parse(line)
    _kind(data, "request", REQUESTS)
    _kind(data, "response", _RESPONSES)
    return data


def _parse(line: bytes) -> dict[str, Any]:
    data = parse(line)
    if not isinstance(data, dict):
        raise ValueError(f"an object is needed, found {type(data).__name__}")
    for key in ("case", "fact", "role"):
        if not isinstance(data.get(key), str):
            raise ValueError(f"{key!r} must be a string, found {data.get(key)!r:.80}")
    if not isinstance(data.get("to", ""), str):
        raise ValueError(
            f"'to' must be a string where there is one, found {data['to']!r:.80}"
        )
    return data


def _kind(data: dict[str, Any], key: str, kinds: Mapping[str, Any]) -> Any:
    part = data.get(key)
    tag = part.get("kind") if isinstance(part, dict) else None
    if not isinstance(tag, str) or tag not in kinds:
        raise ValueError(
            f"{key!r} must be an object whose kind is one of {', '.join(kinds)}, found {tag!r:.80}"
        )
    return kinds[tag]


def numbered(stream: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers; one that is too long is a ``ResponseError``."""
    number = 0
    try:
        for number, line in enumerate(lines(stream), start=1):
            yield number, line
    except ValueError as error:
        raise ResponseError(
            f"{path}:{number + 1}: is no recorded response: {error}"
        ) from None
