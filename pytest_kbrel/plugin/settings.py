"""Settings of a pytest session: read from the options and checked; for a replay, partly the recorded ones."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.baselines import is_there
from pytest_kbrel.bounds import SHARDS, shown
from pytest_kbrel.errors import KbrelError, nearest
from pytest_kbrel.evaluation.model_pool import with_specs
from pytest_kbrel.evaluation.recorded_run import RecordedRun, folder_of, read_runs
from pytest_kbrel.plugin.options import (
    FLAGS,
    Flag,
    begun,
    is_deciding_again,
    is_explicit,
    is_on,
    only_one,
    refusal,
    text_of,
)
from pytest_kbrel.printing import printable
from pytest_kbrel.records import Shard, ShardBy
from pytest_kbrel.reports import PREVIOUS
from pytest_kbrel.settings import Settings
from pytest_kbrel.words import SUITE_SUFFIX

settings_key = pytest.StashKey[Settings]()
_KEY = re.compile(
    r"(?i)[,\s?&](api[-_]?key|auth_token|token|password|secret|header)\s*=|://[^/,\s]*@"
)


def read_settings(config: pytest.Config) -> Settings:
    """Return the settings of a session, read and checked at the first call.

    With --kb-from-run, model settings are those of the recorded run. Raises ``UsageError``, which names the
    flag, what was found and what is allowed.
    """
    if settings_key not in config.stash:
        settings = _read_settings(config)
        if settings.from_run is not None:
            settings = as_recorded(config, settings)
        config.stash[settings_key] = with_specs(settings)
    return config.stash[settings_key]


def _read_settings(config: pytest.Config) -> Settings:
    values = {flag.name: _value(config, flag) for flag in FLAGS}
    if is_explicit(config, "baseline") and not is_explicit(config, "baseline_model"):
        values["baseline_model"] = ""
    by = values.pop("shard_by")
    day, run = begun(config)
    return Settings(
        **values
        | {
            "baseline": _baseline(config),
            "baseline_update": _update_name(config),
            "shard": _shard(config, by),
            "today": datetime.date.fromisoformat(day),
            "run": run,
            "here": config.invocation_params.dir,
            "workers": str(config.getoption("numprocesses", None) or 0),
            "without_waivers": bool(config.getoption("runxfail", False)),
        }
        | _from_run(config)
    )


def _value(config: pytest.Config, flag: Flag) -> Any:
    """Return a setting as it is used, ``None`` for one without default that is not given."""
    text = text_of(config, flag.name)
    if not flag.metavar:
        return is_on(config, flag.name)
    if text == flag.none:
        return None
    # A key in the name of a model would be printed with it.
    if "SPEC" in flag.metavar and (match := _KEY.search(text)):
        raise pytest.UsageError(
            f"{flag.flag}: found {match[1] or 'a password in an address'} in it, not repeated here; "
            "allowed: a key stands in the environment, and api_key_env=NAME in the model's arguments "
            "names the variable"
        )
    words = flag.metavar.split("|")
    if flag.metavar.islower() and text not in words:
        why = (
            f"found {shown(text)}; allowed: {' or '.join(words)}{nearest(text, words)}"
        )
        raise refusal(config, flag.name, why)
    try:
        value = flag.read(text)
    except ValueError as error:
        allowed = flag.allowed and f"found {shown(text)}; allowed: {flag.allowed}"
        raise refusal(config, flag.name, allowed or error) from None
    if isinstance(value, Path):
        return config.invocation_params.dir / value.expanduser()
    return value


def _from_run(config: pytest.Config) -> dict[str, Any]:
    """Return the settings ``from_run`` and ``joined``."""
    if not is_deciding_again(config):
        return {"from_run": None}
    text, here = text_of(config, "from_run"), config.invocation_params.dir
    texts = [text]
    if not (here / Path(text).expanduser()).exists():
        texts = list(filter(None, text.split(os.pathsep)))
    paths = (here / Path(text).expanduser() for text in texts)
    first, *others = map(folder_of, paths)
    return {"from_run": first, "joined": tuple(others)}


def _shard(config: pytest.Config, by: ShardBy) -> Shard | None:
    text = text_of(config, "shard")
    try:
        return read_shard(text, by, os.environ) if text else None
    except ValueError as error:
        raise refusal(config, "shard", error) from None


def _baseline(config: pytest.Config) -> str:
    """Return the baseline. One that only ini file or environment name stands back where flags say otherwise.

    These are a model to compare with, and the first blessing of that very name, be it from shards.
    """
    name = text_of(config, "baseline")
    if is_explicit(config, "baseline") or not name:
        return name
    if is_explicit(config, "baseline_model"):
        return ""
    # A shard compares nothing, and blesses nothing itself.
    may_be_first = name == _update_name(config) or text_of(config, "shard")
    return "" if may_be_first and not is_there(name, config.rootpath) else name


def _update_name(config: pytest.Config) -> str | None:
    value = config.getoption("kb_baseline_update", None)
    if value is None:
        value = os.environ.get("KB_BASELINE_UPDATE") or None
    if value is None:
        # The ini key gives the name for a bare flag; it does not make every run bless.
        return None
    name: str = (
        value or config.getini("kb_baseline_update") or text_of(config, "baseline")
    )
    if not name:
        raise pytest.UsageError(
            "--kb-baseline-update: no name given; write --kb-baseline-update=NAME"
        )
    # argparse takes the next word of the command line as the value, which may be the suites to run.
    is_path = (config.invocation_params.dir / value).exists() and os.sep not in value
    if value and (is_path or SUITE_SUFFIX in value):
        raise pytest.UsageError(
            f"--kb-baseline-update: found {value!r}, which is a file or folder here; "
            "allowed: a name or a path of its own, written --kb-baseline-update=NAME"
        )
    return name


# Folder inside the recorded run for the reports of a replay, which must not replace those of the run.
REPLAY_FOLDER = "decided"


def as_recorded(config: pytest.Config, settings: Settings) -> Settings:
    """Return the settings with those of the recorded run for model, facts and judge.

    Flags for facts and judge win over the record; environment and ini file do not. Raises ``UsageError`` for
    a folder without a recorded run, for flags that need a model, and where the reports would replace the
    record.
    """
    for flag in FLAGS:
        typed = config.getoption(flag.ini, None)
        if flag.asks and typed not in (None, "0"):
            why = "a recorded run asks no model"
            raise only_one(config, flag.name, "from_run", why)
    try:
        run = read_runs(settings.recorded)
        values = run.settings_of_model()
    except KbrelError as error:
        raise pytest.UsageError(f"--kb-from-run: {error}") from None
    names = ("judge", "judge_args", "limit", "seed", "until_decided")
    kept = {name for name in names if is_explicit(config, name)}
    if "judge" in kept and settings.judge != values["judge"] and settings.judge_args:
        kept.add("judge_args")
    return replace(
        settings,
        **{name: value for name, value in values.items() if name not in kept},
        shard=None,
        baseline_model=_base(config, settings, run),
        output_path=_output(config, settings),
    )


def _base(config: pytest.Config, settings: Settings, run: RecordedRun) -> str:
    """Return the baseline model: the recorded one, unless a baseline is given in its place."""
    recorded = run.base_spec
    if not is_explicit(config, "baseline_model"):
        return "" if settings.baseline else recorded
    if settings.baseline_model != recorded:
        what = (
            f"those of {printable(recorded)}" if recorded else "none of a second model"
        )
        raise pytest.UsageError(
            f"--kb-baseline-model: found {settings.baseline_model}, and --kb-from-run decides again over "
            f"what was recorded in {run.folder}: {what}; allowed: a recorded model, or --kb-baseline"
        )
    return recorded


def _output(config: pytest.Config, settings: Settings) -> Path:
    """Return the folder of the reports, in which none of the recorded runs may be or get lost."""
    output = settings.output_path
    for record in settings.recorded:
        default, kept = record / REPLAY_FOLDER, record.resolve()
        is_same = kept == output.resolve()
        if not is_explicit(config, "output_path"):
            if is_same or output.resolve() in kept.parents:
                return default
        elif is_same or kept == (output / PREVIOUS).resolve():
            raise pytest.UsageError(
                f"--kb-output-path: reports in {output} would replace the recorded run of --kb-from-run, "
                f"{record}; allowed: another folder, or none: the reports then go to {default}"
            )
    return output


AUTO = "auto"
_SLURM = "SLURM_ARRAY_TASK_ID"
_STATED = re.compile(r"(\d+)/(\d+)")
_ALLOWED = f"I/N with I from 1 to N, N {SHARDS}, or {AUTO}"


def read_shard(text: str, by: ShardBy, environment: Mapping[str, str]) -> Shard:
    """Return the share that ``text`` states: ``I/N``, ``auto`` or ``auto/N``.

    Raises ``ValueError`` with what was found and what is allowed.
    """
    word, _, count = text.partition("/")
    if word == AUTO:
        return _of_environment(count, by, environment)
    match = _STATED.fullmatch(text)
    if match is None:
        raise ValueError(f"found {shown(text)}; allowed: {_ALLOWED}")
    return _checked_shard(match[1], match[2], by, f"found {shown(text)}")


def _of_environment(count: str, by: ShardBy, environment: Mapping[str, str]) -> Shard:
    """Return the share of this job: its number and their count, as the system that started it says."""
    ways = {
        _SLURM: (
            "SLURM_ARRAY_TASK_COUNT",
            environment.get("SLURM_ARRAY_TASK_MIN", "0"),
        ),
        "JOB_COMPLETION_INDEX": ("JOB_COMPLETIONS", "0"),
        "CI_NODE_INDEX": ("CI_NODE_TOTAL", "1"),
    }
    present = [name for name in ways if environment.get(name)]
    if len(present) != 1:
        which = (
            f"{' and '.join(present)} are set"
            if present
            else f"none of {', '.join(ways)} is set"
        )
        github = "; in a GitHub matrix write KB_SHARD: ${{ matrix.shard }}/${{ strategy.job-total }}"
        raise ValueError(
            f"found {AUTO}, and {which}; allowed: one of them, or I/N{github}"
        )
    total, first = ways[present[0]]
    if not (count := count or environment.get(total, "")):
        raise ValueError(
            f"found {AUTO} with {present[0]} and no {total}; allowed: with it, or {AUTO}/N"
        )
    if present[0] == _SLURM:
        _check_array(environment, count)
    index = environment[present[0]]
    stated = f"found {AUTO}, which is {present[0]}={shown(index)}, counted from {first}, of {shown(count)}"
    try:
        index = str(int(index) - int(first) + 1)
    except ValueError:
        raise ValueError(f"{stated}; allowed: whole numbers") from None
    return _checked_shard(index, count, by, stated)


def _check_array(environment: Mapping[str, str], parts: str) -> None:
    """Raise ``ValueError`` for an array of SLURM that has not one task for each part."""
    names = [f"SLURM_ARRAY_TASK_{name}" for name in ("MIN", "MAX", "COUNT")]
    stated = [environment.get(name, "") for name in names]
    if not all(map(str.isdecimal, (*stated, parts))):
        return
    first, last, tasks = map(int, stated)
    # A single task may be one of a larger array that somebody has submitted again.
    is_again = tasks == 1 and first > 1
    if is_again or tasks != int(parts) or last - first + 1 != tasks:
        raise ValueError(
            f"found {AUTO} in a SLURM array of {tasks} from {first} to {last}, for {parts} parts; allowed: "
            "an array without gaps that has a task for each part (--array=1-N), or I/N where a task runs "
            "again alone"
        )


def _checked_shard(index: str, count: str, by: ShardBy, stated: str) -> Shard:
    with suppress(ValueError):
        shard = Shard(index=SHARDS.integer(index), count=SHARDS.integer(count), by=by)
        if shard.index <= shard.count:
            return shard
    raise ValueError(f"{stated}; allowed: {_ALLOWED}")
