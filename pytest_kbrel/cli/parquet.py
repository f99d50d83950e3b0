"""Recorded responses as Parquet: a row for each exchange with the model, written in groups of rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_kbrel.cli.arguments import refuse_existing, scratch_folder
from pytest_kbrel.errors import KbrelError, MissingExtraError
from pytest_kbrel.records import Exchange
from pytest_kbrel.serialization import fields_of, replace_surrogates

# A group of rows is kept in memory until it is written: at most so many rows, or about so many characters.
GROUP_ROWS = 10_000
GROUP_CHARACTERS = 8_000_000
# The parts of requests and responses that have a column, with their types. The others, such as stop strings
# and the steps of an answer, are for replays only.
_REQUEST = {
    "prompt": "string",
    "continuation": "string",
    "system": "string",
    "max_new_tokens": "int64",
}
_RESPONSE = {
    "text": "string",
    "thought": "string",
    "finish": "string",
    "probability": "double",
    "first_probability": "double",
    "probabilities": "list<double>",
    "token_ids": "list<int64>",
    "prompt_tokens": "int64",
    "prompt_digest": "string",
    "error": "string",
}
_KINDS = {"ScoreRequest": "score", "GenerateRequest": "generate"}
COLUMNS = {
    **dict.fromkeys(("case", "fact", "role", "to", "kind"), "string"),
    **_REQUEST,
    **_RESPONSE,
}


def write_parquet(exchanges: Iterable[Exchange], output: Path, *, force: bool) -> int:
    """Write a row for each exchange; return how many there are.

    What a request or a response of another kind has is null. Memory does not grow with the number of
    exchanges. Raises ``MissingExtraError`` without pyarrow, and ``FileExistsError`` unless ``force``.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "--format parquet") from None
    types = {
        "string": pyarrow.string(),
        "int64": pyarrow.int64(),
        "double": pyarrow.float64(),
        "list<double>": pyarrow.list_(pyarrow.float64()),
        "list<int64>": pyarrow.list_(pyarrow.int64()),
    }
    schema = pyarrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    refuse_existing(output, force=force)
    total = characters = 0
    group: list[dict[str, Any]] = []
    with scratch_folder(output) as scratch:
        path = scratch / output.name
        with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            for exchange in exchanges:
                row = _row(exchange)
                group.append(row)
                total += 1
                characters += sum(
                    len(value)
                    for value in row.values()
                    if isinstance(value, (str, list))
                )
                if len(group) >= GROUP_ROWS or characters >= GROUP_CHARACTERS:
                    writer.write_table(_table(group, schema))
                    group, characters = [], 0
            writer.write_table(_table(group, schema))
        path.replace(output)
    return total


def _table(group: list[dict[str, Any]], schema: Any) -> Any:
    import pyarrow

    try:
        return pyarrow.Table.from_pylist(group, schema=schema)
    except (pyarrow.ArrowException, OverflowError) as error:
        first, last = group[0], group[-1]
        raise KbrelError(
            f"one of the responses from {first['case']} {first['fact']} {first['role']} to {last['case']} "
            f"{last['fact']} {last['role']} holds what Parquet cannot: {error}; allowed: numbers of 64 bits"
        ) from None


def _row(exchange: Exchange) -> dict[str, Any]:
    ask = exchange.ask
    parts = {
        **{
            name: value
            for name, value in fields_of(ask.request).items()
            if name in _REQUEST
        },
        **{
            name: value
            for name, value in fields_of(exchange.response).items()
            if name in _RESPONSE
        },
    }
    row = {
        **{"case": exchange.case, "fact": ask.fact_id, "role": ask.role, "to": ask.to},
        "kind": _KINDS[type(ask.request).__name__],
        **parts,
    }
    # Parquet's texts are UTF-8, which has no halves of surrogate pairs.
    return {
        name: replace_surrogates(value) if isinstance(value, str) else value
        for name, value in row.items()
    }
