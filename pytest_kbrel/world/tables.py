"""The hand-written tables of this room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent


def read_table(name: str) -> dict[str, Any]:
    """Return a YAML file of this room."""
    text = (HERE / name).read_text(encoding="utf-8")
    return dict(yaml.load(text, yaml.CSafeLoader))
