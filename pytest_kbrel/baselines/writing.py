"""How a blessed run is written: whole or not at all, and never over something that it does not replace."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pytest_kbrel.baselines.layout import (
    META,
    OUTCOMES,
    SCHEMA_VERSION,
    case_key,
    digest,
    facts_digest,
    read_meta,
)
from pytest_kbrel.errors import BaselineError
from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.wire import to_wire

_BLESSABLE = "allowed: a complete run without errors"


def write_baseline(directory: Path, run: Run, reason: str = "") -> None:
    """Write ``run`` as the baseline ``directory``, whole or not at all; an older one there is replaced.

    Other files in the folder are kept. Raises ``BaselineError`` when the run is not complete or not free of
    errors, when it lacks a suite that the older baseline has, or as :func:`check_target` does.
    """
    outcomes, cases = _outcomes(_blessable(directory, run))
    older = _older(directory)
    if dropped := sorted({_suite(key) for key in older} - {_suite(key) for key in cases}):
        raise BaselineError(
            f"{directory}: no baseline was written: the one that is there has {', '.join(dropped)}, which "
            "this run lacks; allowed: a run of all its suites, or another name"
        )
    data = b"".join(outcomes)
    environment = dict(run.environment)
    meta = {
        "schema_version": SCHEMA_VERSION,
        "kbrel_version": run.kbrel_version,
        "created": run.created,
        "provenance": {
            "reason": reason,
            "commit": environment.pop("commit", ""),
            "versions": environment,
        },
        "model": to_wire(run.model),
        "settings": dict(run.settings),
        # Only where there are any: a run that rules judged is written as it always was.
        **({"helpers": to_wire(run.helpers)} if run.helpers else {}),
        "outcomes": {"file": OUTCOMES, "sha256": digest(data)},
        "cases": cases,
        "aggregates": {_key(case): {"metrics": _metrics(case)} for case in run.cases if case.aggregate},
    }
    readable = json.dumps(meta, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        _replace(directory.resolve(), {META: readable.encode("utf-8"), OUTCOMES: _packed(data)})
    except OSError as error:
        raise BaselineError(f"{directory}: the baseline cannot be written: {error}") from None


def check_target(directory: Path) -> None:
    """Raise ``BaselineError`` when no run could be blessed as ``directory``, as far as is known beforehand.

    A file is there, or a folder with something else than a baseline that this version reads, or no folder
    can be made there.
    """
    _older(directory)


def _older(directory: Path) -> tuple[str, ...]:
    """Return the keys of the cases of the baseline in ``directory``; none where a new one may be made."""
    target = directory.resolve()
    try:
        if target.exists() and (not target.is_dir() or _is_foreign(target)):
            raise BaselineError(
                f"{directory}: something else is there and is left as it is; "
                "allowed: a new name, or a baseline"
            )
        # The folder is replaced as a whole, so that the one above it is written to.
        above = next(parent for parent in target.parents if parent.exists())
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            found = "cannot be written to" if above.is_dir() else "is a file"
            raise BaselineError(
                f"{directory}: no baseline can be written: {above} {found}; allowed: a folder that can"
            )
        if not (target / META).exists():
            return ()
    except OSError as error:
        raise BaselineError(
            f"{directory}: no baseline can be written: {error}; allowed: a folder that can"
        ) from None
    cases = read_meta(target).get("cases")
    if not isinstance(cases, dict):
        raise BaselineError(
            f"{directory}: {META} names no cases; it is left as it is; allowed: a new name, or a baseline"
        )
    return tuple(cases)


def _suite(key: str) -> str:
    return key.partition("::")[0]


def _blessable(directory: Path, run: Run) -> list[CaseResult]:
    cases = sorted((case for case in run.cases if not case.aggregate), key=_key)
    keys = [_key(case) for case in cases]
    why = ""
    if run.model is None:
        why = "the run has no model"
    elif not cases:
        why = "the run has no case"
    elif not run.complete:
        why = "the run is not complete: not every slice of every suite was asked and decided"
    elif run.problems:
        why = f"the run had problems: {run.problems[0]}"
    elif broken := [case.id for case in run.cases if case.verdict == "invalid" or case.errors]:
        why = f"these cases are not sound: {', '.join(broken)}"
    elif twice := sorted({key for key in keys if keys.count(key) > 1}):
        why = f"two suites of the same file name have the case {twice[0]}"
    if why:
        raise BaselineError(f"{directory}: no baseline was written: {why}; {_BLESSABLE}")
    return cases


def _outcomes(cases: Iterable[CaseResult]) -> tuple[list[bytes], dict[str, Any]]:
    lines: list[bytes] = []
    described = {}
    for case in cases:
        key = _key(case)
        described[key] = {
            "columns": list(case.table.columns),
            "facts": facts_digest(case.table.rows),
            "n": len(case.table.rows),
            "metrics": _metrics(case),
        }
        lines += _lines(key, case)
    return lines, described


def _lines(key: str, case: CaseResult) -> Iterator[bytes]:
    for row in sorted(case.table.rows, key=lambda row: row.fact_id):
        entry = {
            "case": key,
            "fact": row.fact_id,
            "label": row.label,
            "answer": row.answer,
            "prompt": row.prompt_digest,
            "values": [int(value) if value.is_integer() else value for value in row.values],
        }
        text = json.dumps(entry, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        yield text.encode("ascii") + b"\n"


def _key(case: CaseResult) -> str:
    return case_key(case.suite, case.id)


def _metrics(case: CaseResult) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in case.metrics}


def _packed(data: bytes) -> bytes:
    buffer = io.BytesIO()
    # Neither time nor file name: the same run gives the same bytes.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def _replace(directory: Path, files: dict[str, bytes]) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        new, old = workshop / "new", workshop / "old"
        if directory.exists():
            shutil.copytree(directory, new)
        else:
            new.mkdir()
        for name, data in files.items():
            (new / name).write_bytes(data)
        if directory.exists():
            os.replace(directory, old)
        try:
            os.replace(new, directory)
        except OSError:
            if old.exists():
                os.replace(old, directory)
            raise
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _is_foreign(directory: Path) -> bool:
    return any(directory.iterdir()) and not (directory / META).is_file()
