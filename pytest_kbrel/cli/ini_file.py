"""A key in the file in which pytest reads its settings: read, or added with nothing else changed."""

from __future__ import annotations

import copy
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any, Literal

import iniconfig

from pytest_kbrel.cli.arguments import scratch_folder
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


@record
class IniEdit:
    """What became of a key: ``line`` is the one that says it, below the head ``table`` of the file ``path``.

    ``outcome``: the file was ``written``, the line was ``added`` to it or is ``left`` to the user to add, or
    the key ``stands`` there already, with whatever value.
    """

    path: Path
    table: str
    line: str
    outcome: Literal["written", "added", "left", "stands"]


def add_key(directory: Path, key: str, value: str) -> IniEdit:
    """Add ``key`` to the settings of pytest in ``directory``, in the file that pytest reads there.

    Where there is none, a table is added to pyproject.toml, and without that pytest.ini is written. Comments,
    order and line ends are kept. A file that cannot be read, or whose other settings would not be the same
    afterwards, is left as it is. Raises ``OSError`` where a file cannot be written.
    """
    file, table = _read_by_pytest(directory)
    path, line = directory / file.name, file.line(key, value)

    def edit(outcome: Literal["written", "added", "left", "stands"]) -> IniEdit:
        return IniEdit(path=path, table=table, line=line, outcome=outcome)

    if not path.exists():
        with path.open("x", encoding="utf-8") as stream:
            stream.write(f"[{table}]\n{line}\n")
        return edit("written")
    try:
        text = path.read_bytes().decode("utf-8")
        before = _parse(file, text)
        if key in _table(file, before, table):
            return edit("stands")
        wanted = copy.deepcopy(before)
        _table(file, wanted, table)[key] = value
        changed = _with_line(text, table, line)
        if _parse(file, changed) != wanted:
            return edit("left")
    except (ValueError, TypeError, AttributeError, iniconfig.ParseError):
        return edit("left")
    _replace(path, changed)
    return edit("added")


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


def _with_line(text: str, table: str, line: str) -> str:
    """Return the text with ``line`` below the head of ``table``; where it has none, with both at its end."""
    end = "\r\n" if "\r\n" in text else "\n"
    head = re.compile(
        rf"^\[{re.escape(table)}\][ \t]*([#;][^\r\n]*)?(\r\n|\n|\Z)", re.MULTILINE
    )
    if (match := head.search(text)) is None:
        gap = (
            ""
            if not text or text.endswith(end * 2)
            else end
            if text.endswith("\n")
            else end * 2
        )
        return f"{text}{gap}[{table}]{end}{line}{end}"
    start = text[: match.end()]
    return f"{start}{'' if match[2] else end}{line}{end}{text[match.end() :]}"


def _replace(path: Path, text: str) -> None:
    # A link stays one.
    real = path.resolve()
    with scratch_folder(real) as scratch:
        new = scratch / real.name
        new.write_bytes(text.encode("utf-8"))
        shutil.copymode(real, new)
        new.replace(real)
