"""Lookup and reader of baselines, by name or path: blessed runs, and what papers print about one model.

The figures of a paper lie in ``published/PAPER/MODEL.json`` or ``published/PAPER/MODEL/SETTING.json`` below
the project's own ``baselines`` folder or the one that ships, and are named by that path without its ending.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from pytest_kbrel import resources
from pytest_kbrel.baselines.base import (
    Baseline,
    BaselineCase,
    PublishedCase,
    PublishedFigure,
)
from pytest_kbrel.baselines.format import (
    ALLOWED,
    META,
    PACK,
    digest,
    load_tables,
    read_compressed,
    read_meta,
)
from pytest_kbrel.errors import BaselineError, nearest
from pytest_kbrel.records import PUBLISHED, Fingerprint, Json, Pairs, is_published
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.untrusted import UNPACKED, read_bytes, read_json

_VERSION = 1
_SUFFIX = ".json"
# What leads the digest that a pack must have.
_PINNED = "@sha256:"
_ALLOWED_FIGURES = "a file as it ships in baselines/published"


def baseline_directory(name_or_path: str, rootdir: Path) -> Path:
    """Return the folder that a NAME (``<rootdir>/baselines/NAME``) or a PATH (itself) stands for.

    Raises ``BaselineError`` for the name of published figures: no run may be blessed as what a paper prints.
    """
    if is_published(name_or_path):
        raise BaselineError(
            f"{name_or_path!r} stands for figures of a paper, which no run replaces; allowed: a name that "
            f"does not begin with {PUBLISHED}"
        )
    return (
        rootdir / "baselines" / name_or_path
        if _is_name(name_or_path)
        else _path(name_or_path)
    )


def read_baseline(name_or_path: str, rootdir: Path) -> Baseline:
    """Read a baseline: a NAME in ``<rootdir>/baselines`` or among those that ship, or a PATH.

    Behind the name of a pack ``@sha256:`` and its digest may stand. A name that begins with ``published/`` stands for the figures of a paper, all others for blessed runs.

    Raises ``BaselineError`` when there is none, or when it is unreadable, foreign, newer than this version
    reads, cut short, or made of halves that do not belong together.
    """
    if is_published(name_or_path):
        return read_published(name_or_path, search_path(rootdir))
    path = find_baseline(name_or_path, rootdir)
    meta, is_pack = read_meta(path), path.is_file()
    try:
        outcomes = path if is_pack else path / PurePath(meta["outcomes"]["file"]).name
        facts = sum(int(case["n"]) for case in meta["cases"].values())
        lines = _outcome_lines(outcomes, facts, name_or_path)
        if is_pack:
            lines = lines.partition(b"\n")[2]
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


def _outcome_lines(outcomes: Path, facts: int, name: str) -> bytes:
    try:
        return read_compressed(outcomes, facts)
    except FileNotFoundError:
        raise BaselineError(
            f"{outcomes}: is missing; allowed: the file as it was written; restore it, or bless again with "
            f"--kb-baseline-update={name}"
        ) from None
    except (OSError, ValueError) as error:
        raise BaselineError(
            f"{outcomes}: cannot be read: {error}; allowed: the file as it was written"
        ) from None


def search_path(rootdir: Path) -> tuple[Path, ...]:
    """Return the folders in which names are looked up: the project's own, then the one that ships."""
    return tuple(dict.fromkeys((rootdir / "baselines", resources.baselines())))


def _is_name(name_or_path: str) -> bool:
    return not name_or_path.startswith((".", "~")) and not set(name_or_path) & {
        "/",
        os.sep,
    }


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise BaselineError(f"{text}: {error}; allowed: {ALLOWED}") from None


def _may_be_baseline(path: Path) -> bool:
    return path.is_dir() or (path.suffix == PACK and path.is_file())


def find_baseline(
    name_or_path: str,
    rootdir: Path,
    *,
    allowed: str = ALLOWED,
    others: Sequence[str] = (),
) -> Path:
    """Return the folder or pack of a blessed run; ``BaselineError`` as :func:`read_baseline` if there is none.

    ``allowed`` says what else than a baseline a path may be, ``others`` are names of such.
    """
    name_or_path, pin, wanted = name_or_path.partition(_PINNED)
    if pin:
        path = find_baseline(name_or_path, rootdir, allowed=allowed, others=others)
        if (sha256 := sha256_of_pack(path)) != wanted:
            raise BaselineError(
                f"{path}: found the sha256 {sha256 or 'of no file, but a folder'}; allowed: {wanted!r}, "
                "which was asked for"
            )
        return path
    if not _is_name(name_or_path):
        path = _path(name_or_path)
        if _may_be_baseline(path):
            return path
        what = "a file" if path.exists() else "nothing"
        beside = (
            path.parent.iterdir() if what == "nothing" and path.parent.is_dir() else ()
        )
        hint = nearest(
            path.name, [of.name for of in sorted(beside) if _may_be_baseline(of)]
        )
        raise BaselineError(f"{path}: {what} is there; allowed: {allowed}{hint}")
    folders = search_path(rootdir)
    for path in (
        folder / name
        for folder in folders
        for name in (name_or_path, f"{name_or_path}{PACK}")
    ):
        if _may_be_baseline(path):
            return path
    names = sorted(
        {path.parent.name for folder in folders for path in folder.glob(f"*/{META}")}
        | {path.stem for folder in folders for path in folder.glob(f"*{PACK}")}
    )
    # A paper's model may be asked for by its own name.
    papers = [
        name
        for name in published_names(folders)
        if name_or_path.lower() in name.split("/")[2:]
    ]
    hint = (
        f"; did you mean {' or '.join(map(repr, papers[:3]))}?"
        if papers
        else nearest(name_or_path, [*names, *others])
    )
    if Path(name_or_path, META).is_file():
        hint = f"; as a path it is written ./{name_or_path}"
    raise BaselineError(
        f"no baseline is called {name_or_path!r} in {folders[0]} or among those that ship; "
        f"found: {', '.join(names)}; allowed: one of these, or a path with a slash{hint}"
    )


def is_there(name_or_path: str, rootdir: Path) -> bool:
    """Return True if :func:`find_baseline` finds one."""
    try:
        return find_baseline(name_or_path, rootdir).exists()
    except BaselineError:
        return False


def sha256_of_pack(path: Path) -> str:
    """Return the SHA-256 of a pack, empty for a folder."""
    return digest(read_bytes(path, UNPACKED)) if path.is_file() else ""


def _baseline(path: Path, meta: Json, lines: bytes) -> Baseline:
    cases: Json = meta["cases"]
    tables = load_tables(lines)
    provenance = meta["provenance"]
    return Baseline(
        path=path,
        sha256=sha256_of_pack(path),
        kbrel_version=str(meta["kbrel_version"]),
        created=str(meta["created"]),
        reason=str(provenance["reason"]),
        commit=str(provenance["commit"]),
        versions=_texts(provenance["versions"]),
        model=from_wire(Fingerprint, meta["model"]),
        settings=_texts(meta["settings"]),
        helpers=tuple(
            from_wire(Fingerprint, helper) for helper in meta.get("helpers", [])
        ),
        cases={
            key: BaselineCase(
                table=tables[key],
                metrics=_figures(case["metrics"]),
                settings=_texts(case["settings"]),
            )
            for key, case in cases.items()
        },
    )


def _texts(pairs: Json) -> Pairs:
    return tuple(sorted((str(name), str(value)) for name, value in pairs.items()))


def _figures(metrics: Json) -> tuple[tuple[str, float | None], ...]:
    """Return figures by name; ``None`` stands for one that no fact has."""
    for name, value in metrics.items():
        if value is not None and (
            type(value) not in (int, float) or not math.isfinite(value)
        ):
            raise ValueError(f"{name} is {value!r}, which is no finite number")
    return tuple(sorted(metrics.items()))


def read_published(name: str, folders: Sequence[Path]) -> Baseline:
    """Read the published figures called ``name`` from the first of ``folders`` that has them.

    Raises ``BaselineError`` when none has, or when the file is not in this format.
    """
    for folder in folders:
        path = folder / f"{name}{_SUFFIX}"
        if path.is_file():
            return _read_figures(path)
    names = published_names(folders)
    below = [other for other in names if other.startswith(f"{name.rstrip('/')}/")]
    shown = below or sorted(
        {"/".join(other.split("/")[:2]) + "/..." for other in names}
    )
    hint = "" if below else nearest(name, names)
    raise BaselineError(
        f"no published figures are called {name!r} in {' or '.join(str(folder) for folder in folders)}; "
        f"allowed: {', '.join(shown[:20]) or 'none are there'}{hint}"
    )


def published_names(folders: Sequence[Path]) -> list[str]:
    """Return the names of all published figures in ``folders``."""
    return sorted(
        {
            path.relative_to(folder).as_posix().removesuffix(_SUFFIX)
            for folder in folders
            for path in (folder / PUBLISHED).rglob(f"*{_SUFFIX}")
        }
    )


def check_published(baseline: Baseline, name: str, case_ids: Sequence[str]) -> None:
    """Raise ``BaselineError`` when the paper called ``name`` has none of the cases with the ids ``asked``.

    No gate would then be judged against it, and nothing else would say so.
    """
    if case_ids and not set(case_ids) & set(baseline.published):
        theirs = sorted({case.partition("[")[0] for case in baseline.published})
        raise BaselineError(
            f"--kb-baseline: {name} has none of the cases of the suites ({_first(case_ids)}); found in it: "
            f"{', '.join(theirs)} cases ({_first(sorted(baseline.published))}); allowed: figures of a paper that "
            "has some of them, or a blessed run"
        )


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _read_figures(path: Path) -> Baseline:
    try:
        content: Any = read_json(path)
    except (OSError, ValueError) as error:
        raise BaselineError(
            f"{path}: cannot be read: {error}; allowed: {_ALLOWED_FIGURES}"
        ) from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if type(version) is not int or version > _VERSION:
        raise BaselineError(
            f"{path}: found schema_version {version!r}; allowed: at most {_VERSION}, {_ALLOWED_FIGURES}"
        )
    try:
        paper = str(content["paper"])
        cases = {
            case_id: _paper_case(case_id, entry, paper)
            for case_id, entry in content["cases"].items()
        }
        settings = {
            "model": str(content["model"]),
            "setting": str(content.get("setting", "")),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(
            f"{path}: no published figures of this format: {type(error).__name__}: {error}; "
            f"allowed: {_ALLOWED_FIGURES}"
        ) from None
    return Baseline(
        path=path,
        reason=str(content.get("note", "")),
        model=None,
        settings=tuple(sorted(settings.items())),
        published=cases,
        paper=paper,
    )


def _paper_case(case_id: str, entry: Json, paper: str) -> PublishedCase:
    figures = []
    for name, figure in entry["figures"].items():
        value, n = float(figure["value"]), int(figure.get("n", 0))
        if not math.isfinite(value) or n < 0 or (n and not 0 <= value <= 1):
            raise ValueError(f"{name} of {case_id} is {figure}")
        source = f"{paper}, Table {figure['table']}"
        figures.append(PublishedFigure(name=name, value=value, source=source, n=n))
    return PublishedCase(
        id=case_id,
        figures=tuple(figures),
        questions=int(entry.get("questions", 0)),
        members=tuple(map(str, entry.get("members", ()))),
    )
