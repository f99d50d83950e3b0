"""Settings of a pytest session: read from the options and checked; for a replay, partly the recorded ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_kbrel.baselines import is_there
from pytest_kbrel.bounds import (
    BATCH,
    DEVICES,
    FLAG_SEED,
    LIMIT,
    PRICE,
    TOP_K,
    limit_value,
    shown,
)
from pytest_kbrel.errors import KbrelError, nearest
from pytest_kbrel.evaluation.model_pool import with_specs
from pytest_kbrel.plugin.options import (
    FLAGS,
    FURTHER_RUNS,
    is_deciding_again,
    is_explicit,
    is_on,
    origin_of,
    run_id,
    text_of,
    today,
)
from pytest_kbrel.plugin.shard import read_shard
from pytest_kbrel.printing import printable
from pytest_kbrel.records import Shard, ShardBy
from pytest_kbrel.replay.joined import read_runs
from pytest_kbrel.replay.recorded_run import RecordedRun
from pytest_kbrel.reports import PREVIOUS
from pytest_kbrel.session.recorded_settings import recorded_values, until_decided
from pytest_kbrel.settings import Settings
from pytest_kbrel.words import ASK_ALL, NO_BUDGET, NO_CACHE, SUITE_SUFFIX

if TYPE_CHECKING:
    from pytest_kbrel.session.run_builder import Invocation

T = TypeVar("T")
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


def invocation_of(config: pytest.Config) -> Invocation:
    """Return how pytest was called, as far as a report says."""
    from pytest_kbrel.session.run_builder import Invocation

    return Invocation(
        here=config.invocation_params.dir,
        workers=str(config.getoption("numprocesses", None) or 0),
        without_waivers=bool(config.getoption("runxfail", False)),
    )


def _read_settings(config: pytest.Config) -> Settings:
    for flag, name in (
        ("--kb-model", "model"),
        ("--kb-judge", "judge"),
        ("--kb-baseline-model", "baseline_model"),
    ):
        _check_no_key(flag, text_of(config, name))
    return Settings(
        model=text_of(config, "model"),
        model_args=text_of(config, "model_args"),
        device=text_of(config, "device"),
        dtype=text_of(config, "dtype"),
        gpus_per_worker=_gpus_per_worker(config),
        batch_size=_batch_size(config),
        apply_chat_template=is_on(config, "apply_chat_template"),
        judge=text_of(config, "judge"),
        judge_args=text_of(config, "judge_args"),
        baseline=_baseline(config),
        baseline_update=_update_name(config),
        inconclusive=_inconclusive(config),
        top_k=_read(config, "top_k", TOP_K.integer, f"{TOP_K}, of tokens"),
        limit=_limit(config),
        shard=_shard(config),
        seed=_seed(config),
        **_until_decided(
            text_of(config, "until_decided"), origin_of(config, "until_decided")
        ),
        output_path=config.invocation_params.dir / text_of(config, "output_path"),
        use_cache=_cache(config),
        **_from_run(config),
        plan=is_on(config, "plan"),
        export_requests=_path(config, "export_requests"),
        prices=_prices(config),
        junit_properties=is_on(config, "junit_properties"),
        baseline_model=""
        if is_explicit(config, "baseline") and not is_explicit(config, "baseline_model")
        else text_of(config, "baseline_model"),
        baseline_reason=text_of(config, "baseline_reason"),
        today=today(config),
        run=run_id(config),
    )


def _read(
    config: pytest.Config,
    name: str,
    read: Callable[[str], T],
    allowed: str,
    words: Sequence[str] = (),
) -> T:
    """Return a setting read by ``read``; ``words`` are those that a mistyped one may stand for."""
    text = text_of(config, name)
    try:
        return read(text)
    except ValueError:
        hint = nearest(text, words)
        raise pytest.UsageError(
            f"{origin_of(config, name)}: found {shown(text)}; allowed: {allowed}{hint}"
        ) from None


def _check_no_key(flag: str, text: str) -> None:
    """Refuse a model spec with a key or password in it, since specs are printed and recorded."""
    if match := _KEY.search(text):
        raise pytest.UsageError(
            f"{flag}: found {match[1] or 'a password in an address'} in it, not repeated here; "
            "allowed: a key stands in the environment, and api_key_env=NAME in the model's arguments names "
            "the variable"
        )


def _from_run(config: pytest.Config) -> dict[str, Any]:
    """Return the settings ``from_run`` and ``joined``."""
    if not is_deciding_again(config):
        return {"from_run": None}
    text = text_of(config, "from_run")
    here = config.invocation_params.dir
    texts = (
        [text]
        if (here / Path(text).expanduser()).exists()
        else list(filter(None, text.split(os.pathsep)))
    )
    texts += getattr(config.option, FURTHER_RUNS, ())
    first, *others = (here / Path(text).expanduser() for text in texts or [text])
    return {"from_run": first, "joined": tuple(others)}


def _path(config: pytest.Config, name: str) -> Path | None:
    text = text_of(config, name)
    return config.invocation_params.dir / Path(text).expanduser() if text else None


def _cache(config: pytest.Config) -> Path | None:
    text = text_of(config, "use_cache")
    return (
        None
        if text == NO_CACHE
        else config.invocation_params.dir / Path(text).expanduser()
    )


def _prices(config: pytest.Config) -> tuple[float, float] | None:
    def read(text: str) -> tuple[float, float]:
        prompt, written = (PRICE.number(part.strip()) for part in text.split(","))
        return prompt, written

    allowed = f"two numbers, each {PRICE}: the prices of a million tokens read and written, such as 0.15,0.60"
    return _read(config, "prices", read, allowed) if text_of(config, "prices") else None


def _inconclusive(config: pytest.Config) -> str:
    words = ["warn", "fail"]
    return _read(
        config,
        "inconclusive",
        lambda text: words[words.index(text)],
        "warn or fail",
        words,
    )


def _batch_size(config: pytest.Config) -> str:
    def read(text: str) -> str:
        return text if text == "auto" else str(BATCH.integer(text))

    return _read(config, "batch_size", read, f"auto or {BATCH}, of tokens", ["auto"])


def _shard(config: pytest.Config) -> Shard | None:
    words = ["fact", "case"]
    word = _read(
        config, "shard_by", lambda text: words[words.index(text)], "fact or case", words
    )
    by: ShardBy = "case" if word == "case" else "fact"
    if not (text := text_of(config, "shard")):
        return None
    try:
        shard = read_shard(text, by, os.environ)
    except ValueError as error:
        raise pytest.UsageError(f"{origin_of(config, 'shard')}: {error}") from None
    # A worker on another machine has other variables.
    config.option.kb_shard, config.option.kb_shard_by = str(shard), by
    return shard


def _limit(config: pytest.Config) -> int | float | None:
    allowed = f"{LIMIT}, of facts, or a fraction above 0 and up to 1"
    return (
        _read(config, "limit", limit_value, allowed)
        if text_of(config, "limit")
        else None
    )


def _until_decided(text: str, origin: str) -> dict[str, Any]:
    """Return the settings ``until_decided`` and ``budget``."""
    try:
        return until_decided(text)
    except ValueError:
        raise pytest.UsageError(
            f"{origin}: found {shown(text)}; allowed: {LIMIT}, the most facts to ask, {NO_BUDGET} or "
            f"{ASK_ALL}, written --kb-until-decided=BUDGET"
        ) from None


def _gpus_per_worker(config: pytest.Config) -> int | None:
    if not text_of(config, "gpus_per_worker"):
        return None
    return _read(config, "gpus_per_worker", DEVICES.integer, f"{DEVICES}, of GPUs")


def _seed(config: pytest.Config) -> int | None:
    return (
        _read(config, "seed", FLAG_SEED.integer, str(FLAG_SEED))
        if text_of(config, "seed")
        else None
    )


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
    typed = config.getoption("kb_baseline_update", None)
    text_of(config, "baseline_update")
    value = typed if typed is not None else os.environ.get("KB_BASELINE_UPDATE") or None
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
_NEEDS_MODEL = {
    "model": "a model is asked",
    "model_args": "a model is loaded",
    "device": "a model is loaded",
    "gpus_per_worker": "a model is loaded",
    "dtype": "a model is loaded",
    "batch_size": "a model is asked",
    "apply_chat_template": "a model is asked",
    "top_k": "a model is asked",
    "plan": "a run is planned",
    "shard": "a model is asked",
    "export_requests": "requests are written",
}


def as_recorded(config: pytest.Config, settings: Settings) -> Settings:
    """Return the settings with those of the recorded run for model, facts and judge.

    Flags for facts and judge win over the record; environment and ini file do not. Raises ``UsageError`` for
    a folder without a recorded run, for flags that need a model, and where the reports would replace the
    record.
    """
    assert settings.from_run is not None
    for flag in FLAGS:
        if flag.name in _NEEDS_MODEL and config.getoption(flag.ini, None) not in (
            None,
            "0",
        ):
            raise pytest.UsageError(
                f"{flag.flag} is for runs in which {_NEEDS_MODEL[flag.name]}, and --kb-from-run decides "
                "again over what was recorded; allowed: one of the two"
            )
    try:
        run = read_runs(settings.recorded)
    except KbrelError as error:
        raise pytest.UsageError(f"--kb-from-run: {error}") from None
    try:
        values = recorded_values(run)
    except ValueError as error:
        what = f"--kb-from-run: {run.folder}: the recorded settings: {error}"
        raise pytest.UsageError(printable(what)) from None
    same = not is_explicit(config, "judge") or settings.judge == values["judge"]
    kept = {name for name in ("judge", "limit", "seed") if is_explicit(config, name)}
    if is_explicit(config, "judge_args") or (not same and settings.judge_args):
        kept.add("judge_args")
    if is_explicit(config, "until_decided"):
        kept |= {"until_decided", "budget"}
    return replace(
        settings,
        **{name: value for name, value in values.items() if name not in kept},
        shard=None,
        baseline_model=_base(config, settings, run),
        plan=False,
        export_requests=None,
        output_path=_output(config, settings.output_path, settings.recorded),
    )


def _base(config: pytest.Config, settings: Settings, run: RecordedRun) -> str:
    """Return the baseline model: the recorded one, unless a baseline is given in its place."""
    recorded = run.setting("baseline_model") if run.base is not None else ""
    if is_explicit(config, "baseline_model") and settings.baseline_model != recorded:
        what = (
            f"those of {printable(recorded)}" if recorded else "none of a second model"
        )
        raise pytest.UsageError(
            f"--kb-baseline-model: found {settings.baseline_model}, and --kb-from-run decides again over "
            f"what was recorded in {run.folder}: {what}; allowed: a recorded model, or --kb-baseline"
        )
    if settings.baseline and not is_explicit(config, "baseline_model"):
        return ""
    return recorded


def _output(config: pytest.Config, output: Path, records: Sequence[Path]) -> Path:
    """Return the folder of the reports, which must not be one of the recorded runs."""
    for record in records:
        if (other := _output_beside(config, output, record)) != output:
            return other
    return output


def _output_beside(config: pytest.Config, output: Path, record: Path) -> Path:
    is_same, is_previous = (
        folder.resolve() == record.resolve() for folder in (output, output / PREVIOUS)
    )
    default = record / REPLAY_FOLDER
    if not is_explicit(config, "output_path"):
        return (
            default
            if is_same or output.resolve() in record.resolve().parents
            else output
        )
    if is_same:
        raise pytest.UsageError(
            f"--kb-output-path: {output} holds the recorded run of --kb-from-run, and that is kept; "
            f"allowed: another folder, or none: the reports then go to {default}"
        )
    if is_previous:
        raise pytest.UsageError(
            f"--kb-output-path: the reports that lie in {output} would replace the recorded run "
            f"of --kb-from-run, {record}; allowed: another folder, or none: the reports then go to "
            f"{default}"
        )
    return output
