"""The two files of a blessed run and what both their writer and their reader go by.

``baseline.json`` is readable and diffable: what was blessed, why, and the metrics of every case.
``outcomes-DIGEST.jsonl.xz`` has the outcomes of every fact, for pairing
(:mod:`~pytest_kbrel.baselines.outcomes_file`). The first holds the second's digest, so two
halves of different runs are never taken for a whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

from pytest_kbrel.errors import BaselineError
from pytest_kbrel.records import Outcome
from pytest_kbrel.untrusted import read_json

SCHEMA_VERSION = 2
META = "baseline.json"
# Files that older versions wrote, and that are taken away when a baseline is written anew.
OLDER = ("outcomes.jsonl.gz",)
ALLOWED = "a folder that --kb-baseline-update wrote"


def read_meta(path: Path, *, oldest: int = SCHEMA_VERSION) -> dict[str, Any]:
    """Read the readable half of the baseline in ``path``, of a schema version from ``oldest`` to ours."""
    place = path / META
    try:
        meta: Any = read_json(place)
    except FileNotFoundError:
        raise BaselineError(f"{path}: has no {META}; allowed: {ALLOWED}") from None
    except (OSError, ValueError) as error:
        raise BaselineError(f"{place}: cannot be read: {error}; allowed: {ALLOWED}") from None
    version = meta.get("schema_version") if isinstance(meta, dict) else None
    if type(version) is not int or "outcomes" not in meta:
        raise BaselineError(f"{place}: is no kbrel baseline; allowed: {ALLOWED}")
    if version > SCHEMA_VERSION:
        raise BaselineError(
            f"{place}: found schema_version {version}, written by pytest-kbrel {meta.get('kbrel_version')}; "
            f"allowed: at most {SCHEMA_VERSION}: update pytest-kbrel, or bless again"
        )
    if version < oldest:
        raise BaselineError(
            f"{place}: found schema_version {version}, written by pytest-kbrel {meta.get('kbrel_version')}; "
            f"allowed: {SCHEMA_VERSION}, for older ones do not say how each fact was asked: bless again with "
            f"--kb-baseline-update={path.name}"
        )
    found: dict[str, Any] = meta
    return found


def case_key(suite: str, case_id: str) -> str:
    """Return a case's key, the same wherever the suite file lies: its name and the case's id."""
    return f"{PurePath(suite).name}::{case_id}"


def facts_digest(rows: Iterable[Outcome]) -> str:
    """Return one digest of the fact ids of ``rows``, whatever their order."""
    return digest("\n".join(sorted(row.fact_id for row in rows)).encode("utf-8"))


def digest(data: bytes) -> str:
    """Return the SHA-256 of ``data`` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
