"""The rooms of docs/architecture.md, and that what a table states is stated nowhere else."""

from __future__ import annotations

import ast
import re

import pytest

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.models.registry import BACKENDS
from tests import house

# Libraries that are slow to import or not always installed: only rooms that say so may import them.
LIBRARIES = {library for room in house.ROOMS.values() for library in room.libraries}
SOURCES = {
    name: path.read_text(encoding="utf-8") for name, path in house.modules().items()
}


def test_every_module_is_in_a_room_of_the_table() -> None:
    assert {house.room_of(module) for module in house.modules()} == house.ROOMS.keys()


def test_a_module_imports_only_what_its_room_may() -> None:
    wrong = []
    for module, (own, libraries) in house.imports().items():
        room = house.ROOMS[house.room_of(module)]
        rooms = {house.room_of(target) for target in own} - {
            house.room_of(module),
            *room.rooms,
        }
        wrong += [
            f"{module} imports {name}"
            for name in rooms | (libraries & LIBRARIES - room.libraries)
        ]
    assert wrong == []


def test_the_table_allows_nothing_that_is_not_needed() -> None:
    graph = house.room_graph()
    assert {name: room.rooms for name, room in house.ROOMS.items()} == graph


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert (
        house.circles(
            {module: own - {module} for module, (own, _) in house.imports().items()}
        )
        == []
    )
    assert house.circles(house.room_graph()) == []
    within = {room: house.circles(house.inner_graph(room)) for room in house.ROOMS}
    assert {room: circles for room, circles in within.items() if circles} == {}


def test_rooms_and_floors_are_few() -> None:
    assert len(house.folders()) <= house.MOST_FOLDERS
    assert house.height(house.room_graph()) <= house.MOST_FLOORS
    for room, most in house.MOST_INNER_FLOORS.items():
        assert house.height(house.inner_graph(room)) <= most, room


def test_the_search_for_circles_finds_them() -> None:
    assert house.circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [
        ["a", "b", "c"]
    ]
    assert house.height({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == 3


def test_the_ground_imports_nothing_but_ground() -> None:
    ground = {
        "",
        "bounds",
        "errors",
        "printing",
        "records",
        "untrusted",
        "serialization",
    }
    assert {target for room in ground for target in house.room_graph()[room]} <= ground


def test_a_module_stays_small_enough_to_hold_in_the_head() -> None:
    sizes = {name: house.tokens(path) for name, path in house.modules().items()}
    assert [name for name, count in sizes.items() if count > house.MOST_TOKENS] == []


@pytest.mark.parametrize("name", ["architecture.md", "decisions.md", "extending.md"])
def test_the_pages_name_files_that_are_there(name: str) -> None:
    text = house.PAGE.with_name(name).read_text(encoding="utf-8")
    roots = (house.PACKAGE, house.PACKAGE.parent)
    paths = set(re.findall(r"`([\w./-]+(?:\.py|/))`", text)) - {
        "probes/recall.py",
        "models/echo.py",
    }
    assert paths
    assert [
        path
        for path in sorted(paths)
        if not any((root / path).exists() for root in roots)
    ] == []


def test_pages_that_the_code_names_are_there() -> None:
    named = {
        page
        for text in SOURCES.values()
        for page in re.findall(r"docs/[\w/-]+\.md", text)
    }
    assert named
    assert [
        page for page in sorted(named) if not (house.PACKAGE.parent / page).exists()
    ] == []


def test_the_rooms_on_the_page_are_those_of_the_code() -> None:
    def without_numbers(text: str) -> str:
        # Lines and modules change with every commit; the page is written anew now and then.
        return re.sub(r"\d[\d,]*", "N", text)

    page = house.PAGE.read_text(encoding="utf-8")
    assert without_numbers(house.page()) in without_numbers(page), (
        "write them: python -m tests.house --write"
    )


def test_nothing_is_decided_by_comparing_with_the_name_of_a_probe() -> None:
    names = "|".join(PROBES)
    compared = re.compile(
        rf"""probe (==|!=) "({names})"|"({names})" (==|!=) \w*\.?probe"""
    )
    assert [name for name, text in SOURCES.items() if compared.search(text)] == []


def test_settings_of_a_probe_are_told_apart_only_in_its_own_modules() -> None:
    check = re.compile(r"isinstance\([^)]*\b(Monitor|HeadToTail|Reliability)Settings")
    assert {
        name.split(".")[0] for name, text in SOURCES.items() if check.search(text)
    } <= {"probes"}


def test_what_a_backend_is_stands_in_its_record() -> None:
    names = "|".join(backend.name for backend in BACKENDS.values())
    check = re.compile(
        rf"""backend (==|!=|in) \(?"({names})"|startswith\("({names})/"\)|\bis_({names})\("""
    )
    # A report may be of a model whose backend is not installed: it knows that a script has no prompt form.
    assert [name for name, text in SOURCES.items() if check.search(text)] == [
        "reports.phrases"
    ]


def test_a_table_has_one_name() -> None:
    tables = (
        "RELATIVE",
        "SEVERITY",
        "FAILING",
        "REPORT_FILES",
        "PROBES",
        "METRICS",
        "GATE_RULES",
    )
    for table in tables:
        defined = [
            name
            for name, text in SOURCES.items()
            if re.search(rf"^{table}\b[^=\n]*= ", text, re.M)
        ]
        assert len(defined) <= 1, (table, defined)


def test_nothing_is_called_found() -> None:
    named = []
    for name, text in SOURCES.items():
        for node in ast.walk(ast.parse(text)):
            names = (getattr(node, key, None) for key in ("id", "arg", "name", "attr"))
            named += [name] * ("found" in names)
    assert named == []
