"""``responses.jsonl``: one exchange with the model a line, so that a run can be decided again without it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
from pytest_kbrel.reports.files import replacing
from pytest_kbrel.wire import from_wire, to_wire

_REQUESTS: dict[str, type[Request]] = {"score": ScoreRequest, "generate": GenerateRequest}
_RESPONSES: dict[str, type[Response]] = {"scored": Scored, "generated": Generated, "failed": Failed}
_KINDS = {kind: tag for tag, kind in (*_REQUESTS.items(), *_RESPONSES.items())}


def to_line(exchange: Exchange) -> bytes:
    """Return the line of an exchange, with its newline."""
    ask = exchange.ask
    wire = {
        "case": exchange.case,
        "fact": ask.fact_id,
        "role": ask.role,
        **({"to": ask.to} if ask.to else {}),
        "request": {"kind": _KINDS[type(ask.request)], **to_wire(ask.request)},
        "response": {"kind": _KINDS[type(exchange.response)], **to_wire(exchange.response)},
    }
    # ASCII keeps every string a tokenizer makes, lone surrogates too, and has no line break but the last.
    return json.dumps(wire, allow_nan=False).encode("ascii") + b"\n"


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


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the wire form of an exchange: whose it is, and that request and response are of known kinds.

    Raises ``ValueError``; what request and response hold is not looked at.
    """
    data = _parse(line)
    _kind(data, "request", _REQUESTS)
    _kind(data, "response", _RESPONSES)
    return data


def _parse(line: bytes) -> dict[str, Any]:
    data = json.loads(line)
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
        for at, line in enumerate(stream, start=1):
            try:
                exchange = from_line(line)
            except (ValueError, RecursionError) as error:
                raise ResponseError(f"{path}:{at}: is no recorded response: {error}") from None
            yield exchange


class ResponseSpool:
    """A worker's own file of exchanges, each on disk as soon as it is appended.

    A spool belongs to one worker of one session: start each session in an empty directory, for the file is
    only ever appended to.
    """

    def __init__(self, path: Path) -> None:
        """Name the file; it and its directory are made by the first append."""
        self.path = path

    def append(self, exchanges: Iterable[Exchange]) -> None:
        """Write exchanges, in order. The file is closed between appends: no killed worker holds any back."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            stream.writelines(map(to_line, exchanges))


@dataclass(frozen=True, slots=True)
class Joined:
    """What a join wrote: ``torn`` are the spools whose last line a killed worker left unfinished."""

    exchanges: int
    torn: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Neighbouring lines of one case in one spool."""

    spool: Path
    start: int
    end: int


def join_spools(spools: Sequence[Path], output: Path, order: Sequence[str]) -> Joined:
    """Merge workers' spools into one file: cases as in ``order``, each case's exchanges as they were made.

    Cases that ``order`` lacks follow by name. An exchange recorded twice, because its case ran again, is kept
    once, with the later response. A missing spool is that of a worker that had nothing to do. A torn last
    line is left out and reported; a line broken elsewhere is a ``ResponseError``. At most one case is
    in memory.
    """
    index: dict[str, list[_Stretch]] = {}
    torn: list[Path] = []
    for spool in spools:
        if spool.exists() and not _index(spool, index):
            torn.append(spool)
    rank = {case: at for at, case in enumerate(order)}
    written = 0
    with replacing(output) as stream:
        for case in sorted(index, key=lambda name: (rank.get(name, len(rank)), name)):
            lines = _case_lines(index[case])
            stream.writelines(lines)
            written += len(lines)
    return Joined(exchanges=written, torn=tuple(torn))


def _index(spool: Path, index: dict[str, list[_Stretch]]) -> bool:
    """Add where each case's lines are; return whether the last line was whole."""
    with spool.open("rb") as stream:
        at, current, start = 0, "", 0
        for line_number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                _close(index, current, _Stretch(spool, start, at))
                return False
            try:
                case = _parse(line)["case"]
            except (ValueError, RecursionError) as error:
                raise ResponseError(f"{spool}:{line_number}: is no recorded response: {error}") from None
            if case != current:
                _close(index, current, _Stretch(spool, start, at))
                current, start = case, at
            at += len(line)
        _close(index, current, _Stretch(spool, start, at))
    return True


def _close(index: dict[str, list[_Stretch]], case: str, stretch: _Stretch) -> None:
    if stretch.end > stretch.start:
        index.setdefault(case, []).append(stretch)


def _case_lines(stretches: Iterable[_Stretch]) -> list[bytes]:
    latest: dict[bytes, bytes] = {}
    for stretch in stretches:
        for line in _lines(stretch):
            data = _parse(line)
            place = json.dumps([data["fact"], data["role"], data.get("to"), data.get("request")]).encode(
                "ascii"
            )
            key = hashlib.blake2b(place, digest_size=16).digest()
            latest[key] = line
    return list(latest.values())


def _lines(stretch: _Stretch) -> Iterator[bytes]:
    stream: BinaryIO
    with stretch.spool.open("rb") as stream:
        stream.seek(stretch.start)
        while stream.tell() < stretch.end:
            yield stream.readline()
