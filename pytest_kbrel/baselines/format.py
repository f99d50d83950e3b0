"""File format of blessed runs: ``baseline.json`` and the packed file of outcomes.

``baseline.json`` is readable and diffable: what was blessed, why, and the metrics of every case.
``outcomes-DIGEST.jsonl.xz`` has the outcomes of every fact, for pairing: one line
of JSON a case, column by column, packed with xz. Column by column the same facts, settings and digests stand
next to each other, which makes the file small. The first file holds the second's digest, so two halves of
different runs are never taken for a whole.

A pack, ``NAME.kbrel``, is both in one file of xz: the first in one line, then the lines of the second. So it
has no names of files and no dates but the run's, and the same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any, get_args

from pytest_kbrel.bounds import TOKEN_ID, TOP_K, Bounds, shown
from pytest_kbrel.errors import BaselineError
from pytest_kbrel.records import Json, Label, Outcome, Reply, Table, TopTokens
from pytest_kbrel.untrusted import (
    MIB,
    UNPACKED,
    parse,
    read_bytes,
    read_json,
    short,
    unpack,
)

SCHEMA_VERSION = 2
META = "baseline.json"
PACK = ".kbrel"
ALLOWED = (
    f"a folder that --kb-baseline-update wrote, or a file NAME{PACK} of kbrel pack"
)


def read_meta(path: Path, *, oldest: int = SCHEMA_VERSION) -> Json:
    """Read the readable half of the baseline in ``path``, of a schema version from ``oldest`` to ours.

    ``path`` is a folder or a pack.
    """
    file = path if path.is_file() else path / META
    try:
        meta: Any = None
        if file == path:
            content = unpack(read_bytes(file, UNPACKED), UNPACKED)
            meta = parse(short(content.partition(b"\n")[0]))
        else:
            meta = read_json(file)
    except FileNotFoundError:
        raise BaselineError(f"{path}: has no {META}; allowed: {ALLOWED}") from None
    except (OSError, ValueError) as error:
        raise BaselineError(
            f"{file}: cannot be read: {error}; allowed: {ALLOWED}"
        ) from None
    version = meta.get("schema_version") if isinstance(meta, dict) else None
    if type(version) is not int or "outcomes" not in meta:
        raise BaselineError(f"{file}: is no kbrel baseline; allowed: {ALLOWED}")
    if not oldest <= version <= SCHEMA_VERSION:
        raise BaselineError(
            f"{file}: found schema_version {version}, written by pytest-kbrel {meta.get('kbrel_version')}; "
            f"allowed: {SCHEMA_VERSION}: update pytest-kbrel, or bless again with "
            f"--kb-baseline-update={path.name}"
        )
    document: Json = meta
    return document


def case_key(suite: str, case_id: str) -> str:
    """Return a case's key, the same wherever the suite file lies: its name and the case's id."""
    return f"{PurePath(suite).name}::{case_id}"


def facts_digest(rows: Iterable[Outcome]) -> str:
    """Return one digest of the fact ids of ``rows``, whatever their order."""
    return digest("\n".join(sorted(row.fact_id for row in rows)).encode("utf-8"))


def digest(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


_LABELS: tuple[Label, ...] = get_args(Label)
_LETTERS = {label: label[0] for label in _LABELS}
_WORDS = {letter: label for label, letter in _LETTERS.items()}
# Far above any count of tokens, and so small that sums of squares stay finite.
_LARGEST = 1e15
# A log-probability that would still be a number other than 0: exp(-700).
_THOUSANDTHS = Bounds(0, 700_000)
# What a baseline leaves to the suite, and a report folder keeps.
_TEXTS = ("question", "expected", "rule", "truncated", "cluster")
# The preset's dictionary of 8 MiB takes twice the memory, and one of 2 MiB makes large files a tenth larger.
_FILTERS = [
    {"id": lzma.FILTER_LZMA2, "preset": 6 | lzma.PRESET_EXTREME, "dict_size": 4 * MIB}
]
# A fact takes some 150 bytes; answers of thousands of tokens take tens of thousands.
_A_FACT, _ENVELOPE, _MOST_FACTS = 1 << 16, 1 << 20, 10**8


def dump_tables(tables: Iterable[tuple[str, Table]], *, texts: bool = False) -> bytes:
    """Return the lines of tables, each with its case's key, rows in the order of fact ids.

    ``texts`` keeps questions, expected answers, rules and what was cut short as well. Raises ``ValueError``
    on values that are no numbers.
    """
    return b"".join(_line(key, table, texts) for key, table in tables)


def load_tables(lines: bytes) -> dict[str, Table]:
    """Return the tables that :func:`dump_tables` wrote, by key.

    Raises ``ValueError``, ``KeyError`` or ``TypeError`` for lines that are not of this form.
    """
    tables: dict[str, Table] = {}
    for line in lines.decode("utf-8").splitlines():
        entry = parse(line)
        key = str(entry["case"])
        if key in tables:
            raise ValueError(f"{key} stands there twice")
        tables[key] = _table(entry)
    return tables


def packed(lines: bytes) -> bytes:
    """Return the bytes of the file. The same lines give the same bytes."""
    return lzma.compress(lines, format=lzma.FORMAT_XZ, filters=_FILTERS)


def read_compressed(path: Path, facts: int) -> bytes:
    """Return the lines of a file that says what was found of ``facts`` facts.

    Raises ``ValueError`` where it is cut short, no such file, or far too long for so many facts, and
    ``OSError``.
    """
    if not 0 <= facts <= _MOST_FACTS:
        raise ValueError(
            f"found {shown(facts)} as the number of its facts; allowed: 0 to {_MOST_FACTS:,}"
        )
    return unpack(read_bytes(path, UNPACKED), _ENVELOPE + facts * _A_FACT)


def _line(key: str, table: Table, texts: bool) -> bytes:
    rows = sorted(table.rows, key=lambda row: row.fact_id)
    digests = [row.prompt_digest.split(".") for row in rows]
    entry: Json = {
        "case": key,
        "facts": [row.fact_id for row in rows],
        "labels": "".join(_LETTERS[row.label] for row in rows),
        "answers": [row.answer for row in rows],
        # Part by part: those that are the same for all facts are then written once.
        "asked": _columns(digests) or [row.prompt_digest for row in rows],
        "columns": list(table.columns),
        "values": [
            _once([_shortest(row.values[index]) for row in rows])
            for index in range(len(table.columns))
        ],
    }
    if any(row.top for row in rows):
        entry["top"] = [_packed_top(row.top) for row in rows]
    if texts:
        entry |= {name: _once([getattr(row, name) for row in rows]) for name in _TEXTS}
    if any(row.others for row in rows):
        entry["others"] = [
            [_reply(reply, texts) for reply in row.others] for row in rows
        ]
    # ASCII keeps every string a tokenizer makes, lone surrogates too, and has no line break but the last.
    text = json.dumps(entry, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def _table(entry: Json) -> Table:
    facts, columns = (
        [str(fact) for fact in entry["facts"]],
        tuple(map(str, entry["columns"])),
    )
    n = len(facts)
    values = [
        [float(value) for value in _each(column, n)] for column in entry["values"]
    ]
    if len(values) != len(columns):
        raise ValueError(f"{entry['case']} has values that belong to no column")
    if not all(-_LARGEST <= value <= _LARGEST for column in values for value in column):
        raise ValueError(
            f"{entry['case']} has values that are no numbers from {-_LARGEST:g} to {_LARGEST:g}"
        )
    texts = {name: map(str, _each(entry.get(name, ""), n)) for name in _TEXTS}
    others = _each(entry.get("others") or [()] * n, n)
    cells = {
        **texts,
        "fact_id": facts,
        "label": _each([_WORDS[letter] for letter in entry["labels"]], n),
        "answer": _each([str(answer) for answer in entry["answers"]], n),
        "prompt_digest": _digests(entry["asked"], n),
        "values": zip(*values, strict=True) if values else [()] * n,
        "truncated": map(bool, _each(entry.get("truncated", ""), n)),
        "others": (tuple(map(_read_reply, replies)) for replies in others),
        "top": map(_top, _each(entry.get("top") or [()] * n, n)),
    }
    rows = zip(*cells.values(), strict=True)
    return Table(
        columns=columns,
        rows=tuple(Outcome(**dict(zip(cells, row, strict=True))) for row in rows),
    )


def _reply(reply: Reply, texts: bool) -> list[str | bool]:
    short: list[str | bool] = [_LETTERS[reply.label], reply.answer]
    return [*short, reply.question, reply.rule, reply.truncated] if texts else short


def _read_reply(wire: list[Any]) -> Reply:
    letter, answer, question, rule, truncated = (
        [*wire, "", "", False] if len(wire) == 2 else wire
    )
    return Reply(
        answer=str(answer),
        label=_WORDS[letter],
        question=str(question),
        rule=str(rule),
        truncated=bool(truncated),
    )


def _packed_top(top: Sequence[TopTokens]) -> list[list[list[int]]]:
    """Return at each position the token ids, and the log-probabilities in thousandths with their sign off."""
    return [
        [[token for token, _ in tokens], [round(-1000 * nats) for _, nats in tokens]]
        for tokens in top
    ]


def _top(packed: Any) -> tuple[TopTokens, ...]:
    top = []
    for tokens, thousandths in packed:
        pairs = list(zip(tokens, thousandths, strict=True))
        sound = all(token in TOKEN_ID and nats in _THOUSANDTHS for token, nats in pairs)
        if len(pairs) > TOP_K.most or not sound:
            raise ValueError(
                f"found {shown(packed)} as the most probable tokens of an answer"
            )
        top.append(tuple((token, -of / 1000) for token, of in pairs))
    return tuple(top)


def _columns(parts: Sequence[Sequence[str]]) -> Json | None:
    """Return digests part by part; ``None`` where they have not all the same number of parts."""
    if len({len(part) for part in parts}) != 1:
        return None
    return {"parts": [_once(list(column)) for column in zip(*parts, strict=True)]}


def _digests(digests: Any, n: int) -> list[str]:
    if isinstance(digests, dict):
        columns = [_each(column, n) for column in digests["parts"]]
        return [".".join(map(str, part)) for part in zip(*columns, strict=True)]
    return [str(digest) for digest in _each(digests, n)]


def _once(column: list[Any]) -> Any:
    return (
        column[0]
        if len(column) > 1 and all(value == column[0] for value in column)
        else column
    )


def _each(column: Any, n: int) -> list[Any]:
    values = column if isinstance(column, list) else [column] * n
    if len(values) != n:
        raise ValueError(f"{len(values)} values for {n} facts")
    return values


def _shortest(value: float) -> int | float:
    return int(value) if value.is_integer() else value
