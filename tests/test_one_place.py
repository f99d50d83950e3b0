"""What stands in a table of the catalogue is not stated a second time elsewhere."""

from __future__ import annotations

import ast
import re

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.models.registry import BACKENDS
from tests import house

SOURCES = {name: path.read_text(encoding="utf-8") for name, path in house.modules().items()}


def test_nothing_is_decided_by_comparing_with_the_name_of_a_probe() -> None:
    names = "|".join(PROBES)
    compared = re.compile(rf"""probe (==|!=) "({names})"|"({names})" (==|!=) \w*\.?probe""")
    assert [name for name, text in SOURCES.items() if compared.search(text)] == []


def test_settings_of_a_probe_are_told_apart_only_in_its_own_modules() -> None:
    check = re.compile(r"isinstance\([^)]*\b(Monitor|HeadToTail|Reliability)Settings")
    assert {name.split(".")[0] for name, text in SOURCES.items() if check.search(text)} <= {"probes"}


def test_what_a_backend_is_stands_in_its_record() -> None:
    names = "|".join(backend.name for backend in BACKENDS.values())
    check = re.compile(rf"""backend (==|!=|in) \(?"({names})"|startswith\("({names})/"\)|\bis_({names})\(""")
    # A report may be of a model whose backend is not installed: it knows that a script has no prompt form.
    assert [name for name, text in SOURCES.items() if check.search(text)] == ["reports.phrases"]


def test_a_table_has_one_name() -> None:
    tables = ("RELATIVE", "SEVERITY", "FAILING", "REPORT_FILES", "PROBES", "METRICS", "GATE_RULES")
    for table in tables:
        defined = [name for name, text in SOURCES.items() if re.search(rf"^{table}\b[^=\n]*= ", text, re.M)]
        assert len(defined) <= 1, (table, defined)


def test_nothing_is_called_found() -> None:
    named = []
    for name, text in SOURCES.items():
        for node in ast.walk(ast.parse(text)):
            names = (getattr(node, key, None) for key in ("id", "arg", "name", "attr"))
            named += [name] * ("found" in names)
    assert named == []
