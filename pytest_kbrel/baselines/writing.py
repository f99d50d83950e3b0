"""Writer of blessed runs: whole or not at all, and never over something that it does not replace.

The outcomes get a name of their own contents and are written first. The readable file names them and is
replaced in one step. A process killed in between leaves the older run whole, and of two that bless at the
same time the last one stands.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from pytest_kbrel.baselines.comparability import KEPT
from pytest_kbrel.baselines.format import (
    META,
    SCHEMA_VERSION,
    case_key,
    digest,
    dump_tables,
    facts_digest,
    packed,
    read_meta,
)
from pytest_kbrel.errors import BaselineError
from pytest_kbrel.outputs import new_file, why_unwritable
from pytest_kbrel.records import CaseResult, Json, Run
from pytest_kbrel.serialization import to_wire

_BLESSABLE = "allowed: a complete run without errors"
_OURS = re.compile(r"outcomes-[0-9a-f]{12}\.jsonl\.xz|\.kbrel-[0-9a-f]+")
# In seconds. What another process wrote more recently may be about to be named.
_FORGOTTEN = 10.0
_GIT_SECONDS = 10.0


def write_baseline(directory: Path, run: Run, reason: str = "") -> None:
    """Write ``run`` as the baseline ``directory``, whole or not at all; an older one there is replaced.

    Other files in the folder are kept. Raises ``BaselineError`` when the run is not complete or not free of
    errors, when it lacks a suite that the older baseline has, or as :func:`check_target` does.
    """
    meta, data = _halves(directory, run, reason)
    older = check_target(directory)
    suites, former = (
        {key.partition("::")[0] for key in keys} for keys in (meta["cases"], older)
    )
    if dropped := sorted(former - suites):
        raise BaselineError(
            f"{directory}: no baseline was written: the one that is there has {', '.join(dropped)}, which "
            "this run lacks; allowed: a run of all its suites, or another name"
        )
    readable = (
        json.dumps(meta, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        + "\n"
    )
    try:
        replace_files(
            directory.resolve(),
            readable.encode("utf-8"),
            meta["outcomes"]["file"],
            packed(data),
        )
    except OSError as error:
        raise BaselineError(
            f"{directory}: the baseline cannot be written: {error}"
        ) from None


def write_pack(path: Path, run: Run, *, force: bool) -> str:
    """Write ``run`` as one file and return its SHA-256; the folder that it was decided again from is left out.

    Raises as :func:`write_baseline` and :func:`pytest_kbrel.outputs.new_file` do.
    """
    meta, data = _halves(path, replace(run, recorded=""), "")
    line = json.dumps(meta, sort_keys=True, allow_nan=False, separators=(",", ":"))
    content = packed(line.encode("ascii") + b"\n" + data)
    with new_file(path, force=force) as stream:
        stream.buffer.write(content)
    return digest(content)


def _halves(path: Path, run: Run, reason: str) -> tuple[Json, bytes]:
    """Return what ``baseline.json`` says of a run, and the lines of its outcomes."""
    results = _blessable(path, run)
    cases = {
        _key(case): {
            "columns": list(case.table.columns),
            "facts": facts_digest(case.table.rows),
            "n": len(case.table.rows),
            "metrics": case.figures,
            "settings": dict(case.settings),
        }
        for case in results
    }
    data = dump_tables((_key(case), case.table) for case in results)
    name = f"outcomes-{digest(data)[:12]}.jsonl.xz"
    # What was kept, and how long loading took, says nothing about the answers.
    environment = {name: value for name, value in run.environment if name not in KEPT}
    meta: Json = {
        "schema_version": SCHEMA_VERSION,
        "kbrel_version": run.kbrel_version,
        "created": run.created,
        "provenance": {
            "reason": reason,
            "commit": environment.pop("commit", ""),
            "versions": environment,
            # The folder of the responses that were decided again, if any were.
            **({"recorded": run.recorded} if run.recorded else {}),
        },
        "model": to_wire(run.model),
        "settings": dict(run.settings),
        # Only where there are any: a run that rules judged is written as it always was.
        **({"helpers": to_wire(run.helpers)} if run.helpers else {}),
        "outcomes": {"file": name, "sha256": digest(data)},
        "cases": cases,
        "aggregates": {
            _key(case): {"metrics": case.figures}
            for case in run.cases
            if case.aggregate
        },
    }
    return meta, data


def commit_of(folder: Path) -> str:
    """Return the commit that is checked out in ``folder``, with a note where tracked files were changed.

    Empty where there is no repository, or no git.
    """
    head = _git(folder, "rev-parse", "HEAD")
    if not head:
        return ""
    return (
        f"{head} with changes"
        if _git(folder, "status", "--porcelain", "--untracked-files=no")
        else head
    )


def check_target(directory: Path) -> tuple[str, ...]:
    """Return the keys of the cases of the baseline in ``directory``; none where a new one may be made.

    Raises ``BaselineError`` when no run could be blessed there, as far as is known beforehand: a file is
    there, or a folder with something else than a baseline that this version reads, or no folder can be made.
    """
    target = directory.resolve()
    try:
        if target.exists() and (not target.is_dir() or _is_foreign(target)):
            raise BaselineError(
                f"{directory}: something else is there and is left as it is; "
                "allowed: a new name, or a baseline"
            )
        if why := why_unwritable(target):
            raise OSError(why)
        if not (target / META).exists():
            return ()
    except OSError as error:
        raise BaselineError(
            f"{directory}: no baseline can be written: {error}; allowed: a folder that can"
        ) from None
    cases = read_meta(target, oldest=1).get("cases")
    if not isinstance(cases, dict):
        raise BaselineError(
            f"{directory}: {META} names no cases; it is left as it is; allowed: a new name, or a baseline"
        )
    return tuple(cases)


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
    elif broken := [
        case.id for case in run.cases if case.verdict == "invalid" or case.errors
    ]:
        why = f"these cases are not sound: {', '.join(broken)}"
    elif twice := sorted({key for key in keys if keys.count(key) > 1}):
        why = f"two suites of the same file name have the case {twice[0]}"
    if why:
        raise BaselineError(
            f"{directory}: no baseline was written: {why}; {_BLESSABLE}"
        )
    return cases


def _key(case: CaseResult) -> str:
    return case_key(case.suite, case.id)


def _is_foreign(directory: Path) -> bool:
    if (directory / META).is_file():
        return False
    return any(not is_ours(path.name) for path in directory.iterdir())


def is_ours(name: str) -> bool:
    """Return True if a file is part of a blessed run, or was to become one."""
    return bool(_OURS.fullmatch(name)) or name == META


def replace_files(directory: Path, meta: bytes, outcomes: str, data: bytes) -> None:
    """Put the readable file ``meta`` and the ``data`` of ``outcomes`` into ``directory``.

    Other people's files stay. Raises ``OSError`` where they cannot be written; the older run is then whole.
    """
    for name, content in ((outcomes, data), (META, meta)):
        with new_file(directory / name, force=True) as stream:
            stream.buffer.write(content)
    _clear(directory, outcomes)


def _clear(directory: Path, named: str) -> None:
    """Remove what older runs and killed processes left behind; ``named`` are the outcomes of this one."""
    for path in directory.iterdir():
        try:
            age = time.time() - path.stat().st_mtime
            kept = not is_ours(path.name) or path.name in (META, named)
            if age > _FORGOTTEN and not kept:
                path.unlink()
        except FileNotFoundError:
            continue


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, check=True, text=True, timeout=_GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""
    return done.stdout.strip()
