"""As much of pytest's config as the settings look at, where a session would be too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


class StubConfig:
    """``typed`` are our settings on the command line, ``others`` pytest's own options by name."""

    def __init__(
        self,
        folder: Path,
        *,
        ini: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
        line: Sequence[str] = (),
        others: Mapping[str, object] | None = None,
        worker: Mapping[str, str] | None = None,
        **typed: object,
    ) -> None:
        self._ini, self._others = ini or {}, others or {}
        self._typed = {f"kb_{name}": value for name, value in typed.items()}
        self.args = list(args)
        self.rootpath = folder
        self.invocation_params = SimpleNamespace(dir=folder, args=tuple(line))
        self.option = SimpleNamespace(pyargs=False, **self._others)
        self.stash = pytest.Stash()
        if worker is not None:
            self.workerinput = worker

    def getoption(self, name: str, default: Any = None) -> Any:
        return {**self._others, **self._typed}.get(name, default)

    def getini(self, name: str) -> Any:
        return self._ini.get(name)
