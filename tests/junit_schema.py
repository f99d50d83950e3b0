"""JUnit files held against the schema of Jenkins' xUnit plugin."""

from __future__ import annotations

import functools
from pathlib import Path

import xmlschema


@functools.cache
def _schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(Path(__file__).parent / "data" / "junit-10.xsd"))


def junit_errors(path: Path) -> list[str]:
    """Return what the schema refuses in a JUnit file."""
    return [
        f"{error.path}: {error.reason}" for error in _schema().iter_errors(str(path))
    ]
