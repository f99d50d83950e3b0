"""Lookup and reader of baselines, by name or path."""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePath
from typing import Any

from pytest_kbrel import resources
from pytest_kbrel.baselines.base import Baseline, BaselineCase
from pytest_kbrel.baselines.format import (
    ALLOWED,
    META,
    digest,
    facts_digest,
    load_tables,
    read_compressed,
    read_meta,
)
from pytest_kbrel.baselines.published import published_names, read_published
from pytest_kbrel.errors import BaselineError, nearest
from pytest_kbrel.records import PUBLISHED, Fingerprint, is_published
from pytest_kbrel.serialization import from_wire


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
        return read_published(name_or_path, search_path(rootdir))
    path = find_baseline(name_or_path, rootdir)
    meta = read_meta(path)
    try:
        outcomes = path / PurePath(meta["outcomes"]["file"]).name
        facts = sum(int(case["n"]) for case in meta["cases"].values())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(
            f"{path}: not a baseline of this format: {type(error).__name__}: {error}; allowed: {ALLOWED}"
        ) from None
    try:
        lines = read_compressed(outcomes, facts)
    except (OSError, ValueError) as error:
        raise BaselineError(
            f"{outcomes}: cannot be read: {error}; allowed: the file as it was written"
        ) from None
    try:
        if digest(lines) != meta["outcomes"]["sha256"]:
            raise BaselineError(
                f"{outcomes}: found digest {digest(lines)[:12]}, {META} was written with "
                f"{meta['outcomes']['sha256'][:12]}; allowed: two files of one run"
            )
        return _baseline(path, meta, lines)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(
            f"{path}: not a baseline of this format: {type(error).__name__}: {error}; allowed: {ALLOWED}"
        ) from None


def search_path(rootdir: Path) -> tuple[Path, ...]:
    """Return the folders in which names are looked up: the project's own, then the one that ships."""
    return tuple(dict.fromkeys((rootdir / "baselines", resources.baselines())))


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
        what = "a file" if path.exists() else "nothing"
        raise BaselineError(f"{path}: {what} is there; allowed: {ALLOWED}")
    folders = search_path(rootdir)
    for folder in folders:
        if (folder / name_or_path).is_dir():
            return folder / name_or_path
    names = sorted({path.parent.name for folder in folders for path in folder.glob(f"*/{META}")})
    # A paper's model may be asked for by its own name.
    papers = [name for name in published_names(folders) if name_or_path.lower() in name.split("/")[2:]]
    hint = f"; did you mean {' or '.join(map(repr, papers[:3]))}?" if papers else nearest(name_or_path, names)
    if Path(name_or_path, META).is_file():
        hint = f"; as a path it is written ./{name_or_path}"
    raise BaselineError(
        f"no baseline is called {name_or_path!r} in {folders[0]} or among those that ship; "
        f"found: {', '.join(names)}; allowed: one of these, or a path with a slash{hint}"
    )


def _baseline(path: Path, meta: dict[str, Any], lines: bytes) -> Baseline:
    cases: dict[str, Any] = meta["cases"]
    tables = load_tables(lines)
    if unknown := sorted(tables.keys() - cases.keys()):
        raise ValueError(f"{META} does not name {unknown[0]}")
    for key, case in cases.items():
        table = tables[key]
        if facts_digest(table.rows) != case["facts"] or list(table.columns) != case["columns"]:
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
                table=tables[key],
                metrics=_figures(case["metrics"]),
                settings=tuple(sorted((str(name), str(value)) for name, value in case["settings"].items())),
                noise=_noise(case),
            )
            for key, case in cases.items()
        },
        aggregates=tuple((str(key), _noise(entry)) for key, entry in meta.get("aggregates", {}).items()),
    )


def _noise(entry: dict[str, Any]) -> tuple[tuple[str, float], ...]:
    floors = _figures(entry.get("noise", {"metrics": {}})["metrics"])
    return tuple((name, floor) for name, floor in floors if floor is not None)


def _figures(metrics: dict[str, Any]) -> tuple[tuple[str, float | None], ...]:
    """Return figures by name; ``None`` stands for one that no fact has."""
    for name, value in metrics.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}, which is no finite number")
    return tuple(sorted(metrics.items()))
