"""Reader of the file in which pytest finds its settings."""

from __future__ import annotations

from pathlib import Path

from _pytest.config.exceptions import UsageError
from _pytest.config.findpaths import locate_config
from _pytest.outcomes import Failed

from pytest_kbrel.errors import KbrelError


def line_to_add(directory: Path, key: str, value: str) -> tuple[Path, str]:
    """Return the file for a setting of pytest and the text to add, empty where the key is there already.

    The file is the one that pytest reads in ``directory``, or a new ``pytest.ini``.
    """
    path, values = _read_by_pytest(directory)
    if key in values:
        return path, ""
    table = {"pyproject.toml": "tool.pytest.ini_options", "setup.cfg": "tool:pytest"}
    name = table.get(path.name, "pytest")
    if path.name == "pyproject.toml" and any(
        getattr(value, "mode", "") == "toml" for value in values.values()
    ):
        name = "tool.pytest"
    quoted = f'"{value}"' if path.suffix == ".toml" else value
    return path, f"[{name}]\n{key} = {quoted}\n"


def read_key(directory: Path, key: str) -> tuple[Path, str]:
    """Return the file that pytest reads in ``directory`` and its value of ``key``, empty where it has none.

    Raises :class:`KbrelError` for a file that pytest refuses as well.
    """
    path, values = _read_by_pytest(directory)
    value = values.get(key, "")
    # pytest 9 keeps a value together with where it stands.
    text = getattr(value, "value", value)
    if not isinstance(text, str):
        raise KbrelError(f"{path}: {key}: found {text!r}; allowed: a text in quotes")
    return path, text


def _read_by_pytest(directory: Path) -> tuple[Path, dict[str, object]]:
    """Return the file that pytest reads in a folder, with its settings, or the one to write."""
    folder = directory.resolve()
    try:
        path, values = locate_config(folder, [folder])[1:3]
    except (UsageError, Failed, OSError, ValueError) as error:
        raise KbrelError(f"{directory}: cannot be read: {error}") from None
    if path is None or path.parent != folder:
        return directory / "pytest.ini", {}
    return directory / path.name, dict(values)
