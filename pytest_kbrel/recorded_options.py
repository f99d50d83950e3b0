"""The settings of a run that decides a recorded one again: which are the record's, and which cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.bounds import FLAG_SEED
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.flags import FLAGS
from pytest_kbrel.helping import RULES
from pytest_kbrel.options import KbOptions, limit_value, was_typed
from pytest_kbrel.printing import printable
from pytest_kbrel.recorded import RecordedRun, read_run
from pytest_kbrel.reports.files import PREVIOUS

# Beside the record, where the reports would otherwise take its place.
BESIDE = "decided"
_NEEDS_MODEL = {
    "model": "a model is asked",
    "model_args": "a model is loaded",
    "device": "a model is loaded",
    "dtype": "a model is loaded",
    "batch_size": "a model is asked",
    "apply_chat_template": "a model is asked",
    "attribute": "an answer is explained, which needs the model",
    "noise_floor": "a model is asked twice",
    "plan": "a run is planned",
}


def as_recorded(config: pytest.Config, options: KbOptions) -> KbOptions:
    """Return the settings with those of the recorded run for whatever belongs to it.

    What is typed for facts and judge stays; environment and ini file are those of other runs. Baseline and
    what is done about inconclusive cases are this run's. Raises ``UsageError`` for a folder that is no
    recorded run's, for flags that need a model, and where the reports would replace the record.
    """
    assert options.from_run is not None
    for flag in FLAGS:
        if flag.name in _NEEDS_MODEL and config.getoption(flag.ini, None) not in (None, "0"):
            raise pytest.UsageError(
                f"{flag.flag} is for runs in which {_NEEDS_MODEL[flag.name]}, and --kb-from-run decides "
                "again over what was recorded; allowed: one of the two"
            )
    try:
        run = read_run(options.from_run)
    except KbrelError as error:
        raise pytest.UsageError(f"--kb-from-run: {error}") from None
    options = replace(
        options,
        model=run.setting("model") or run.model.spec,
        model_args=run.setting("model_args"),
        device=run.setting("device") or "auto",
        dtype=run.setting("dtype") or "auto",
        batch_size=run.setting("batch_size") or "auto",
        apply_chat_template=run.setting("apply_chat_template") == "true",
        attribute=0,
        noise_floor=False,
        baseline_model=_base(config, options, run),
        plan=False,
        output_path=_output(config, options.output_path, options.from_run),
    )
    if not was_typed(config, "judge"):
        options = replace(options, judge=run.setting("judge") or RULES)
    same = options.judge == run.setting("judge")
    if not was_typed(config, "judge_args") and (same or not options.judge_args):
        options = replace(options, judge_args=run.setting("judge_args"))
    try:
        return _same_facts(config, options, run)
    except ValueError as error:
        what = f"--kb-from-run: {run.folder}: the recorded settings: {error}"
        raise pytest.UsageError(printable(what)) from None


def _base(config: pytest.Config, options: KbOptions, run: RecordedRun) -> str:
    """Return the model to compare with: that of the record, if it has one and no baseline takes its place."""
    recorded = run.setting("baseline_model") if run.base is not None else ""
    if was_typed(config, "baseline_model") and options.baseline_model != recorded:
        what = f"those of {printable(recorded)}" if recorded else "none of a second model"
        raise pytest.UsageError(
            f"--kb-baseline-model: found {options.baseline_model}, and --kb-from-run decides again over what "
            f"was recorded in {run.folder}: {what}; allowed: a recorded model, or --kb-baseline"
        )
    if options.baseline and not was_typed(config, "baseline_model"):
        return ""
    return recorded


def _same_facts(config: pytest.Config, options: KbOptions, run: RecordedRun) -> KbOptions:
    limit, seed = run.setting("limit"), run.setting("seed")
    if not was_typed(config, "limit"):
        options = replace(options, limit=limit_value(limit) if limit else None)
    if not was_typed(config, "seed"):
        options = replace(options, seed=FLAG_SEED.integer(seed) if seed else None)
    return options


def _output(config: pytest.Config, output: Path, record: Path) -> Path:
    there, here = record.resolve(), output.resolve()
    if was_typed(config, "output_path"):
        if here == there:
            raise pytest.UsageError(
                f"--kb-output-path: {output} holds the recorded run of --kb-from-run, and that is kept; "
                f"allowed: another folder, or none: the reports then go to {record / BESIDE}"
            )
        if here / PREVIOUS == there:
            raise pytest.UsageError(
                f"--kb-output-path: the reports that lie in {output} would replace the recorded run "
                f"of --kb-from-run, {record}; allowed: another folder, or none: the reports then go to "
                f"{record / BESIDE}"
            )
        return output
    return record / BESIDE if here == there or here in there.parents else output
