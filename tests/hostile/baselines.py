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


def as_pack(change: Callable[[bytes], bytes]) -> dict[str, Callable[[Path], None]]:
    """The blessed run as a pack, its bytes before packing changed."""

    def write(path: Path) -> None:
        folder = path.parent / "blessed"
        meta = json.loads((folder / "baseline.json").read_text())
        lines = lzma.decompress(outcomes(folder).read_bytes())
        content = change(json.dumps(meta).encode() + b"\n" + lines)
        path.write_bytes(lzma.compress(content))

    # It is there where a row names it.
    return {"blessed": lambda path: None, "p.kbrel": write}


def of_cases(**metrics: object) -> Callable[[Path], None]:
    return of_readable(
        lambda data: [
            case["metrics"].update(metrics) for case in data["cases"].values()
        ]
    )


_FOREIGN = "or a file NAME.kbrel of kbrel pack"
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
    *(
        Row(what, files, exit, printed, (*RUN, "--kb-baseline=./p.kbrel"))
        for what, files, exit, printed in (
            ("a pack", as_pack(lambda text: text), 0, "p.kbrel (sha256"),
            ("a pack that is a zip file", {"p.kbrel": b"PK\3\4" * 99}, USAGE, _FOREIGN),
            ("an empty pack", {"p.kbrel": b""}, USAGE, _FOREIGN),
            (
                "a pack without outcomes",
                as_pack(lambda text: text.partition(b"\n")[0]),
                USAGE,
                "found digest e3b0c44298fc",
            ),
            (
                "a pack of a later version",
                as_pack(lambda text: text.replace(b'_version": 2', b'_version": 99')),
                USAGE,
                "found schema_version 99",
            ),
            ("a pack of other data", as_pack(lambda text: b"{}\n"), USAGE, _FOREIGN),
            (
                "a pack whose first line is 20 MB",
                as_pack(lambda text: b'"' + b"a" * 20_000_000),
                USAGE,
                "found a line of more than 16 MiB",
            ),
            (
                "a pack of 300 MB of zeros",
                as_pack(lambda text: bytes(300_000_000)),
                USAGE,
                "unpacks to more than",
            ),
        )
    ),
]
