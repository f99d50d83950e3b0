"""Baselines: find and read them."""

from __future__ import annotations

import gzip
import json
import math
import os
import typing
import zlib
from pathlib import Path
from typing import Any

from pytest_kbrel import bundled
from pytest_kbrel.baselines.base import Baseline, BaselineCase
from pytest_kbrel.baselines.layout import ALLOWED, META, OUTCOMES, digest, facts_digest, read_meta
from pytest_kbrel.baselines.published import read_published
from pytest_kbrel.errors import BaselineError, nearest
from pytest_kbrel.records import PUBLISHED, Fingerprint, Label, Outcome, Table, is_published
from pytest_kbrel.wire import from_wire

_LABELS = frozenset(typing.get_args(Label))


def baseline_directory(name_or_path: str, rootdir: Path) -> Path:
    """Return the folder that a NAME (``<rootdir>/baselines/NAME``) or a PATH (itself) stands for.

    Raises ``BaselineError`` for the name of published figures: no run may be blessed as what a paper prints.
    """
    if is_published(name_or_path):
        raise BaselineError(
            f"{name_or_path!r} stands for figures of a paper, which no run replaces; allowed: a name that "
            f"does not begin with {PUBLISHED}"
        )
    return rootdir / "baselines" / name_or_path if _is_name(name_or_path) else _path(name_or_path)


def read_baseline(name_or_path: str, rootdir: Path) -> Baseline:
    """Read a baseline: a NAME in ``<rootdir>/baselines`` or among those that ship, or a PATH.

    A name that begins with ``published/`` stands for the figures of a paper, all others for blessed runs.

    Raises ``BaselineError`` when there is none, or when it is unreadable, foreign, newer than this version
    reads, cut short, or made of halves that do not belong together.
    """
    if is_published(name_or_path):
        return read_published(name_or_path, shelves(rootdir))
    path = find_baseline(name_or_path, rootdir)
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


def shelves(rootdir: Path) -> tuple[Path, ...]:
    """Return the folders in which names are looked up: the project's own, then the one that ships."""
    return tuple(dict.fromkeys((rootdir / "baselines", bundled.baselines())))


def _is_name(name_or_path: str) -> bool:
    return not name_or_path.startswith((".", "~")) and not set(name_or_path) & {"/", os.sep}


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise BaselineError(f"{text}: {error}; allowed: {ALLOWED}") from None


def find_baseline(name_or_path: str, rootdir: Path) -> Path:
    """Return the folder of a blessed run; ``BaselineError`` as :func:`read_baseline` when there is none."""
    if not _is_name(name_or_path):
        path = _path(name_or_path)
        if path.is_dir():
            return path
        found = "a file" if path.exists() else "nothing"
        raise BaselineError(f"{path}: {found} is there; allowed: {ALLOWED}")
    places = shelves(rootdir)
    for shelf in places:
        if (shelf / name_or_path).is_dir():
            return shelf / name_or_path
    names = sorted({path.parent.name for shelf in places for path in shelf.glob(f"*/{META}")})
    hint = nearest(name_or_path, names)
    if Path(name_or_path, META).is_file():
        hint = f"; as a path it is written ./{name_or_path}"
    raise BaselineError(
        f"no baseline is called {name_or_path!r} in {places[0]} or among those that ship; "
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
        helpers=tuple(from_wire(Fingerprint, helper) for helper in meta.get("helpers", [])),
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
