"""Published baselines: what a paper prints about one model, metric by metric.

They lie in ``published/PAPER/MODEL.json`` or ``published/PAPER/MODEL/SETTING.json`` below the project's own
``baselines`` folder or the one that ships, and are named by that path without its ending.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.baselines.base import Baseline, PublishedCase, PublishedFigure
from pytest_kbrel.errors import BaselineError, nearest
from pytest_kbrel.records import PUBLISHED
from pytest_kbrel.untrusted import read_json

SCHEMA_VERSION = 1
SUFFIX = ".json"
_ALLOWED = "a file as it ships in baselines/published"


def read_published(name: str, search_path: Sequence[Path]) -> Baseline:
    """Read the published figures called ``name`` from the first of the folders ``search_path`` that has them.

    Raises ``BaselineError`` when none has, or when the file is not in this format.
    """
    for shelf in search_path:
        path = shelf / f"{name}{SUFFIX}"
        if path.is_file():
            return _read(path)
    names = published_names(search_path)
    below = [other for other in names if other.startswith(f"{name.rstrip('/')}/")]
    shown = below or sorted({"/".join(other.split("/")[:2]) + "/..." for other in names})
    hint = "" if below else nearest(name, names)
    raise BaselineError(
        f"no published figures are called {name!r} in {' or '.join(str(shelf) for shelf in search_path)}; "
        f"allowed: {', '.join(shown[:20]) or 'none are there'}{hint}"
    )


def published_names(search_path: Sequence[Path]) -> list[str]:
    """Return the names of all published figures in the folders ``search_path``."""
    return sorted(
        {
            path.relative_to(shelf).as_posix().removesuffix(SUFFIX)
            for shelf in search_path
            for path in (shelf / PUBLISHED).rglob(f"*{SUFFIX}")
        }
    )


def check_cases(baseline: Baseline, name: str, case_ids: Sequence[str]) -> None:
    """Raise ``BaselineError`` when the paper called ``name`` has none of the cases with the ids ``asked``.

    No gate would then be judged against it, and nothing else would say so.
    """
    if case_ids and not set(case_ids) & set(baseline.cases):
        theirs = sorted({case.partition("[")[0] for case in baseline.cases})
        raise BaselineError(
            f"--kb-baseline: {name} has none of the cases of the suites ({_first(case_ids)}); found in it: "
            f"{', '.join(theirs)} cases ({_first(sorted(baseline.cases))}); allowed: figures of a paper that "
            "has some of them, or a blessed run"
        )


def _first(names: Sequence[str], count: int = 3) -> str:
    return ", ".join(names[:count]) + (", ..." if len(names) > count else "")


def _read(path: Path) -> Baseline:
    try:
        content: Any = read_json(path)
    except (OSError, ValueError) as error:
        raise BaselineError(f"{path}: cannot be read: {error}; allowed: {_ALLOWED}") from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if type(version) is not int or version > SCHEMA_VERSION:
        raise BaselineError(
            f"{path}: found schema_version {version!r}; allowed: at most {SCHEMA_VERSION}, {_ALLOWED}"
        )
    try:
        paper = str(content["paper"])
        cases = {case_id: _case(case_id, entry, paper) for case_id, entry in content["cases"].items()}
        settings = {"model": str(content["model"]), "setting": str(content.get("setting", ""))}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BaselineError(
            f"{path}: no published figures of this format: {type(error).__name__}: {error}; "
            f"allowed: {_ALLOWED}"
        ) from None
    return Baseline(
        path=path,
        reason=str(content.get("note", "")),
        model=None,
        settings=tuple(sorted(settings.items())),
        cases=cases,
        paper=paper,
    )


def _case(case_id: str, entry: dict[str, Any], paper: str) -> PublishedCase:
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
