"""Data that ships with the package: the world suite, its baseline, the schemas, tables of words.

In an installed package suites and baselines lie inside the package; in a clone they lie at its root.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent
_SCHEMAS = {"suite": "suites/suite.schema.json", "report": "reports/report.schema.json"}
# Where the suites of a clone find their schema, as editors look for it: from the suite's folder.
SCHEMA_IN_CLONE = "../pytest_kbrel/suites/suite.schema.json"


def suites() -> Path:
    """Return the folder of the shipped suites."""
    return _folder("suites")


def baselines() -> Path:
    """Return the folder of the shipped baselines."""
    return _folder("baselines")


def schema(of: str) -> str:
    """Return the JSON Schema of suite files (``suite``) or of ``report.json`` (``report``)."""
    return read_text(_SCHEMAS[of])


def read_text(file: str) -> str:
    """Return the text of a file of the package."""
    return (_PACKAGE / file).read_text(encoding="utf-8")


@functools.cache
def read_yaml(file: str) -> Any:
    """Return a YAML file of the package."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(read_text(file), loader)


def tsv_rows(file: str) -> list[list[str]]:
    """Return the cells of a table of tabs in the package, without the lines that begin with ``#``."""
    lines = read_text(file).splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def workflow() -> str:
    """Return the workflow of GitHub that gates pull requests of a project."""
    return read_text("cli/workflow.yml")


def _folder(name: str) -> Path:
    installed = _PACKAGE / "bundled_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
