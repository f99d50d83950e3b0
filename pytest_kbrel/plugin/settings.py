"""Read and check the settings of a pytest session."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from pytest_kbrel.bounds import BATCH, FACTS, FLAG_SEED, LIMIT, PRICE, limit_value, shown
from pytest_kbrel.errors import nearest
from pytest_kbrel.evaluation.specs import with_specs
from pytest_kbrel.plugin.flags import NO_CACHE
from pytest_kbrel.plugin.options import SUITE_SUFFIX, is_on, origin_of, run_id, text_of, today, was_typed
from pytest_kbrel.plugin.replay_settings import as_recorded
from pytest_kbrel.settings import Settings

T = TypeVar("T")
settings_key = pytest.StashKey[Settings]()
_KEY = re.compile(r"(?i)[,\s?&](api[-_]?key|auth_token|token|password|secret|header)\s*=|://[^/,\s]*@")


def read_settings(config: pytest.Config) -> Settings:
    """Return the settings of a session, read and checked at the first call.

    Where a recorded run is decided again, what belongs to it is as it was then. Raises ``UsageError``, which
    names the flag, what was found and what is allowed.
    """
    if settings_key not in config.stash:
        settings = _read_settings(config)
        if settings.from_run is not None:
            settings = as_recorded(config, settings)
        config.stash[settings_key] = with_specs(settings)
    return config.stash[settings_key]


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
        batch_size=_batch_size(config),
        apply_chat_template=is_on(config, "apply_chat_template"),
        judge=text_of(config, "judge"),
        judge_args=text_of(config, "judge_args"),
        attribute=_read(config, "attribute", FACTS.integer, f"{FACTS}, of facts"),
        baseline=text_of(config, "baseline"),
        baseline_update=_update_name(config),
        inconclusive=_checked(config, "inconclusive", "warn or fail", lambda text: text in ("warn", "fail")),
        limit=_limit(config),
        seed=_seed(config),
        output_path=config.invocation_params.dir / text_of(config, "output_path"),
        use_cache=_cache(config),
        from_run=_from_run(config),
        plan=is_on(config, "plan"),
        prices=_prices(config),
        noise_floor=is_on(config, "noise_floor"),
        baseline_model=text_of(config, "baseline_model"),
        baseline_reason=text_of(config, "baseline_reason"),
        today=today(config),
        run=run_id(config),
    )


def _read(config: pytest.Config, name: str, read: Callable[[str], T], allowed: str) -> T:
    text = text_of(config, name)
    try:
        return read(text)
    except ValueError:
        found = f"{origin_of(config, name)}: found {shown(text)}; allowed: {allowed}"
        raise pytest.UsageError(f"{found}{nearest(text, ['auto']) if 'auto' in allowed else ''}") from None


def _checked(config: pytest.Config, name: str, allowed: str, accepts: Callable[[str], bool]) -> str:
    text = text_of(config, name)
    if not accepts(text):
        hint = nearest(text, allowed.replace(" or ", " ").split())
        raise pytest.UsageError(f"{origin_of(config, name)}: found {shown(text)}; allowed: {allowed}{hint}")
    return text


def _check_no_key(flag: str, text: str) -> None:
    """Refuse the name of a model with a key or password in it: it is printed and recorded."""
    found = _KEY.search(text)
    if found is not None:
        raise pytest.UsageError(
            f"{flag}: found {found[1] or 'a password in an address'} in it, not repeated here; "
            "allowed: a key stands in the environment, and api_key_env=NAME in the model's arguments names "
            "the variable"
        )


def _from_run(config: pytest.Config) -> Path | None:
    text = text_of(config, "from_run")
    # A model that is typed wins over a record that only ini file or environment name.
    if not text or (was_typed(config, "model") and not was_typed(config, "from_run")):
        return None
    return config.invocation_params.dir / Path(text).expanduser()


def _cache(config: pytest.Config) -> Path | None:
    text = text_of(config, "use_cache")
    return None if text == NO_CACHE else config.invocation_params.dir / Path(text).expanduser()


def _prices(config: pytest.Config) -> tuple[float, float] | None:
    text = text_of(config, "prices")
    if not text:
        return None
    allowed = f"two numbers, each {PRICE}: the prices of a million tokens read and written, such as 0.15,0.60"
    return _read(config, "prices", _two_prices, allowed)


def _two_prices(text: str) -> tuple[float, float]:
    read, written = (PRICE.number(part.strip()) for part in text.split(","))
    return read, written


def _batch_size(config: pytest.Config) -> str:
    def read(text: str) -> str:
        return text if text == "auto" else str(BATCH.integer(text))

    return _read(config, "batch_size", read, f"auto or {BATCH}, of tokens")


def _limit(config: pytest.Config) -> int | float | None:
    text = text_of(config, "limit")
    if not text:
        return None
    return _read(config, "limit", limit_value, f"{LIMIT}, of facts, or a fraction above 0 and up to 1")


def _seed(config: pytest.Config) -> int | None:
    text = text_of(config, "seed")
    return _read(config, "seed", FLAG_SEED.integer, str(FLAG_SEED)) if text else None


def _update_name(config: pytest.Config) -> str | None:
    typed = config.getoption("kb_baseline_update", None)
    text_of(config, "baseline_update")
    asked = typed if typed is not None else os.environ.get("KB_BASELINE_UPDATE") or None
    if asked is None:
        # The ini key names what a bare flag blesses; it must not make every run bless.
        return None
    name: str = asked or config.getini("kb_baseline_update") or text_of(config, "baseline")
    if not name:
        raise pytest.UsageError("--kb-baseline-update: no name given; write --kb-baseline-update=NAME")
    # argparse hands the flag the next word of the line, which may well be the suites that are to run.
    is_ours = (config.invocation_params.dir / asked).exists() and os.sep not in asked
    if asked and (is_ours or SUITE_SUFFIX in asked):
        raise pytest.UsageError(
            f"--kb-baseline-update: found {asked!r}, which is a file or folder here; "
            "allowed: a name or a path of its own, written --kb-baseline-update=NAME"
        )
    return name
