"""The models that ``kbrel compare`` puts side by side, and how their figures go together."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from pytest_kbrel.baselines import PublishedCase, find_baseline, read_baseline
from pytest_kbrel.baselines.format import ALLOWED as WRITTEN
from pytest_kbrel.baselines.format import META, read_meta
from pytest_kbrel.baselines.reading import published_names, search_path
from pytest_kbrel.catalogue.metrics import BESIDE, METRICS
from pytest_kbrel.catalogue.probes import PROBES, Probe, probe_named
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.metrics.correlations import correlations, joined
from pytest_kbrel.records import (
    CaseKind,
    CaseResult,
    MetricValue,
    ProbeName,
    is_published,
    record,
)
from pytest_kbrel.reports import REPORT, runs_beside
from pytest_kbrel.reports.comparison import Scatter
from pytest_kbrel.reports.json_report import read_report

ALLOWED = "a report folder, a report.json, a baseline's name or path, published/..., or a run of another tool"
Figures = Mapping[str, float | None]
Pairs = tuple[tuple[str, str], ...]
Key = tuple[str, str]
# What of a run's settings can change its figures.
_CHANGING = ("judge", "limit", "seed", "apply_chat_template")
# The size in the name of a model: 7b, 0.08B, 560m, and 1b3 for 1.3 billion.
_SIZE = re.compile(
    r"(?<![a-z0-9.])(\d{1,4})(?:\.(\d{1,3}))?([bm])(\d{1,3})?(?![a-z0-9])",
    re.IGNORECASE,
)
_UNITS = {"b": 1e9, "m": 1e6}
# A model has not nearly as many parameters, nor a case as many facts.
_MOST = 10**15


@record
class ComparedModel:
    """One model: its cases, by suite (empty for a paper's) and id, with its figures; ``about`` says what it is.

    ``settings`` are those of its run, empty for a paper. ``setting`` is the prompt setting of a paper that
    asks its models in several, else empty. ``spec`` is the model itself, ``parameters`` their number, 0 where
    it is not known: as recorded, of a paper's model as its name says. ``family`` is what models of several
    sizes have in common.
    """

    name: str
    about: str
    cases: Mapping[Key, CaseResult]
    settings: Pairs = ()
    setting: str = ""
    spec: str = ""
    parameters: int = 0
    family: str = ""

    @property
    def figures(self) -> dict[Key, Figures]:
        """Its figures by case and name."""
        return {
            key: {value.name: value.value for value in case.metrics}
            for key, case in self.cases.items()
        }


def case_of(
    key: Key,
    figures: Figures,
    *,
    n: int = 0,
    invalid: bool = False,
    label: str = "",
    settings: Pairs = (),
) -> CaseResult:
    """Return a case with the figures that were recorded of it, without intervals and gates."""
    suite, case_id = key
    probe, slice_name = probe_and_slice(case_id)
    is_pooled = case_id.startswith("pooled[")
    kind: CaseKind = "pooled" if is_pooled else "test"
    return CaseResult(
        id=case_id,
        suite=suite,
        probe=kind if probe is None else probe.name,
        slice=slice_name,
        label=label,
        verdict="invalid" if invalid else "pass",
        n=n,
        metrics=tuple(
            MetricValue(
                name=name,
                better=METRICS[name].better if name in METRICS else "higher",
                value=value,
            )
            for name, value in figures.items()
        ),
        aggregate=is_pooled if probe is None else probe.is_overall(slice_name),
        settings=settings,
    )


@record
class FigureTable:
    """One case that at least two models have: a row a metric, a value a model.

    ``differing`` are, in words, the settings and judges in which their runs differ; ``label`` is that of the
    relation that the case is about, empty where it is not known.
    """

    case: str
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    differing: str = ""
    label: str = ""

    @property
    def title(self) -> str:
        """The case with its label: ``monitor[P176 manufacturer]``."""
        return (
            f"{self.case.removesuffix(']')} {self.label}]" if self.label else self.case
        )


def read_models(sources: Sequence[str], rootdir: Path) -> tuple[ComparedModel, ...]:
    """Read all models that ``sources`` name; names below ``published/`` may be folders or patterns.

    Raises ``KbrelError`` where one cannot be read, or when there are fewer than two.
    """
    read = [model for source in sources for model in _read(source, rootdir)]
    # One that stands in a folder named beside it is one model.
    models = list({model.name: model for model in read}.values())
    if len(models) == 1 and len(sources) > 1:
        raise KbrelError(
            f"{models[0].name}: found more than once; allowed: two or more different models or runs"
        )
    if len(models) < 2:
        raise KbrelError(
            f"found {len(models)} model to compare; allowed: two or more, each {ALLOWED}"
        )
    return tuple(models)


def _read(source: str, rootdir: Path) -> list[ComparedModel]:
    if is_published(source):
        return _read_published(source, rootdir)
    path = Path(source).expanduser()
    if path.is_file() or (path / REPORT).is_file():
        return [_recorded(source, path, read_report(path), "report")]
    allowed = f"a report folder, or {WRITTEN}"
    folder = find_baseline(source, rootdir, allowed=allowed, others=runs_beside(path))
    return [_recorded(source, folder / META, read_meta(folder, oldest=1), "baseline")]


def _read_published(source: str, rootdir: Path) -> list[ComparedModel]:
    names = published_names(search_path(rootdir))
    pattern = source.rstrip("/")
    chosen = [
        name
        for name in names
        if fnmatch.fnmatchcase(name, pattern) or name.startswith(f"{pattern}/")
    ]
    models = []
    for name in chosen or [source]:
        baseline = read_baseline(name, rootdir)
        settings = dict(baseline.settings)
        about = ", ".join(value for value in settings.values() if value)
        cases: dict[Key, CaseResult] = {}
        for case in baseline.cases.values():
            if isinstance(case, PublishedCase):
                figures = {figure.name: figure.value for figure in case.figures}
                cases["", case.id] = case_of(("", case.id), figures)
        spec = settings.get("model", "")
        models.append(
            ComparedModel(
                name=name,
                about=f"{about}: {baseline.paper}",
                cases=cases,
                setting=settings.get("setting", ""),
                spec=spec,
                parameters=size_in(spec),
                family=family_of(spec),
            )
        )
    return models


def _recorded(
    source: str, path: Path, data: dict[str, Any], kind: str
) -> ComparedModel:
    """Return the model of a report, or of a baseline's ``meta.json``, as ``kind`` says."""
    try:
        if kind == "report":
            entries = {str(case["id"]): case for case in data["cases"]}
            model, settings = data["model"] or {"spec": "no model"}, data["settings"]
        else:
            entries = {**data["cases"], **data.get("aggregates", {})}
            model, settings = data["model"], data.get("settings", {})
        if twice := [
            key for key, times in Counter(map(_key, entries)).items() if times > 1
        ]:
            suite, case_id = min(twice)
            raise KbrelError(
                f"{path}: two suites of the same file name, {suite}, have the case {case_id}; allowed: runs "
                "whose suites have names of their own"
            )
        spec = str(model.get("name") or model["spec"])
        return ComparedModel(
            name=source,
            about=f"{spec}, {data['created']}, pytest-kbrel {data['kbrel_version']}",
            cases={
                _key(key): case_of(
                    _key(key),
                    {
                        # A report has the whole record of a figure, a baseline its value.
                        name: _number(figure["value"] if kind == "report" else figure)
                        for name, figure in entry["metrics"].items()
                    },
                    n=_count(entry.get("n")),
                    invalid=entry.get("verdict") == "invalid",
                    label=str(entry.get("label") or ""),
                    settings=string_pairs(entry.get("settings", {})),
                )
                for key, entry in entries.items()
            },
            settings=string_pairs(settings),
            spec=spec,
            parameters=_count(model.get("parameters")),
            family=family_of(spec, str(model.get("architecture", ""))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KbrelError(
            f"{path}: is no whole {kind}: {type(error).__name__}: {error}; allowed: {ALLOWED}"
        ) from None


def size_in(name: str) -> int:
    """Return the number of parameters that a model's name states; 0 where it states none."""
    if not (match := _SIZE.search(name)):
        return 0
    whole, part, unit, behind = match.groups()
    return round(float(f"{whole}.{part or behind or 0}") * _UNITS[unit.lower()])


def family_of(spec: str, architecture: str = "") -> str:
    """Return what models of several sizes have in common: their name without the size.

    Where the last part of the name states no size it is the ``architecture``, or else the name.
    """
    name = PurePath(spec).name
    if not _SIZE.search(name):
        return architecture or name
    return (
        re.sub(r"[-_ .]{2,}", "-", _SIZE.sub("", name).replace("()", ""))
        .strip("-_ .")
        .lower()
        or name
    )


def string_pairs(settings: Mapping[str, Any]) -> Pairs:
    """Return a JSON object as pairs of strings, sorted by key."""
    return tuple(sorted((str(name), str(value)) for name, value in settings.items()))


def probe_and_slice(case_id: str) -> tuple[Probe | None, str]:
    """Return the probe and the slice that a case's id names; ``None`` for a case of no probe."""
    name, _, rest = case_id.partition("[")
    return probe_named(name), rest.removesuffix("]")


def _key(nodeid: str) -> Key:
    suite, _, case_id = nodeid.rpartition("::")
    return PurePath(suite).name, case_id


def _count(value: object) -> int:
    """Return a number of things, 0 where none is stated that there can be."""
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST
        else 0
    )


def _number(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no figure")
    return float(value)


def figure_tables(models: Sequence[ComparedModel]) -> tuple[FigureTable, ...]:
    """Return the figures that at least two models have, case by case.

    Raises ``KbrelError`` when there are none.
    """
    named = _named(models)
    labels: dict[str, str] = {}
    for model in models:
        for (_, case_id), of in model.cases.items():
            labels[case_id] = labels.get(case_id) or of.label
    tables = []
    for case in dict.fromkeys(case for of in named for case in of):
        figures = [of.get(case, {}) for of in named]
        # The number of models that have a figure, in the order in which they name them.
        counts = Counter(
            name for of in figures for name, value in of.items() if value is not None
        )
        shared = [name for name, models_with in counts.items() if models_with > 1]
        # Some never stand without others, though only one of the models has these.
        shared += [beside for name in shared for beside in BESIDE.get(name, ())]
        rows = [
            (name, tuple(of.get(name) for of in figures))
            for name in counts
            if name in shared
        ]
        if rows:
            tables.append(
                FigureTable(
                    case=case,
                    rows=tuple(rows),
                    differing=_differing(models, case),
                    label=labels.get(case.rpartition("::")[2], ""),
                )
            )
    if not tables:
        raise KbrelError(
            f"no figure is in two of {', '.join(model.name for model in models)}; "
            "allowed: models with cases of the same names"
        )
    return tuple(tables)


def run_settings(models: Sequence[ComparedModel]) -> tuple[str, ...]:
    """Return for each model, in words, those settings of its run that can change figures and are not alike.

    The text is empty for a paper's models, which have no settings.
    """
    runs = [dict(model.settings) for model in models]
    differing = [
        name
        for name in _CHANGING
        if len({settings.get(name, "") for settings in runs if settings}) > 1
    ]
    return tuple(
        ", ".join(f"{name} {settings.get(name) or 'none'}" for name in differing)
        if settings
        else ""
        for settings in runs
    )


def _differing(models: Sequence[ComparedModel], case: str) -> str:
    """Return in words how the runs that have a case differ in its suite, settings and judge."""
    case_id = case.rpartition("::")[2]
    values: dict[str, dict[str, None]] = {"suites": {}}
    judges: dict[str, None] = {}
    for model in models:
        for (suite, own_id), of in model.cases.items():
            # A paper says nothing of how its cases were asked.
            if suite and own_id == case_id and case in (case_id, f"{suite}::{case_id}"):
                judges[dict(model.settings).get("judge", "")] = None
                for name, value in (("suites", suite), *of.settings):
                    values.setdefault(name, {})[value] = None
    probe, _ = probe_and_slice(case_id)
    if probe is None or probe.judged:
        values["judges"] = judges
    return "; ".join(
        f"{name} {', '.join(them)}" for name, them in values.items() if len(them) > 1
    )


def twins(models: Sequence[ComparedModel]) -> tuple[int, ...]:
    """Return for each model the number (from 1) of the first one with the same figures in all cases, or 0."""
    of = [(model.setting, model.figures) for model in models]
    return tuple((of.index(own) + 1) % (at + 1) for at, own in enumerate(of))


def correlated_points(models: Sequence[ComparedModel]) -> tuple[Scatter, ...]:
    """Return the figures that are correlated over the models, with their points; twins are one model.

    Seen and unseen slices of one group and setting are one, as over the slices of a run. What a paper prints
    of a case in several prompt settings is correlated within each of them, and the setting named: a model
    in three settings is not three models. Pairs of figures that fewer than two models have are left out.
    """
    points = [
        {} if twin else joined(_placed(of))
        for of, twin in zip(_named(models), twins(models), strict=True)
    ]
    rows = []
    for key in dict.fromkeys(key for of in points for key in of):
        suite, probe, name = key
        within = f"{suite}::{probe}[{name}]" if suite else f"{probe}[{name}]"
        having = [
            model.setting for of, model in zip(points, models, strict=True) if key in of
        ]
        # One that is empty where no model has any.
        settings = tuple(dict.fromkeys(filter(None, having))) or ("",)
        for setting in settings:
            # Over all slices a run without slices is one model in whatever setting.
            of_models = {
                at: of.get(key, {})
                for at, (of, model) in enumerate(zip(points, models, strict=True))
                if model.setting in ("", setting) and of
            }
            label = f"{within}, {setting}" if len(settings) > 1 else within
            rows += [
                Scatter(
                    within=label,
                    whole=PROBES[probe].is_overall(name)
                    or len(PROBES[probe].kinds) > 1,
                    pearson=pearson,
                    spearman=spearman,
                    points=tuple(
                        (at + 1, x, y)
                        for at, of in of_models.items()
                        if (x := of.get(pearson.x)) is not None
                        and (y := of.get(pearson.y)) is not None
                    ),
                )
                for pearson, spearman in correlations(
                    probe, list(of_models.values()), over="models"
                )
                if pearson.n > 1
            ]
    return tuple(rows)


def case_names(models: Iterable[ComparedModel]) -> dict[Key, str]:
    """Return what each case of the models is called: its id, with the suite where a model has it in two."""
    models = list(models)
    twice = set()
    for model in models:
        ids = Counter(case_id for _, case_id in model.cases)
        twice |= {case_id for case_id, times in ids.items() if times > 1}
    return {
        (suite, case_id): f"{suite}::{case_id}"
        if suite and case_id in twice
        else case_id
        for model in models
        for suite, case_id in model.cases
    }


def _named(models: Sequence[ComparedModel]) -> list[dict[str, Figures]]:
    """Return each model's cases by name."""
    names = case_names(models)
    return [
        {names[key]: figures for key, figures in model.figures.items()}
        for model in models
    ]


def _placed(cases: Mapping[str, Figures]) -> list[tuple[str, ProbeName, str, Figures]]:
    placed = []
    for case, figures in cases.items():
        suite, case_id = _key(case)
        probe, slice_name = probe_and_slice(case_id)
        if probe is not None:
            placed.append((suite, probe.name, slice_name, figures))
    # Seen and unseen slices of one setting are one point, which has the figures over both.
    several = {
        probe
        for _, probe, of, _ in placed
        if len(PROBES[probe].kinds) > 1 and not PROBES[probe].is_overall(of)
    }
    return [
        one
        for one in placed
        if one[1] not in several or not PROBES[one[1]].is_overall(one[2])
    ]
