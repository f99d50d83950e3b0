"""What a command puts out: lines for people, and files that are written whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_kbrel.printing import printable


def say(text: object) -> None:
    """Print a text for people, whatever it quotes; see :func:`pytest_kbrel.printing.printable`."""
    print(printable(str(text)))


@contextmanager
def scratch_for(output: Path) -> Iterator[Path]:
    """Yield a folder beside ``output``: only there is renaming whole or not at all.

    Raises ``FileNotFoundError`` where the folder of ``output`` is missing, and ``IsADirectoryError`` where
    ``output`` is itself a folder.
    """
    import tempfile

    if not output.parent.is_dir():
        raise FileNotFoundError(f"{output.parent}: no such folder to write to")
    if output.is_dir():
        raise IsADirectoryError(f"{output}: is a folder; allowed: the name of a file in it")
    with tempfile.TemporaryDirectory(prefix=".kbrel-", dir=output.parent) as folder:
        yield Path(folder)
