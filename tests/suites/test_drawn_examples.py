from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.skipif(not settings.default.derandomize, reason="the profile draws anew")
def test_examples_are_the_same_whatever_else_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[list[int]] = []

    @given(st.integers())
    def draw(number: int) -> None:
        runs[-1].append(number)

    for name in ("one", "other"):
        runs.append([])
        draw()
        module = types.ModuleType(name)
        module.__file__ = str(tmp_path / f"{name}.py")
        Path(module.__file__).write_text("NUMBERS = [2001, 2002, 2003, 2004, 2005]")
        monkeypatch.setitem(sys.modules, name, module)
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 25
