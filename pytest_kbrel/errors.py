"""The errors a user can meet.

    KbrelError
    ├── SuiteError          a suite or facts file says something it may not
    ├── ModelError          a checkpoint cannot be loaded or cannot be trusted
    │   ├── NoFolderError   a path or hub id leads nowhere
    │   ├── BudgetError     what a session may spend on a model is spent
    │   └── UnavailableError  a server answers no request for longer than anybody waits
    ├── BaselineError       a baseline cannot be read or written
    ├── ResponseError       the model's responses are no ground for a measurement
    ├── StoreError          kept answers cannot be read or written
    └── MissingExtraError   an optional package is needed and absent

Each message says where, what was found and what is allowed, and needs no traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

# No name that is allowed anywhere is nearly as long; what is compared takes time by its length.
_LONGEST_NAME = 200


class KbrelError(Exception):
    """Base of all errors that are the user's to mend; its text may be printed, whatever it quotes."""

    def __str__(self) -> str:
        # Here, since this module is loaded in every pytest run of every project that has the plugin.
        from pytest_kbrel.printing import printable

        return printable(super().__str__())


class SuiteError(KbrelError):
    """A suite or facts file is wrong; ``path`` and ``line`` (from 1) say where."""

    def __init__(
        self, message: str, path: Path | str | None = None, line: int | None = None
    ) -> None:
        self.path = path
        self.line = line
        where = (
            "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
        )
        super().__init__(where + message)


class ModelError(KbrelError):
    """A checkpoint cannot be loaded, or its weights or tokenizer cannot be trusted."""


class NoFolderError(ModelError):
    """A path or hub id leads nowhere, and no folder is called like it; it may be a misspelt backend."""


class BudgetError(ModelError):
    """What a session may spend on a model is spent, so that it is asked nothing more."""


class UnavailableError(ModelError):
    """A server answers no request for longer than anybody waits."""


class BaselineError(KbrelError):
    """A baseline is missing, unreadable, of another format, or may not be written."""


class ResponseError(KbrelError):
    """Responses are errored, empty or not numbers: no measurement may be made from them."""


class StoreError(KbrelError):
    """The store of answers is unreadable, of another format, or may not be written."""


class MissingExtraError(KbrelError):
    """An optional package is absent; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f'{purpose} needs {package}: pip install "pytest-kbrel[{extra}]"'
        )


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 fact``, ``12 facts``."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def nearest(word: str, allowed: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the allowed name closest to ``word``, or ``""``."""
    close = closest(word, allowed)
    return f"; did you mean {close!r}?" if close else ""


def closest(word: str, allowed: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the allowed name closest to ``word``, ``""`` where none is as alike as ``cutoff``, of 1."""
    # Here, since this module is loaded in every pytest run of every project that has the plugin.
    import difflib

    if len(word) > _LONGEST_NAME:
        return ""
    # Known facts were once called seen, which is nearer to unseen.
    if word.partition("-")[0] == "seen":
        word = word.replace("seen", "known", 1)
    return next(
        iter(difflib.get_close_matches(word, list(allowed), n=1, cutoff=cutoff)), ""
    )
