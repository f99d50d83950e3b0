"""The architecture of the package: its rooms, what each may import, and the graph of what is imported.

``python -m tests.house`` prints the table and figures of docs/architecture.md; ``--write`` puts them there.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

import pytest_kbrel

PACKAGE = Path(pytest_kbrel.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: python -m tests.house --write -->", "<!-- end of rooms -->"


@dataclass(frozen=True, slots=True)
class Room:
    """A folder or module directly below the package, with the rooms and heavy libraries it may import."""

    purpose: str
    rooms: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


def modules() -> dict[str, Path]:
    """Return the path of every module of the package by its dotted name below the package."""
    named = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        named[".".join(parts).removesuffix("__init__").removesuffix(".")] = path
    return named


def room_of(module: str) -> str:
    """Return the room of a dotted name below the package; ``""`` is the package's own ``__init__``."""
    return module.split(".")[0]


@functools.cache
def imports() -> dict[str, tuple[set[str], set[str]]]:
    """Return, for each module, which modules of the package and which other top-level packages it imports.

    Imports inside functions count. Imports for type checkers alone do not.
    """
    known = modules()
    return {name: _imports_of(path, known) for name, path in known.items()}


def _imports_of(path: Path, known: dict[str, Path]) -> tuple[set[str], set[str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    only_for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    dotted: list[str] = []
    for node in ast.walk(tree):
        if id(node) in only_for_types:
            continue
        if isinstance(node, ast.Import):
            dotted += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = whole.removeprefix("pytest_kbrel.") in known
                dotted.append(whole if is_module else node.module)
    own = {name.removeprefix("pytest_kbrel").removeprefix(".") for name in dotted if _is_ours(name)}
    return own & known.keys(), {name.split(".")[0] for name in dotted if not _is_ours(name)}


def _is_ours(name: str) -> bool:
    return name.split(".")[0] == "pytest_kbrel"


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return every group of nodes that reach each other (strongly connected components of two or more)."""
    reach = {node: _reachable(graph, node) for node in graph}
    groups = {frozenset(n for n in reach[node] if node in reach[n]) for node in graph}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph[waiting.pop()] - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def room_graph() -> dict[str, set[str]]:
    """Return which other rooms the modules of each room import."""
    graph: dict[str, set[str]] = {}
    for name, (own, _) in imports().items():
        graph.setdefault(room_of(name), set()).update(room_of(target) for target in own)
    return {room: targets - {room} for room, targets in graph.items()}


def height(graph: dict[str, set[str]]) -> int:
    """Return how many rooms stand on the longest chain of imports; the graph has no circle."""

    @functools.cache
    def floor(room: str) -> int:
        return 1 + max((floor(target) for target in graph[room]), default=0)

    return max(map(floor, graph))


# The rows of the table, from the ground up. A module below the package without a row is an error.
ROOMS: dict[str, Room] = {
    "": Room("", (), ()),
    "bounds": Room("", (), ()),
    "bundled": Room("", (), ()),
    "flags": Room("", (), ()),
    "records": Room("", (), ()),
    "redaction": Room("", (), ()),
    "stats": Room("", (), ("numpy", "scipy")),
    "terminating": Room("", (), ()),
    "untrusted": Room("", (), ()),
    "wire": Room("", (), ()),
    "catalogue": Room("", ("bounds", "records"), ()),
    "metrics": Room("", ("records",), ("numpy", "scipy")),
    "options": Room("", ("bounds", "flags"), ("pytest",)),
    "printing": Room("", ("redaction",), ()),
    "distribute": Room("", ("options",), ("pytest",)),
    "errors": Room("", ("printing",), ()),
    "judges": Room("", ("metrics", "records"), ("babel", "yaml")),
    "report_texts": Room("", ("printing",), ("pytest",)),
    "synthetic": Room("", ("printing",), ("pytest",)),
    "baselines": Room("", ("bounds", "bundled", "errors", "records", "untrusted", "wire"), ()),
    "facts": Room("", ("", "bounds", "errors", "records", "untrusted"), ("duckdb", "yaml")),
    "probes": Room("", ("errors", "judges", "metrics", "records"), ()),
    "reference": Room("", ("errors",), ("torch",)),
    "reports": Room("", ("errors", "printing", "records", "untrusted", "wire"), ()),
    "settings": Room("", ("errors", "records"), ()),
    "blessing": Room("", ("baselines", "records", "settings"), ()),
    "earlier": Room("", ("baselines", "reports"), ("pytest",)),
    "gates": Room("", ("baselines", "errors", "judges", "metrics", "records", "stats"), ("numpy",)),
    "models": Room(
        "",
        (
            "",
            "bounds",
            "errors",
            "facts",
            "printing",
            "records",
            "redaction",
            "reference",
            "untrusted",
            "wire",
        ),
        (
            "accelerate",
            "captum",
            "huggingface_hub",
            "numpy",
            "openai",
            "safetensors",
            "sentence_transformers",
            "torch",
            "transformers",
            "vllm",
        ),
    ),
    "suites": Room("", ("bounds", "catalogue", "errors", "facts", "records", "wire"), ()),
    "collect": Room(
        "", ("errors", "options", "printing", "records", "reports", "settings", "suites"), ("pytest",)
    ),
    "commands": Room(
        "",
        (
            "",
            "baselines",
            "bounds",
            "bundled",
            "errors",
            "facts",
            "gates",
            "judges",
            "metrics",
            "models",
            "printing",
            "records",
            "reports",
            "stats",
            "suites",
            "wire",
        ),
        (),
    ),
    "parts": Room("", ("errors", "models"), ()),
    "recorded": Room("", ("", "errors", "models", "records", "reports", "untrusted", "wire"), ()),
    "retrieval": Room("", ("metrics", "models", "probes", "records"), ()),
    "specs": Room("", ("errors", "models", "records", "settings"), ()),
    "cli": Room("", ("", "commands", "errors", "printing"), ()),
    "helping": Room("", ("errors", "models", "records", "settings", "specs"), ()),
    "recorded_options": Room(
        "",
        ("bounds", "errors", "flags", "options", "printing", "recorded", "reports", "settings"),
        ("pytest",),
    ),
    "runs": Room(
        "",
        (
            "",
            "baselines",
            "collect",
            "flags",
            "gates",
            "metrics",
            "models",
            "options",
            "records",
            "reports",
            "settings",
        ),
        ("pytest",),
    ),
    "aggregating": Room("", ("baselines", "collect", "gates", "helping", "records", "runs"), ()),
    "answering": Room("", ("errors", "helping", "models", "records", "settings", "specs"), ()),
    "refusing": Room(
        "",
        (
            "baselines",
            "errors",
            "helping",
            "models",
            "options",
            "probes",
            "recorded",
            "records",
            "settings",
            "specs",
        ),
        ("pytest",),
    ),
    "session_settings": Room(
        "", ("bounds", "errors", "flags", "options", "recorded_options", "settings", "specs"), ("pytest",)
    ),
    "beside": Room("", ("answering", "baselines", "errors", "gates", "probes", "records"), ()),
    "recalling": Room(
        "",
        (
            "",
            "answering",
            "baselines",
            "errors",
            "models",
            "probes",
            "recorded",
            "records",
            "retrieval",
            "settings",
            "specs",
        ),
        (),
    ),
    "bench": Room(
        "",
        (
            "answering",
            "baselines",
            "beside",
            "collect",
            "errors",
            "gates",
            "helping",
            "models",
            "parts",
            "probes",
            "recalling",
            "records",
            "reports",
            "retrieval",
            "settings",
        ),
        ("pytest",),
    ),
    "fixtures": Room(
        "",
        (
            "answering",
            "bench",
            "collect",
            "errors",
            "facts",
            "options",
            "printing",
            "reports",
            "session_settings",
            "wire",
        ),
        ("pytest",),
    ),
    "recorder": Room(
        "",
        (
            "aggregating",
            "answering",
            "baselines",
            "bench",
            "blessing",
            "earlier",
            "errors",
            "fixtures",
            "gates",
            "options",
            "parts",
            "printing",
            "records",
            "refusing",
            "reports",
            "runs",
            "settings",
            "specs",
            "synthetic",
            "terminating",
            "wire",
        ),
        ("pytest",),
    ),
    "starting": Room(
        "",
        (
            "baselines",
            "bench",
            "distribute",
            "earlier",
            "errors",
            "models",
            "options",
            "recorder",
            "refusing",
            "session_settings",
            "settings",
        ),
        ("pytest",),
    ),
    "planning": Room(
        "",
        (
            "answering",
            "baselines",
            "bench",
            "collect",
            "errors",
            "gates",
            "metrics",
            "models",
            "options",
            "printing",
            "probes",
            "records",
            "refusing",
            "reports",
            "session_settings",
            "settings",
            "specs",
            "starting",
            "stats",
        ),
        ("pytest",),
    ),
    "plugin": Room(
        "",
        (
            "collect",
            "fixtures",
            "flags",
            "options",
            "planning",
            "printing",
            "report_texts",
            "session_settings",
            "starting",
        ),
        ("pytest",),
    ),
}
