"""Runs that other tools recorded, read as scored answers: which format a file has, and its reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign.eval_ever import KEYS, read_eval_ever
from pytest_kbrel.foreign.inspect_logs import read_inspect
from pytest_kbrel.foreign.lm_eval import read_lm_eval
from pytest_kbrel.foreign.plain import TABLES, read_plain, rows_of
from pytest_kbrel.foreign.scored import (
    ONE_TASK,
    SCORE,
    Answer,
    ScoredRun,
    Scores,
    Wanted,
    is_unbounded,
    names_metric,
    scored_run,
)

ALLOWED = (
    "lm_eval's samples_*.jsonl or their folder, Inspect's logs, instances of Every Eval Ever, "
    "CSV, TSV or JSON lines with an id and a score"
)
_READERS: Mapping[str, Callable[[Path, Wanted], Iterator[Answer]]] = {
    "lm_eval": read_lm_eval,
    "every_eval_ever": read_eval_ever,
    "inspect_ai": read_inspect,
    "plain": read_plain,
}
_HEAD = 2000


def read_run(path: Path, wanted: Wanted) -> ScoredRun:
    """Read a run of another tool; raises ``KbrelError`` where its format is unknown or it is broken."""
    form = format_of(path)
    if form is None:
        raise KbrelError(f"{path}: is no run of a known tool; allowed: {ALLOWED}")
    if wanted.pool and form != "lm_eval":
        raise KbrelError(
            f"{path}: --pool {wanted.pool[0]}: has no groups; allowed: a run of lm_eval"
        )
    tool = path.suffix.removeprefix(".") if form == "plain" else form
    try:
        return scored_run(path, tool, _READERS[form](path, wanted), wanted)
    except (OSError, ValueError) as error:
        raise KbrelError(f"{path}: {error}") from None


def format_of(path: Path) -> str | None:
    """Return whose format a file or folder has, by its content; ``None`` where it is none of those read."""
    if path.is_dir():
        # lm_eval writes into a folder named after the model in the one that the user names.
        if any(path.glob("samples_*.jsonl")) or any(path.glob("*/samples_*.jsonl")):
            return "lm_eval"
        logs = (*path.glob("*.eval"), *path.glob("*.json"))
        is_log = any(
            of.suffix == ".eval" or format_of(of) == "inspect_ai" for of in logs
        )
        return "inspect_ai" if is_log else None
    if not path.is_file():
        return None
    if path.suffix in TABLES:
        return "plain"
    if path.suffix == ".jsonl":
        first = next((row for _, row in rows_of(path)), {})
        if "doc_id" in first and ("filtered_resps" in first or "resps" in first):
            return "lm_eval"
        return "every_eval_ever" if all(key in first for key in KEYS) else "plain"
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if path.suffix == ".eval" and head.startswith(b"PK"):
        return "inspect_ai"
    if path.suffix != ".json":
        return None
    if path.name.startswith("results_") and list(path.parent.glob("samples_*.jsonl")):
        return "lm_eval"
    if b'"evaluation_id"' in head and b'"source_metadata"' in head:
        return "every_eval_ever"
    is_log = all(key in head for key in (b'"status"', b'"eval"'))
    return "inspect_ai" if is_log and b'"kbrel_version"' not in head else None
