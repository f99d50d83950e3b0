"""The page of a run: what it shows besides the run is gathered, and a report folder's page is made anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_kbrel import resources
from pytest_kbrel.baselines import Baseline, read_baseline
from pytest_kbrel.baselines.reading import published_names, read_published
from pytest_kbrel.errors import BaselineError, KbrelError
from pytest_kbrel.outputs import write_text
from pytest_kbrel.records import PUBLISHED, Run
from pytest_kbrel.reports import OUTCOMES, PAGE, REPORT, RESPONSES
from pytest_kbrel.reports.html.page import report_html
from pytest_kbrel.reports.html.plots import Published
from pytest_kbrel.reports.json_report import check_file, read_report
from pytest_kbrel.session.outcomes import run_with_outcomes

_RELIABILITY = f"{PUBLISHED}reliable-kb/"
# The figures over all slices that the paper draws its models by.
_PUBLISHED_FIGURES = {"ncr"}


def page_of(run: Run, baseline: Baseline | None, folder: Path) -> str:
    """Return the page of ``run``, whose responses are in ``folder``."""
    measured = {
        value.name for case in run.cases if case.aggregate for value in case.metrics
    }
    tables = {
        case.nodeid: before.table
        for case in run.cases
        if baseline and not case.aggregate and (before := baseline.case(case))
    }
    return report_html(
        run,
        baseline=tables,
        responses=folder / RESPONSES,
        published=_published_models() if measured & _PUBLISHED_FIGURES else {},
    )


def rebuild_page(folder: Path, rootdir: Path) -> tuple[Path, list[str]]:
    """Write the page of the report in ``folder`` anew; return its path, and in words what it left out.

    The baseline is looked up in ``rootdir`` by the name that the report has. Where it is not there any more,
    or is another one now, the plots that pair facts with it are left out. Raises ``KbrelError`` where the
    report cannot be read, or its files are another run's.
    """
    report = read_report(folder)
    folder = folder.parent if folder.is_file() else folder
    run = run_with_outcomes(report, folder)
    if (folder / RESPONSES).is_file():
        check_file(report, folder / RESPONSES)
    left_out = [
        f"{what}, for there is no {folder / file}"
        for what, file in (
            ("plots over facts, and worst facts", OUTCOMES),
            ("the questions of worst facts", RESPONSES),
        )
        if not (folder / file).is_file()
    ]
    baseline, why = None, ""
    try:
        baseline = read_baseline(run.baseline, rootdir) if run.baseline else None
    except BaselineError as error:
        why = str(error)
    if baseline is not None and baseline.model != run.base:
        why = f"{run.baseline} is not what the run was compared with"
    if why:
        left_out.append(f"facts beside the baseline, for {why}")
        baseline = None
    try:
        page = page_of(run, baseline, folder)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise KbrelError(
            f"{folder / REPORT}: cannot be shown: {type(error).__name__}: {error}; "
            "allowed: a report as a run wrote it"
        ) from None
    if (folder / PAGE).is_symlink():
        # Whoever made the folder chose where it leads.
        (folder / PAGE).unlink()
    write_text(folder / PAGE, page, force=True)
    return folder / PAGE, [f"left out: {one}" for one in left_out]


def _published_models() -> Published:
    """Return the models of the paper on reliable knowledge bases, in each of its settings."""
    folders = (resources.baselines(),)
    models: dict[tuple[str, str], Mapping[str, float]] = {}
    for name in published_names(folders):
        if not name.startswith(_RELIABILITY):
            continue
        baseline = read_published(name, folders)
        settings = dict(baseline.settings)
        if case := baseline.published.get("reliability[overall]"):
            models[settings["model"], settings["setting"]] = {
                figure.name: figure.value for figure in case.figures
            }
    return models
