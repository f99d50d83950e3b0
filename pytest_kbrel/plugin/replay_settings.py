"""The settings of a run that decides a recorded one again: which are the record's, and which cannot be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.bounds import FLAG_SEED, limit_value
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.plugin.flags import FLAGS
from pytest_kbrel.plugin.options import was_typed
from pytest_kbrel.printing import printable
from pytest_kbrel.replay.recorded_run import RecordedRun, read_run
from pytest_kbrel.reports.atomic_files import PREVIOUS
from pytest_kbrel.settings import RULES, Settings

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


def as_recorded(config: pytest.Config, settings: Settings) -> Settings:
    """Return the settings with those of the recorded run for whatever belongs to it.

    What is typed for facts and judge stays; environment and ini file are those of other runs. Baseline and
    what is done about inconclusive cases are this run's. Raises ``UsageError`` for a folder that is no
    recorded run's, for flags that need a model, and where the reports would replace the record.
    """
    assert settings.from_run is not None
    for flag in FLAGS:
        if flag.name in _NEEDS_MODEL and config.getoption(flag.ini, None) not in (None, "0"):
            raise pytest.UsageError(
                f"{flag.flag} is for runs in which {_NEEDS_MODEL[flag.name]}, and --kb-from-run decides "
                "again over what was recorded; allowed: one of the two"
            )
    try:
        run = read_run(settings.from_run)
    except KbrelError as error:
        raise pytest.UsageError(f"--kb-from-run: {error}") from None
    settings = replace(
        settings,
        model=run.setting("model") or run.model.spec,
        model_args=run.setting("model_args"),
        device=run.setting("device") or "auto",
        dtype=run.setting("dtype") or "auto",
        batch_size=run.setting("batch_size") or "auto",
        apply_chat_template=run.setting("apply_chat_template") == "true",
        attribute=0,
        noise_floor=False,
        baseline_model=_base(config, settings, run),
        plan=False,
        output_path=_output(config, settings.output_path, settings.from_run),
    )
    if not was_typed(config, "judge"):
        settings = replace(settings, judge=run.setting("judge") or RULES)
    same = settings.judge == run.setting("judge")
    if not was_typed(config, "judge_args") and (same or not settings.judge_args):
        settings = replace(settings, judge_args=run.setting("judge_args"))
    try:
        return _same_facts(config, settings, run)
    except ValueError as error:
        what = f"--kb-from-run: {run.folder}: the recorded settings: {error}"
        raise pytest.UsageError(printable(what)) from None


def _base(config: pytest.Config, settings: Settings, run: RecordedRun) -> str:
    """Return the model to compare with: that of the record, if it has one and no baseline takes its place."""
    recorded = run.setting("baseline_model") if run.base is not None else ""
    if was_typed(config, "baseline_model") and settings.baseline_model != recorded:
        what = f"those of {printable(recorded)}" if recorded else "none of a second model"
        raise pytest.UsageError(
            f"--kb-baseline-model: found {settings.baseline_model}, and --kb-from-run decides again over "
            f"what was recorded in {run.folder}: {what}; allowed: a recorded model, or --kb-baseline"
        )
    if settings.baseline and not was_typed(config, "baseline_model"):
        return ""
    return recorded


def _same_facts(config: pytest.Config, settings: Settings, run: RecordedRun) -> Settings:
    limit, seed = run.setting("limit"), run.setting("seed")
    if not was_typed(config, "limit"):
        settings = replace(settings, limit=limit_value(limit) if limit else None)
    if not was_typed(config, "seed"):
        settings = replace(settings, seed=FLAG_SEED.integer(seed) if seed else None)
    return settings


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
