"""``responses.jsonl``: one exchange with the model a line, so that a run can be decided again without it."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.records import (
    BASELINE,
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
from pytest_kbrel.reports import replacing
from pytest_kbrel.serialization import encoder, fields_of, from_wire
from pytest_kbrel.untrusted import lines, parse

_REQUESTS: dict[str, type[Request]] = {"score": ScoreRequest, "generate": GenerateRequest}
_RESPONSES: dict[str, type[Response]] = {"scored": Scored, "generated": Generated, "failed": Failed}
# ASCII keeps every string a tokenizer makes, lone surrogates too, and has no line break but the last.
_written = encoder()
_KINDS = {kind: tag for tag, kind in (*_REQUESTS.items(), *_RESPONSES.items())}


def to_line(exchange: Exchange) -> bytes:
    """Return the line of an exchange, with its newline."""
    ask = exchange.ask
    wire = {
        "case": exchange.case,
        "fact": ask.fact_id,
        "role": ask.role,
        **({"to": ask.to} if ask.to else {}),
        "request": {"kind": _KINDS[type(ask.request)], **fields_of(ask.request)},
        "response": {"kind": _KINDS[type(exchange.response)], **fields_of(exchange.response)},
    }
    return _written(wire).encode("ascii") + b"\n"


def from_line(line: bytes) -> Exchange:
    """Return the exchange a line holds; raises ``ValueError`` saying what is wrong with it."""
    data = _parse(line)
    request = from_wire(_kind(data, "request", _REQUESTS), data["request"])
    response = from_wire(_kind(data, "response", _RESPONSES), data["response"])
    return Exchange(
        case=data["case"],
        ask=Ask(fact_id=data["fact"], role=data["role"], request=request, to=data.get("to", "")),
        response=response,
    )


def response_in(line: bytes) -> Response:
    """Return the response of the exchange a line holds; raises ``ValueError`` as :func:`from_line` does."""
    data = _parse(line)
    response: Response = from_wire(_kind(data, "response", _RESPONSES), data["response"])
    return response


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the wire form of an exchange: whose it is, and that request and response are of known kinds.

    Raises ``ValueError``; what request and response hold is not looked at.
    """
    data = _parse(line)
    _kind(data, "request", _REQUESTS)
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
        raise ValueError(f"'to' must be a string where there is one, found {data['to']!r:.80}")
    return data


def _kind(data: dict[str, Any], key: str, kinds: dict[str, Any]) -> Any:
    part = data.get(key)
    tag = part.get("kind") if isinstance(part, dict) else None
    if not isinstance(tag, str) or tag not in kinds:
        raise ValueError(
            f"{key!r} must be an object whose kind is one of {', '.join(kinds)}, found {tag!r:.80}"
        )
    return kinds[tag]


def read_responses(path: Path) -> Iterator[Exchange]:
    """Yield the exchanges of a file, one line at a time; a broken line is a ``ResponseError``."""
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        raise ResponseError(f"{path}: there is no such file of recorded responses") from None
    except OSError as error:
        raise ResponseError(f"{path}: cannot be read: {error.strerror}") from None
    with stream:
        for at, line in numbered(stream, path):
            try:
                exchange = from_line(line)
            except ValueError as error:
                raise ResponseError(f"{path}:{at}: is no recorded response: {error}") from None
            yield exchange


def numbered(stream: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers; one that is too long is a ``ResponseError``."""
    number = 0
    try:
        for number, line in enumerate(lines(stream), start=1):
            yield number, line
    except ValueError as error:
        raise ResponseError(f"{path}:{number + 1}: is no recorded response: {error}") from None


def append_exchanges(path: Path, exchanges: Iterable[Exchange]) -> None:
    """Append exchanges, in order, to a worker's own spool file, which begins in an empty folder.

    The file is closed between calls: no killed worker holds any back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        stream.writelines(map(to_line, exchanges))


@dataclass(frozen=True, slots=True)
class Joined:
    """Result of a join: ``torn`` are the spools whose last line a killed worker left unfinished.

    ``counts`` is how many lines there were of each case by name, repeated ones too; those that say what the
    model it is compared with answered do not count.
    """

    exchanges: int
    torn: tuple[Path, ...]
    counts: tuple[tuple[str, int], ...] = ()


def join_spools(spools: Sequence[Path], output: Path, order: Sequence[str]) -> Joined:
    """Merge workers' spools into one file: cases as in ``order``, each case's exchanges as they were made.

    Cases that ``order`` lacks follow by name. An exchange recorded twice, because its case ran again, is kept
    once, with the later response. A missing spool is that of a worker that had nothing to do. A torn last
    line is left out and reported; a line broken elsewhere is a ``ResponseError``. Where which line stands
    is written down in a temporary file: memory does not grow with the spools.
    """
    present = [spool for spool in spools if spool.exists()]
    torn: list[Path] = []
    counts: Counter[str] = Counter()
    # No name: a temporary file that SQLite removes itself.
    with closing(sqlite3.connect("", isolation_level=None)) as index, ExitStack() as stack:
        try:
            cases = _indexed(index, present, torn, counts)
            streams = [stack.enter_context(spool.open("rb")) for spool in present]
            rank = {case: at for at, case in enumerate(order)}
            written = 0
            with replacing(output) as stream:
                for case in sorted(cases, key=lambda name: (rank.get(name, len(rank)), name)):
                    for spool, at in index.execute(
                        "SELECT spool, at FROM places WHERE number = ? ORDER BY made", (cases[case],)
                    ):
                        streams[spool].seek(at)
                        stream.write(streams[spool].readline())
                        written += 1
        except sqlite3.Error as error:
            raise ResponseError(f"{output}: the spools cannot be joined: {error}") from None
    return Joined(exchanges=written, torn=tuple(torn), counts=tuple(counts.items()))


def _indexed(
    index: sqlite3.Connection, spools: Sequence[Path], torn: list[Path], counts: Counter[str]
) -> dict[str, int]:
    """Index the last line of each exchange in SQLite; return the number of each case.

    Torn spools go to ``torn``, how many lines there are of each case to ``counts``.
    """
    cases: dict[str, int] = {}

    def places() -> Iterator[tuple[int, bytes, int, int]]:
        for number, spool in enumerate(spools):
            for at, data in _whole_lines(spool, torn):
                counts[data["case"]] += data.get("to") != BASELINE
                place = json.dumps([data["fact"], data["role"], data.get("to"), data.get("request")])
                key = hashlib.blake2b(place.encode("ascii"), digest_size=16).digest()
                yield cases.setdefault(data["case"], len(cases)), key, number, at

    index.execute(
        "CREATE TABLE places (made INTEGER PRIMARY KEY, number INTEGER, key BLOB, spool INTEGER, at INTEGER, "
        "UNIQUE (number, key))"
    )
    index.execute("BEGIN")
    index.executemany(
        "INSERT INTO places (number, key, spool, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (number, key) DO UPDATE SET spool = excluded.spool, at = excluded.at",
        places(),
    )
    index.execute("COMMIT")
    return cases


def _whole_lines(spool: Path, torn: list[Path]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield where each line begins, and what it holds; a line without its end adds ``spool`` to ``torn``."""
    with spool.open("rb") as stream:
        at = 0
        for line_number, line in numbered(stream, spool):
            if not line.endswith(b"\n"):
                torn.append(spool)
                return
            try:
                yield at, _parse(line)
            except ValueError as error:
                raise ResponseError(f"{spool}:{line_number}: is no recorded response: {error}") from None
            at += len(line)
