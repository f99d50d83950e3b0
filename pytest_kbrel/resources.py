"""Data that ships with the package: the world suite, its baseline, the schemas, tables of words.

In an installed package suites and baselines lie inside the package; in a clone they lie at its root.
"""

from __future__ import annotations

import shutil
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_SCHEMAS = {"suite": "suites/suite.schema.json", "report": "reports/report.schema.json"}


def suites() -> Path:
    """Return the folder of the shipped suites."""
    return _folder("suites")


def baselines() -> Path:
    """Return the folder of the shipped baselines."""
    return _folder("baselines")


def schema(of: str) -> str:
    """Return the JSON Schema of suite files (``suite``) or of ``report.json`` (``report``)."""
    return (_PACKAGE / _SCHEMAS[of]).read_text(encoding="utf-8")


def tsv_rows(file: str) -> list[list[str]]:
    """Return the cells of a table of tabs in the package, without the lines that begin with ``#``."""
    lines = (_PACKAGE / file).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def copy_to(directory: Path) -> list[Path]:
    """Copy suites and baselines into ``directory``; ``FileExistsError`` rather than overwrite anything."""
    made = []
    for source in (suites(), baselines()):
        target = directory / source.name
        if target.exists():
            raise FileExistsError(f"{target}: exists already and is left as it is; name another folder")
        # What papers print is found where it ships, and is nobody's to edit.
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("published"))
        made.append(target)
    return made


def _folder(name: str) -> Path:
    installed = _PACKAGE / "bundled_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
