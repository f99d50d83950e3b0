"""Files of the parts of a case: what a worker got for a part, for the worker that decides the case."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.records import Exchange, Fingerprint, record
from pytest_kbrel.reports.spools import append_exchanges
from pytest_kbrel.serialization import dumps_compact, from_wire

_RESULT = ".result"
_EXCHANGES = ".exchanges"


@record
class PartResult:
    """Result of ``size`` facts of a case, from the one at ``first`` on.

    ``base`` is that of the baseline model, ``prompt`` the first prompt as the model read it, ``seconds`` how
    long it took. ``requests`` are those to the model under test and its helpers. ``models`` are those of the
    worker, by their names in ``Ask.to``.
    """

    first: int
    size: int
    own: ProbeResult
    base: ProbeResult | None
    prompt: str
    requests: int
    seconds: float
    models: tuple[tuple[str, Fingerprint], ...]


class PartFolder:
    """Part files of one case (a node id) in ``folder``, which all workers of the session share.

    A part's files are complete or not there: of a killed worker's part none is read.
    """

    def __init__(self, folder: Path, case: str) -> None:
        self._prefix = (
            folder / f"part-{hashlib.blake2b(case.encode(), digest_size=8).hexdigest()}"
        )

    def results(self) -> list[PartResult]:
        """Return the results of the parts, in the order of the facts; one that cannot be read lacks."""
        results = []
        for path in self._files(_RESULT):
            with contextlib.suppress(OSError, ValueError):
                results.append(from_wire(PartResult, json.loads(path.read_bytes())))
        return results

    def copy_exchanges(self, spool: Path) -> None:
        """Append the exchanges of all parts to a spool file, in the order in which the whole case has them.

        Raises ``OSError``.
        """
        with spool.open("ab") as stream:
            for path in self._files(_EXCHANGES):
                with path.open("rb") as part:
                    shutil.copyfileobj(part, stream)

    def writer(self, first: int, chunk: int) -> PartWriter:
        """Return the writer of the part from the fact at ``first`` on, in chunk number ``chunk``."""
        return PartWriter(self._prefix, first, chunk)

    def _files(self, ending: str) -> list[Path]:
        return sorted(self._prefix.parent.glob(f"{self._prefix.name}-*{ending}"))


class PartWriter:
    """Writer of the files of one part.

    A case is asked in chunks and a chunk in rounds, and the baseline model after the model under test: sorted
    by name, the files of all parts have the order of the whole case.
    """

    def __init__(self, prefix: Path, first: int, chunk: int) -> None:
        self._prefix, self._first, self._chunk = prefix, first, chunk
        self._rounds = [0, 0]
        self._written: dict[Path, Path] = {}

    def keep(self, exchanges: Sequence[Exchange], *, of_base: bool = False) -> None:
        """Write the exchanges of one round; raises ``OSError``."""
        at = self._rounds[of_base]
        self._rounds[of_base] += 1
        new = self._new(
            f"{of_base:d}-{self._chunk:06}-{at:04}-{self._first:08}{_EXCHANGES}"
        )
        new.unlink(missing_ok=True)
        append_exchanges(new, exchanges)

    def finish(self, result: PartResult) -> None:
        """Write the result, and with it make the part known; raises ``OSError``."""
        self._new(f"{self._first:08}{_RESULT}").write_text(dumps_compact(result))
        for own, path in self._written.items():
            os.replace(own, path)

    def _new(self, ending: str) -> Path:
        """Return what a file of the part is called until the part is finished."""
        path = self._prefix.with_name(f"{self._prefix.name}-{ending}")
        own = path.with_name(f"{path.name}.{os.getpid()}")
        self._written[own] = path
        return own
