"""Baselines that are broken, foreign or changed by hand."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hostile.row import RUN, USAGE, Row

ARGS = (*RUN, "--kb-baseline=./blessed")


def outcomes(path: Path) -> Path:
    return next(path.glob("outcomes-*"))


def of_readable(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        data = json.loads((path / "baseline.json").read_text())
        change(data)
        (path / "baseline.json").write_text(json.dumps(data))

    return edit


def written(content: str | bytes) -> Callable[[Path], None]:
    return lambda path: (
        (path / "baseline.json").write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        and None
    )


def packed(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        outcomes(path).write_bytes(content)

    return write


def unpacked(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        file = outcomes(path)
        file.write_bytes(lzma.compress(change(lzma.decompress(file.read_bytes()))))

    return write


def broken(
    what: str,
    change: Callable[[Path], None],
    printed: str = "blessed",
    exit: int = USAGE,
) -> Row:
    return Row(what, {"blessed": change}, exit, printed, ARGS)


def cut(path: Path) -> None:
    file = outcomes(path)
    file.write_bytes(file.read_bytes()[:-40])


def zeros(path: Path) -> None:
    packer = lzma.LZMACompressor()
    with outcomes(path).open("wb") as file:
        for _ in range(300):
            file.write(packer.compress(bytes(1_000_000)))
        file.write(packer.flush())


def of_cases(**metrics: object) -> Callable[[Path], None]:
    return of_readable(
        lambda data: [
            case["metrics"].update(metrics) for case in data["cases"].values()
        ]
    )


ROWS = [
    broken("a baseline of 100,000 levels", written("[" * 100_000)),
    broken(
        "a baseline of a later version",
        of_readable(lambda result: result.update(schema_version=99)),
    ),
    broken(
        "a baseline whose figures are no numbers",
        of_cases(accuracy=float("nan")),
        "allowed: finite numbers",
    ),
    broken("outcomes that are cut off", cut),
    broken("outcomes of 300 MB of zeros", zeros),
    broken(
        "outcomes of another run",
        unpacked(lambda text: text.replace(b"true", b"false").replace(b"1", b"0")),
    ),
    broken(
        "outcomes that are one line short",
        unpacked(lambda text: text.rpartition(b"\n")[0].rpartition(b"\n")[0] + b"\n"),
    ),
    broken("outcomes of 100,000 levels", unpacked(lambda text: b"[" * 100_000)),
]
