"""Scripts of benchmarks/: the names that they import from the package, and the one of the response cache."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from benchmarks import store
from tests import house

BENCHMARKS = sorted((house.PACKAGE.parent / "benchmarks").glob("*.py"))


@functools.cache
def names_of(module: str) -> set[str]:
    """Return the names that a module of the package defines or imports, and the modules in it."""
    modules = house.modules()
    path = modules[module.removeprefix("pytest_kbrel").removeprefix(".")]
    names = {
        name.rpartition(".")[2]
        for name in modules
        if f"pytest_kbrel.{name}".startswith(module)
    }
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_imports_names_that_the_package_has(path: Path) -> None:
    script = ast.parse(path.read_text(encoding="utf-8"))
    # Some write plugins into the folder of a run: those are texts here.
    texts = [node.value for node in ast.walk(script) if isinstance(node, ast.Constant)]
    plugins = [
        text
        for text in texts
        if isinstance(text, str) and re.search(r"(?m)^ *from pytest_kbrel", text)
    ]
    imports = [
        node
        for tree in (script, *map(ast.parse, plugins))
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and str(node.module).startswith("pytest_kbrel")
    ]
    imported = {(node.module, alias.name) for node in imports for alias in node.names}
    assert {
        (module, name) for module, name in imported if name not in names_of(str(module))
    } == set()


def test_the_benchmark_of_the_response_cache_runs(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert store.main(["2"]) == 0
    assert capsys.readouterr().out.count("\n| ") == 8
