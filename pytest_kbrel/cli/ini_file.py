"""Reader of the file in which pytest finds its settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import iniconfig

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import record

Parsed = dict[str, Any]


@record
class IniFile:
    """A file that pytest reads: its name, and the tables that may hold the settings, the usual one last.

    ``always``: it is pytest's own, and read even where it has no such table.
    """

    name: str
    tables: tuple[str, ...]
    always: bool = False

    @property
    def is_toml(self) -> bool:
        """Whether texts stand in quotes."""
        return self.name.endswith(".toml")

    def line(self, key: str, value: str) -> str:
        """Return the line of a key; ``value`` must need no escaping."""
        return f'{key} = "{value}"' if self.is_toml else f"{key} = {value}"


# In the order in which pytest looks for them (its docs, "Initialization: determining rootdir").
# The first that exists and is pytest's own or has a table for it is the one that is read.
INI_FILES = (
    IniFile(name="pytest.toml", tables=("pytest",), always=True),
    IniFile(name=".pytest.toml", tables=("pytest",), always=True),
    IniFile(name="pytest.ini", tables=("pytest",), always=True),
    IniFile(name=".pytest.ini", tables=("pytest",), always=True),
    IniFile(name="pyproject.toml", tables=("tool.pytest", "tool.pytest.ini_options")),
    IniFile(name="tox.ini", tables=("pytest",)),
    IniFile(name="setup.cfg", tables=("tool:pytest",)),
)
_NEW, _PYPROJECT = INI_FILES[2], INI_FILES[4]


def line_to_add(directory: Path, key: str, value: str) -> tuple[Path, str]:
    """Return the file for a setting of pytest and the text to add, empty where the key is there already."""
    file, table = _read_by_pytest(directory)
    path = directory / file.name
    if path.is_file() and key in path.read_text(encoding="utf-8", errors="replace"):
        return path, ""
    return path, f"[{table}]\n{file.line(key, value)}\n"


def read_key(directory: Path, key: str) -> tuple[Path, str]:
    """Return the file that pytest reads in ``directory`` and its value of ``key``, empty where it has none.

    Raises :class:`KbrelError` for a file that pytest refuses as well.
    """
    file, table = _read_by_pytest(directory)
    path = directory / file.name
    if not path.is_file():
        return path, ""
    try:
        value = _table(file, _parse(file, path.read_text(encoding="utf-8")), table).get(
            key, ""
        )
    except (
        OSError,
        ValueError,
        TypeError,
        AttributeError,
        iniconfig.ParseError,
    ) as error:
        raise KbrelError(f"{path}: cannot be read: {error}") from None
    if not isinstance(value, str):
        raise KbrelError(f"{path}: {key}: found {value!r}; allowed: a text in quotes")
    return path, value


def _read_by_pytest(directory: Path) -> tuple[IniFile, str]:
    """Return the file that pytest reads, or the one to add to, and the table in it."""
    for file in INI_FILES:
        path = directory / file.name
        if not path.is_file():
            continue
        try:
            parsed = _parse(file, path.read_text(encoding="utf-8"))
            used = [table for table in file.tables if _has(file, parsed, table)]
        except (OSError, ValueError, TypeError, AttributeError, iniconfig.ParseError):
            # pytest refuses it, or passes over it. Nobody can tell here what is meant.
            used = []
        if used or file.always:
            return file, (used or file.tables)[-1]
    file = _PYPROJECT if (directory / _PYPROJECT.name).is_file() else _NEW
    return file, file.tables[-1]


def _parse(file: IniFile, text: str) -> Parsed:
    if file.is_toml:
        return tomllib.loads(text)
    ini = iniconfig.IniConfig(file.name, data=text)
    return {section.name: dict(section.items()) for section in ini}


def _has(file: IniFile, parsed: Parsed, table: str) -> bool:
    """Return True if a table is there and pytest reads it."""
    if not file.is_toml:
        return table in parsed
    inner: Any = parsed
    for name in table.split("."):
        if not isinstance(inner, dict) or name not in inner:
            return False
        inner = inner[name]
    # The table of pytest 9 is there too where it holds nothing but the older one.
    return table != "tool.pytest" or bool(set(inner) - {"ini_options"})


def _table(file: IniFile, parsed: Parsed, table: str) -> Parsed:
    """Return a table, which is made if it is not there."""
    for name in table.split(".") if file.is_toml else [table]:
        parsed = parsed.setdefault(name, {})
    return parsed
