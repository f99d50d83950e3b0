"""All checks before a run, without loading a model: settings, output folder, judge, writers and cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from pytest_kbrel.baselines import (
    Baseline,
    baseline_directory,
    check_published,
    check_target,
    is_there,
    read_baseline,
)
from pytest_kbrel.catalogue.probes import PROBES, is_scored
from pytest_kbrel.errors import KbrelError, nearest
from pytest_kbrel.evaluation.model_pool import helper_spec
from pytest_kbrel.evaluation.recorded_run import read_runs
from pytest_kbrel.facts.located import nearest_file
from pytest_kbrel.models.arguments import public
from pytest_kbrel.models.cache.store import FILE, Store
from pytest_kbrel.models.openai.spec import BUDGETS
from pytest_kbrel.models.registry import (
    BACKENDS,
    args_for,
    backend_of,
    check_spec,
    encoder_backend,
    unused_args,
)
from pytest_kbrel.outputs import why_unwritable
from pytest_kbrel.plugin.comparable import check_comparable
from pytest_kbrel.plugin.options import (
    FLAGS,
    is_explicit,
    is_on_command_line,
    only_one,
    origin_of,
    refusal,
)
from pytest_kbrel.printing import printable
from pytest_kbrel.records import BASELINE, Case, Suite, is_published
from pytest_kbrel.reports import PREVIOUS, REPORT
from pytest_kbrel.settings import FACTS, RULES, Settings
from pytest_kbrel.store.database import network_of
from pytest_kbrel.words import NO_CACHE

_BUDGET = re.compile(rf"(?:^|[,\s])({'|'.join(BUDGETS)})\s*=")


def check(config: pytest.Config, settings: Settings) -> Baseline | None:
    """Check the settings without loading a model; return the baseline, if one is given.

    Raises :class:`KbrelError` or ``UsageError``.
    """
    _check_paths(config)
    for flag in FLAGS:
        value = getattr(settings, flag.name, None)
        for other, why in flag.excludes.items():
            if value and getattr(settings, other):
                raise only_one(config, flag.name, other, why)
        names, needed, why = flag.needs
        meant = is_on_command_line(config, flag.name) or (flag.always and value)
        if (
            meant
            and names
            and not any(
                getattr(settings, name, None) or config.getoption(name, None)
                for name in names.split()
            )
        ):
            without = f"found without {needed}; allowed: with it, for {why}"
            raise refusal(config, flag.name, without)
        if value and flag.name in _CHECKS:
            try:
                _CHECKS[flag.name](config, settings)
            except ValueError as error:
                raise refusal(config, flag.name, error) from None
    if settings.from_run is None and not settings.plan:
        _check_budgets(config, settings)
    baseline = _read_baseline(config, settings) if settings.baseline else None
    if settings.until_decided and baseline is not None and baseline.paper:
        raise pytest.UsageError(
            f"--kb-until-decided: found with {settings.baseline}, whose figures are over other facts; "
            "allowed: a blessed run or a model (--kb-baseline-model) to compare with fact by fact"
        )
    return baseline


def _check_models(config: pytest.Config, settings: Settings) -> None:
    for to, prefix in ("", ""), (BASELINE, "--kb-baseline-model: "):
        if settings.from_run is None and to in settings.specs:
            try:
                check_spec(settings.specs[to].get())
            except KbrelError as error:
                raise pytest.UsageError(f"{prefix}{error}") from None


def _check_target(config: pytest.Config, settings: Settings) -> None:
    check_target(baseline_directory(settings.baseline_update or "", config.rootpath))


def _check_output(config: pytest.Config, settings: Settings) -> None:
    if why := why_unwritable(settings.output_path):
        raise ValueError(f"{why}; allowed: a folder of yours, or one to be made")


def _check_top_k(config: pytest.Config, settings: Settings) -> None:
    for spec in settings.own_specs if settings.from_run is None else ():
        if not BACKENDS[spec.backend].gives_top_tokens:
            forms = ", ".join(
                f"{name}/..." for name, of in BACKENDS.items() if of.gives_top_tokens
            )
            raise ValueError(
                f"found {settings.top_k} with {spec.text}, which does not give the most probable "
                f"tokens of what it writes; allowed: models that do ({forms}), or 0"
            )


def _read_baseline(config: pytest.Config, settings: Settings) -> Baseline:
    name = settings.baseline
    try:
        return read_baseline(name, config.rootpath)
    except KbrelError as error:
        folder = Path(name).parent if Path(name).name == REPORT else Path(name)
        if (folder / REPORT).is_file():
            if folder.resolve() == settings.output_path.resolve():
                # A session that does not start moves the older report there.
                folder /= PREVIOUS
            raise pytest.UsageError(
                f"{origin_of(config, 'baseline')}: {name} is the report of a run and no baseline; allowed: "
                f"compare two reports with 'kbrel compare {folder} OTHER', or bless this one: "
                f"pytest SUITES --kb-from-run={folder} --kb-baseline-update=NAME"
            ) from None
        # A mistyped name is not one to bless.
        mistyped = is_explicit(config, "baseline") and "did you mean" in str(error)
        if mistyped or is_published(name) or is_there(name, config.rootpath):
            raise
        raise KbrelError(
            f"{origin_of(config, 'baseline')}: {error}; --kb-baseline-update={name} blesses a run under this "
            "name, and --kb-baseline= compares with none"
        ) from None


def _check_budgets(config: pytest.Config, settings: Settings) -> None:
    """Raise ``UsageError`` for a budget that cannot be kept, or after which a run could not go on."""
    for name in ("model_args", "baseline_model", "judge_args"):
        if (given := _BUDGET.search(getattr(settings, name))) is None:
            continue
        if config.getoption("dist", "no") != "no":
            why = (
                "several workers (-n), each of which would spend as much; allowed: one process, which has "
                "up to max_concurrent requests under way"
            )
        elif settings.use_cache is None:
            why = (
                f"--kb-use-cache={NO_CACHE}, so that no answer would be kept for the run that goes on; "
                "allowed: a folder"
            )
        else:
            continue
        raise refusal(config, name, f"found {given[1]} with {why}")


def _check_paths(config: pytest.Config) -> None:
    """Raise ``UsageError`` for a path to tests that leads nowhere, which pytest would say only later."""
    for argument in () if config.option.pyargs else config.args:
        name = argument.partition("::")[0]
        path = config.invocation_params.dir / name
        if not path.exists():
            hint = nearest_file(path) or "; kbrel init copies a suite to suites/"
            raise pytest.UsageError(printable(f"{name}: no such file or folder{hint}"))


def check_suites(
    config: pytest.Config,
    settings: Settings,
    baseline: Baseline | None,
    suites: Sequence[Suite],
    expected: Container[str],
) -> None:
    """Raise :class:`KbrelError` for cases of the ``suites`` that the models cannot answer, or that bless too few.

    ``expected`` are the node ids of the cases that are to run.
    """
    cases = [case for suite in suites for case in suite.cases]
    # In ini file or environment they may be meant for other suites of the project.
    if is_explicit(config, "judge_args"):
        _check_args(settings, cases)
    if baseline is not None and baseline.paper:
        ids = [case.id for case in cases]
        check_published(baseline, settings.baseline, ids)
    to_run = selected(suites, expected)
    for case in to_run:
        if encoder := case.settings.encoder:
            folder = config.rootpath / Path(case.suite).parent
            try:
                encoder_backend(encoder, folder)
            except KbrelError as error:
                raise KbrelError(f"{case.suite}: retrieval: {error}") from None
    check_cases(settings, to_run)
    check_comparable(config, settings, baseline, suites, to_run)
    if settings.baseline_update and len(to_run) < len(cases):
        raise KbrelError(
            f"--kb-baseline-update: deselected {len(cases) - len(to_run)} of {len(cases)} cases, and a "
            "baseline needs all of them; allowed: the command without -k, --lf, --deselect and node ids, or a "
            "suite file with these cases alone"
        )


def selected(suites: Sequence[Suite], expected: Container[str]) -> list[Case]:
    """Return the cases of the ``suites`` whose node ids are among the ``expected`` ones."""
    return [
        case
        for suite in suites
        for case in suite.cases
        if f"{suite.path}::{case.id}" in expected
    ]


def _is_recorded(settings: Settings, text: str) -> bool:
    """Return True if the recorded run of a replay has replies of the helper model ``text``."""
    if settings.from_run is None:
        return False
    return read_runs(settings.recorded).helper(text) is not None


def _check_judge(config: pytest.Config, settings: Settings) -> None:
    """Raise :class:`KbrelError` for a judge that cannot be opened and for an unusable cache."""
    if settings.judge == RULES or _is_recorded(settings, settings.judge):
        return
    _check_helper(settings, settings.judge, "--kb-judge", RULES)
    folder = settings.use_cache
    if folder is not None and ((folder / FILE).exists() or network_of(folder)):
        Store(folder).close()


def check_cases(settings: Settings, cases: Iterable[Case]) -> None:
    """Raise :class:`KbrelError` for cases that the models cannot answer.

    These are MONITOR with a model without probabilities, and a writer of distractors that cannot be opened.
    """
    cases = list(cases)
    scored = next(filter(is_scored, cases), None)
    for spec in settings.own_specs:
        if scored and (why := BACKENDS[spec.backend].unscorable(spec)):
            probe = PROBES[scored.probe]
            # Only all cases of a suite are blessed.
            out = f"remove {probe.name}: from the suite"
            if not probe.scored:
                out = "remove scores: authors from the suite"
            elif not settings.baseline_update:
                out = f'leave these cases out with -k "not {probe.name}"'
            raise KbrelError(
                f"{scored.suite}::{scored.id}: {probe.title} needs token probabilities, and {spec.text} "
                f"gives none: {why}; {out}, or give a checkpoint"
            )
    writers = dict.fromkeys((case.suite, case.settings.writer) for case in cases)
    for suite, text in writers:
        if text and not _is_recorded(settings, text):
            _check_helper(settings, text, f"{suite}: distractors_from", FACTS)


def _check_helper(settings: Settings, text: str, where: str, word: str) -> None:
    """Raise :class:`KbrelError`, which says ``where``, for a helper model that cannot be opened.

    ``word`` is the one for no model, which may be meant.
    """
    try:
        check_spec(helper_spec(text, settings.judge_args))
    except KbrelError as error:
        hint = nearest(text, (word,))
        raise KbrelError(f"{where}: {error}; without a model: {word}{hint}") from None


def _check_args(settings: Settings, cases: Iterable[Case]) -> None:
    """Raise :class:`KbrelError` for an argument of ``--kb-judge-args`` that no helper model here takes."""
    named = {settings.judge: None}
    for case in cases:
        named[case.settings.writer] = None
        # An encoder on this machine takes none.
        if (encoder := case.settings.encoder) and backend_of(encoder).is_served:
            named[encoder] = None
    helpers = [text for text in named if text not in ("", RULES)]
    taken = ",".join(args_for(text, settings.judge_args) for text in helpers)
    if unused := unused_args(settings.judge_args, taken.split(",")):
        raise KbrelError(
            f"--kb-judge-args: {public(*unused[0].partition('=')[::2])} is for no model here; found: "
            f"{', '.join(helpers) or 'no judge, no writer of distractors and no encoder on a server'}; "
            "allowed: options of these (docs/models.md)"
        )


# What else is checked of a setting that is given; a ``ValueError`` is one of its own.
_CHECKS: Mapping[str, Callable[[pytest.Config, Settings], None]] = {
    "model": _check_models,
    "baseline_update": _check_target,
    "judge": _check_judge,
    "top_k": _check_top_k,
    "output_path": _check_output,
}
