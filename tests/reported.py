"""Reports and recorded responses as tests hold them against each other."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from pytest_kbrel.records import Exchange
from pytest_kbrel.store.lines import from_line


def comparable(report: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of ``report`` without what may differ between two equal runs.

    The rest is the same however the work was shared out.
    """
    stripped = copy.deepcopy(report)
    for key in ("created", "environment", "recorded", "files"):
        stripped.pop(key, None)
    for model in (stripped.get("model"), stripped.get("base"), *stripped["helpers"]):
        (model or {}).pop("device", None)
    for helper in stripped["helpers"]:
        # A server's version comes with its answers, and these may all come from the cache.
        helper.pop("backend_version", None)
    for case in stripped["cases"]:
        case.pop("duration", None)
    return stripped


def read_responses(path: Path) -> list[Exchange]:
    with path.open("rb") as stream:
        return list(map(from_line, stream))
