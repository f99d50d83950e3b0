"""Blessed runs: find and read them, and say what two models must share to be compared."""

from __future__ import annotations

import gzip
import json
import math
import os
import typing
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel import bundled
from pytest_kbrel.baselines.layout import (
    ALLOWED,
    META,
    OUTCOMES,
    case_key,
    digest,
    facts_digest,
    read_meta,
)
from pytest_kbrel.errors import BaselineError, nearest
from pytest_kbrel.records import Case, CaseResult, Fingerprint, Label, Outcome, Table, record
from pytest_kbrel.wire import from_wire, to_wire

_LABELS = frozenset(typing.get_args(Label))

# What two models must share for any case to be comparable; prompts are compared fact by fact.
MUST_BE_EQUAL = ("scoring_version", "chat_template")


@record
class BaselineCase:
    """One case of a blessed run. Its rows have no question and no expected answer: the suite has these."""

    key: str
    table: Table
    metrics: tuple[tuple[str, float | None], ...]


@record
class Baseline:
    """A blessed run. ``versions`` and ``settings`` are pairs of name and value."""

    path: Path
    kbrel_version: str
    created: str
    reason: str
    commit: str
    versions: tuple[tuple[str, str], ...]
    model: Fingerprint
    settings: tuple[tuple[str, str], ...]
    cases: Mapping[str, BaselineCase]

    def case(self, case: Case | CaseResult | str) -> BaselineCase | None:
        """Return the same case of this run, by record, node id or key; ``None`` when it has no such case."""
        key = case if isinstance(case, str) else f"{case.suite}::{case.id}"
        return self.cases.get(case_key(*key.split("::", 1)) if "::" in key else key)


def fingerprint_differences(a: Fingerprint, b: Fingerprint) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what two fingerprints must share and do not, and what else differs, each in words."""
    must: list[str] = []
    may: list[str] = []
    ours, theirs = to_wire(a), to_wire(b)
    for name, value in ours.items():
        if value != theirs[name]:
            words = f"{name} ({value!r} and {theirs[name]!r})"
            (must if name in MUST_BE_EQUAL else may).append(words)
    return tuple(must), tuple(may)


def baseline_directory(name_or_path: str, rootdir: Path) -> Path:
    """Return the folder that a NAME (``<rootdir>/baselines/NAME``) or a PATH (itself) stands for."""
    return rootdir / "baselines" / name_or_path if _is_name(name_or_path) else _path(name_or_path)


def read_baseline(name_or_path: str, rootdir: Path) -> Baseline:
    """Read a blessed run: a NAME in ``<rootdir>/baselines`` or among those that ship, or a PATH.

    Raises ``BaselineError`` when there is none, or when it is unreadable, foreign, newer than this version
    reads, cut short, or made of halves that do not belong together.
    """
    path = _find(name_or_path, rootdir)
    meta = read_meta(path)
    try:
        lines = gzip.decompress((path / OUTCOMES).read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise BaselineError(
            f"{path / OUTCOMES}: cannot be read: {error}; allowed: the file as it was written"
        ) from None
    try:
        if digest(lines) != meta["outcomes"]["sha256"]:
            raise BaselineError(
                f"{path / OUTCOMES}: found digest {digest(lines)[:12]}, {META} was written with "
                f"{meta['outcomes']['sha256'][:12]}; allowed: two files of one run"
            )
        return _baseline(path, meta, lines)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(
            f"{path}: not a baseline of this format: {type(error).__name__}: {error}; allowed: {ALLOWED}"
        ) from None


def _is_name(name_or_path: str) -> bool:
    return not name_or_path.startswith((".", "~")) and not set(name_or_path) & {"/", os.sep}


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise BaselineError(f"{text}: {error}; allowed: {ALLOWED}") from None


def _find(name_or_path: str, rootdir: Path) -> Path:
    if not _is_name(name_or_path):
        path = _path(name_or_path)
        if path.is_dir():
            return path
        found = "a file" if path.exists() else "nothing"
        raise BaselineError(f"{path}: {found} is there; allowed: {ALLOWED}")
    shelves = (rootdir / "baselines", bundled.baselines())
    for shelf in shelves:
        if (shelf / name_or_path).is_dir():
            return shelf / name_or_path
    names = sorted({path.parent.name for shelf in shelves for path in shelf.glob(f"*/{META}")})
    hint = nearest(name_or_path, names)
    if Path(name_or_path, META).is_file():
        hint = f"; as a path it is written ./{name_or_path}"
    raise BaselineError(
        f"no baseline is called {name_or_path!r} in {shelves[0]} or among those that ship; "
        f"found: {', '.join(names) or 'none'}; allowed: one of these, or a path with a slash{hint}"
    )


def _baseline(path: Path, meta: dict[str, Any], lines: bytes) -> Baseline:
    cases: dict[str, Any] = meta["cases"]
    rows: dict[str, list[Outcome]] = {key: [] for key in cases}
    for line in lines.decode("utf-8").splitlines():
        entry = json.loads(line)
        rows[entry["case"]].append(_outcome(entry))
    for key, case in cases.items():
        widths = {len(row.values) for row in rows[key]}
        if facts_digest(rows[key]) != case["facts"] or widths - {len(case["columns"])}:
            raise ValueError(f"the outcomes of {key} are not those that {META} names")
    provenance = meta["provenance"]
    return Baseline(
        path=path,
        kbrel_version=str(meta["kbrel_version"]),
        created=str(meta["created"]),
        reason=str(provenance["reason"]),
        commit=str(provenance["commit"]),
        versions=tuple(sorted((str(name), str(value)) for name, value in provenance["versions"].items())),
        model=from_wire(Fingerprint, meta["model"]),
        settings=tuple(sorted((str(name), str(value)) for name, value in meta["settings"].items())),
        cases={
            key: BaselineCase(
                key=key,
                table=Table(columns=tuple(case["columns"]), rows=tuple(rows[key])),
                metrics=tuple(sorted(case["metrics"].items())),
            )
            for key, case in cases.items()
        },
    )


def _outcome(entry: dict[str, Any]) -> Outcome:
    values = tuple(map(float, entry["values"]))
    if entry["label"] not in _LABELS or not all(map(math.isfinite, values)):
        raise ValueError(f"{entry} is no outcome")
    return Outcome(
        fact_id=str(entry["fact"]),
        question="",
        expected="",
        answer=str(entry["answer"]),
        label=entry["label"],
        values=values,
        prompt_digest=str(entry["prompt"]),
    )
