"""All checks before a run, without loading a model: settings, output folder, judge, writers and cases."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
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
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import KbrelError, nearest
from pytest_kbrel.evaluation.model_pool import helper_spec
from pytest_kbrel.facts.located import nearest_file
from pytest_kbrel.models.arguments import public
from pytest_kbrel.models.cache.store import FILE, Store, network_of
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
from pytest_kbrel.plugin.options import is_explicit, is_on_command_line, origin_of
from pytest_kbrel.plugin.settings import only_one
from pytest_kbrel.printing import printable
from pytest_kbrel.records import BASELINE, Case, Suite, is_published
from pytest_kbrel.replay.joined import read_runs
from pytest_kbrel.reports import PREVIOUS, REPORT
from pytest_kbrel.settings import FACTS, RULES, Settings
from pytest_kbrel.words import NO_CACHE

# Two settings of which only one may be given, and why.
_ONLY_ONE = (
    ("baseline_model", "baseline", "a run is compared with one of them"),
    ("baseline_update", "until_decided", "a blessed run is a complete one"),
    ("shard", "baseline_update", "a blessed run is a complete one"),
    ("shard", "until_decided", "a shard decides nothing, so that it cannot end early"),
    ("shard", "plan", "the plan is that of all shards together"),
    ("plan", "from_run", "a recorded run asks nothing"),
    ("export_requests", "from_run", "a recorded run asks nothing"),
    ("export_requests", "plan", "each takes the place of a run"),
    ("export_requests", "until_decided", "a file of requests has all of them"),
)


def check(config: pytest.Config, settings: Settings) -> Baseline | None:
    """Check the settings without loading a model; return the baseline, if one is given.

    Raises :class:`KbrelError` or ``UsageError``.
    """
    _check_paths(config)
    _check_output(settings.output_path)
    for name, other, why in _ONLY_ONE:
        if getattr(settings, name) and getattr(settings, other):
            raise only_one(config, name, other, why)
    if "" in settings.specs:
        check_spec(settings.specs[""].get())
    if BASELINE in settings.specs and settings.from_run is None:
        try:
            check_spec(settings.specs[BASELINE].get())
        except KbrelError as error:
            raise pytest.UsageError(f"--kb-baseline-model: {error}") from None
    _check_ineffective(config, settings)
    _check_budgets(config, settings)
    check_judge(settings)
    if settings.top_k and settings.from_run is None:
        _check_top_k(settings)
    if settings.baseline_update:
        check_target(baseline_directory(settings.baseline_update, config.rootpath))
    baseline = _read_baseline(config, settings) if settings.baseline else None
    if settings.until_decided and baseline is not None and baseline.paper:
        raise pytest.UsageError(
            f"--kb-until-decided: found with {settings.baseline}, whose figures are over other facts; "
            "allowed: a blessed run or a model (--kb-baseline-model) to compare with fact by fact"
        )
    return baseline


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


def _check_top_k(settings: Settings) -> None:
    for spec in settings.own_specs:
        if not BACKENDS[spec.backend].gives_top_tokens:
            forms = ", ".join(
                f"{name}/..." for name, of in BACKENDS.items() if of.gives_top_tokens
            )
            raise pytest.UsageError(
                f"--kb-top-k: found {settings.top_k} with {spec.text}, which does not give the most probable "
                f"tokens of what it writes; allowed: models that do ({forms}), or 0"
            )


def _check_ineffective(config: pytest.Config, settings: Settings) -> None:
    """Raise ``UsageError`` for flags without effect: an empty one, or one without the flag it needs."""
    option = config.getoption
    for name, present, needed, why in (
        (
            "from_run",
            settings.from_run or is_explicit(config, "model"),
            "a recorded run",
            "one is decided again (an unset variable?)",
        ),
        (
            "gpus_per_worker",
            option("numprocesses", None) or option("tx", None),
            "-n",
            "it says what each worker gets",
        ),
        (
            "prices",
            settings.plan or "max_cost" in settings.model_args,
            "--kb-plan or max_cost in --kb-model-args",
            "these reckon with prices",
        ),
        (
            "baseline_reason",
            settings.baseline_update,
            "--kb-baseline-update",
            "it is kept with the baseline",
        ),
        ("shard_by", settings.shard, "--kb-shard", "it says what the shards share out"),
        (
            "junit_properties",
            option("xmlpath", None),
            "--junitxml",
            "the figures go into its file",
        ),
        (
            "until_decided",
            # A recorded run says itself how far it asked.
            not settings.until_decided or settings.compared_with or settings.from_run,
            "a baseline (--kb-baseline or --kb-baseline-model)",
            "only a comparison can be decided early",
        ),
    ):
        typed = is_on_command_line(config, name)
        if not present and (typed or name == "until_decided"):
            raise pytest.UsageError(
                f"{origin_of(config, name)}: found without {needed}; allowed: with it, for {why}"
            )


def _check_budgets(config: pytest.Config, settings: Settings) -> None:
    """Raise ``UsageError`` for a budget that cannot be kept, or after which a run could not go on."""
    if settings.from_run is not None or settings.plan:
        return
    for name, args in (
        ("model_args", settings.model_args),
        ("baseline_model", settings.baseline_model),
        ("judge_args", settings.judge_args),
    ):
        if (given := re.search(rf"(?:^|[,\s])({'|'.join(BUDGETS)})\s*=", args)) is None:
            continue
        origin = f"{origin_of(config, name)}: found {given[1]}"
        if config.getoption("dist", "no") != "no":
            raise pytest.UsageError(
                f"{origin} with several workers (-n), each of which would spend as much; allowed: one "
                "process, which has up to max_concurrent requests under way"
            )
        if settings.use_cache is None:
            raise pytest.UsageError(
                f"{origin} with --kb-use-cache={NO_CACHE}, so that no answer would be kept for the run that "
                "goes on; allowed: a folder"
            )


def _check_paths(config: pytest.Config) -> None:
    """Raise ``UsageError`` for a path to tests that leads nowhere, which pytest would say only later."""
    for argument in () if config.option.pyargs else config.args:
        name = argument.partition("::")[0]
        path = config.invocation_params.dir / name
        if not path.exists():
            hint = nearest_file(path) or "; kbrel init copies a suite to suites/"
            raise pytest.UsageError(printable(f"{name}: no such file or folder{hint}"))


def _check_output(directory: Path) -> None:
    if why := why_unwritable(directory):
        raise pytest.UsageError(
            f"--kb-output-path: {why}; allowed: a folder of yours, or one to be made"
        )


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
    # In ini file or environment they may be meant for other suites of the project.
    if is_explicit(config, "judge_args"):
        check_args(settings, suites)
    if baseline is not None and baseline.paper:
        check_published(
            baseline,
            settings.baseline,
            [case.id for suite in suites for case in suite.cases],
        )
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
    cases = sum(len(suite.cases) for suite in suites)
    if settings.baseline_update and len(to_run) < cases:
        raise KbrelError(
            f"--kb-baseline-update: deselected {cases - len(to_run)} of {cases} cases, and a baseline needs "
            "all of them; allowed: the command without -k, --lf, --deselect and node ids, or a suite file with "
            f"these cases alone: a copy of {'; '.join(_partial(suites, to_run))}"
        )


def _partial(suites: Sequence[Suite], cases: Collection[Case]) -> Iterator[str]:
    """Yield what to write for each suite of which only these cases are to be asked."""
    for suite in suites:
        edits = []
        for probe in PROBES:
            of_probe = [case for case in suite.cases if case.probe == probe]
            kept = [case.slice for case in of_probe if case in cases]
            if of_probe and not kept:
                edits.append(f"without '{probe}:'")
            elif len(kept) < len(of_probe):
                edits.append(f"with 'slices: [{', '.join(kept)}]' below '{probe}:'")
        if edits:
            yield f"{suite.path} {' and '.join(edits)}"


def unused_flags(
    config: pytest.Config,
    settings: Settings,
    suites: Sequence[Suite],
    expected: Container[str],
) -> tuple[str, ...]:
    """Return the flags without effect on the cases that are to run, one sentence each.

    ``expected`` are the node ids of these cases. Ini file and environment may be meant for other suites.
    """
    from pytest_kbrel.probes.grading import is_judged

    judged = {case.judge for case in selected(suites, expected) if is_judged(case)}
    if not is_explicit(config, "judge") or settings.judge in (RULES, *judged):
        return ()
    return (
        f"--kb-judge={settings.judge} is not used: no case is selected whose answers it judges",
    )


def selected(suites: Sequence[Suite], expected: Container[str]) -> list[Case]:
    """Return the cases of the ``suites`` whose node ids are among the ``expected`` ones."""
    return [
        case
        for suite in suites
        for case in suite.cases
        if f"{suite.path}::{case.id}" in expected
    ]


def is_recorded(settings: Settings, text: str) -> bool:
    """Return True if the recorded run of a replay has replies of the helper model ``text``."""
    if settings.from_run is None:
        return False
    return read_runs(settings.recorded).helper(text) is not None


def check_judge(settings: Settings) -> None:
    """Raise :class:`KbrelError` for a judge that cannot be opened and for an unusable cache."""
    if settings.judge == RULES or is_recorded(settings, settings.judge):
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
    scored = next((case for case in cases if PROBES[case.probe].scored), None)
    for spec in settings.own_specs:
        if scored and (why := BACKENDS[spec.backend].unscorable(spec)):
            probe = PROBES[scored.probe]
            # Only all cases of a suite are blessed.
            out = f"remove {probe.name}: from the suite"
            if not settings.baseline_update:
                out = f'leave these cases out with -k "not {probe.name}"'
            raise KbrelError(
                f"{scored.suite}::{scored.id}: {probe.title} needs token probabilities, and {spec.text} "
                f"gives none: {why}; {out}, or give a checkpoint"
            )
    writers = dict.fromkeys((case.suite, case.settings.writer) for case in cases)
    for suite, text in writers:
        if text and not is_recorded(settings, text):
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


def check_args(settings: Settings, suites: Iterable[Suite]) -> None:
    """Raise :class:`KbrelError` for an argument of ``--kb-judge-args`` that no helper model here takes."""
    helpers = [] if settings.judge == RULES else [settings.judge]
    for case in (case for suite in suites for case in suite.cases):
        helpers += [case.settings.writer] if case.settings.writer else []
        # An encoder on this machine takes none.
        encoder = case.settings.encoder
        if encoder and backend_of(encoder).is_served:
            helpers += [encoder]
    helpers = list(dict.fromkeys(helpers))
    taken = {
        part
        for text in helpers
        for part in args_for(text, settings.judge_args).split(",")
    }
    if unused := unused_args(settings.judge_args, taken):
        raise KbrelError(
            f"--kb-judge-args: {public(*unused[0].partition('=')[::2])} is for no model here; found: "
            f"{', '.join(helpers) or 'no judge, no writer of distractors and no encoder on a server'}; "
            "allowed: options of these (docs/models.md)"
        )
