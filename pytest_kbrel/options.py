"""The plugin's settings: flags, ini keys and environment variables, in that order of precedence.

This module is loaded in every pytest run of every project that has the plugin installed, so it imports
nothing but the standard library and pytest.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pytest_kbrel.bounds import BATCH, FACTS, FLAG_SEED, LIMIT, PRICE, SHARE, shown
from pytest_kbrel.errors import nearest
from pytest_kbrel.flags import FLAGS, NO_CACHE, Flag

T = TypeVar("T")
SUITE_SUFFIX = ".kb.yaml"
today_key = pytest.StashKey[datetime.date]()
run_key = pytest.StashKey[str]()
# Under this name the controller tells its workers the day: midnight may lie between them.
TODAY = "kbrel_today"
# And under this one the id of the run, which all of its processes share.
RUN = "kbrel_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class KbOptions:
    """The settings of one run, resolved and checked."""

    model: str
    model_args: str
    device: str
    dtype: str
    batch_size: str
    apply_chat_template: bool
    judge: str
    judge_args: str
    attribute: int
    baseline: str
    baseline_update: str | None
    inconclusive: str
    limit: int | float | None
    seed: int | None
    output_path: Path
    # None keeps nothing.
    use_cache: Path | None
    from_run: Path | None = None
    plan: bool = False
    prices: tuple[float, float] | None = None
    noise_floor: bool = False
    baseline_model: str = ""
    baseline_reason: str = ""
    today: datetime.date | None = None
    run: str = ""

    @property
    def compared_with(self) -> str:
        """What the run is held against: a baseline or a model, as they were named, or ``""``."""
        return self.baseline or self.baseline_model

    @property
    def failing(self) -> set[str]:
        """The verdicts that fail a case under these settings."""
        from pytest_kbrel.records import is_published

        verdicts = {"fail", "invalid", "not comparable"}
        # A paper has not measured all that a suite may ask; a blessed run has.
        if self.compared_with and not is_published(self.compared_with):
            verdicts.add("no baseline")
        if self.inconclusive == "fail":
            verdicts.add("inconclusive")
        return verdicts


_SHOWING = (
    "collectonly",
    "showfixtures",
    "show_fixtures_per_test",
    "markers",
    "cacheshow",
    "setupplan",
    "setuponly",
)
_KEY = re.compile(r"(?i)[,\s?&](api[-_]?key|auth_token|token|password|secret|header)\s*=|://[^/,\s]*@")
# What Linux, macOS and Windows take for one name.
_LONGEST_NAME = 255
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def add_options(parser: pytest.Parser) -> None:
    """Declare every flag with its ini twin; environment twins need no declaration."""
    group = parser.getgroup("kbrel", "reliability of a language model's knowledge (pytest-kbrel)")
    for flag in FLAGS:
        tail = f" (default: {flag.default})" if flag.default else ""
        twins = f" [ini: {flag.ini}, env: {flag.environment}]"
        extra: dict[str, Any] = {"action": "store_true"} if flag.switch else {"metavar": flag.metavar}
        if flag.bare is not None:
            extra |= {"nargs": "?", "const": flag.bare}
        group.addoption(flag.flag, dest=flag.ini, default=None, help=flag.help + tail + twins, **extra)
        parser.addini(flag.ini, flag.help, type="string", default=None)


def is_active(config: pytest.Config) -> bool:
    """Tell whether there is somebody to ask: a model, or a recorded run."""
    return bool(_text(config, "model") or _text(config, "from_run"))


def is_planning(config: pytest.Config) -> bool:
    """Tell whether it is only to be said what would run."""
    return _switch(config, "plan")


def was_typed(config: pytest.Config, name: str) -> bool:
    """Tell whether a setting stands on the command line, not only in ini file or environment."""
    return config.getoption(_flag(name).ini, None) is not None


def stands_on_the_line(config: pytest.Config, name: str) -> bool:
    """Tell whether a flag was typed for this very run, and comes from no ``addopts`` either."""
    flag = _flag(name).flag
    typed = map(str, config.invocation_params.args)
    return any(argument == flag or argument.startswith(f"{flag}=") for argument in typed)


def only_shows(config: pytest.Config) -> bool:
    """Tell whether this pytest run shows things and runs no test."""
    return any(getattr(config.option, name, None) for name in _SHOWING)


def suites_in_sight(config: pytest.Config) -> list[str]:
    """Return the suites that the arguments name, or that lie in the folders they name.

    Two levels deep only: a header must not walk somebody's whole tree.
    """
    found: dict[str, None] = {}
    here = config.invocation_params.dir
    for argument in config.args:
        path = here / argument.split("::", 1)[0]
        if path.name.endswith(SUITE_SUFFIX):
            found[os.path.relpath(path, here)] = None
        elif path.is_dir():
            for pattern in (f"*{SUITE_SUFFIX}", f"*/*{SUITE_SUFFIX}"):
                found |= {os.path.relpath(suite, here): None for suite in sorted(path.glob(pattern))}
    return list(found)


def read_options(config: pytest.Config) -> KbOptions:
    """Resolve and check all settings; ``UsageError`` names the flag, what was found and what is allowed.

    Where a recorded run is decided again, what belongs to it is as it was then.
    """
    options = _read_options(config)
    if options.from_run is None:
        return options
    from pytest_kbrel.recorded_options import as_recorded

    return as_recorded(config, options)


def _read_options(config: pytest.Config) -> KbOptions:
    for name in ("model", "judge", "baseline_model"):
        _check_no_key(name, _text(config, name))
    return KbOptions(
        model=_text(config, "model"),
        model_args=_text(config, "model_args"),
        device=_text(config, "device"),
        dtype=_text(config, "dtype"),
        batch_size=_batch_size(config),
        apply_chat_template=_switch(config, "apply_chat_template"),
        judge=_text(config, "judge"),
        judge_args=_text(config, "judge_args"),
        attribute=_read(config, "attribute", FACTS.integer, f"{FACTS}, of facts"),
        baseline=_text(config, "baseline"),
        baseline_update=_update_name(config),
        inconclusive=_checked(config, "inconclusive", "warn or fail", lambda text: text in ("warn", "fail")),
        limit=_limit(config),
        seed=_seed(config),
        output_path=config.invocation_params.dir / _text(config, "output_path"),
        use_cache=_cache(config),
        from_run=_from_run(config),
        plan=_switch(config, "plan"),
        prices=_prices(config),
        noise_floor=_switch(config, "noise_floor"),
        baseline_model=_text(config, "baseline_model"),
        baseline_reason=_text(config, "baseline_reason"),
        today=today(config),
        run=run_id(config),
    )


def today(config: pytest.Config) -> datetime.date:
    """Return the day of the run, the same from its beginning to its end and in every worker."""
    if today_key not in config.stash:
        told = getattr(config, "workerinput", {}).get(TODAY)
        day = datetime.date.today() if told is None else datetime.date.fromisoformat(told)
        config.stash[today_key] = day
    return config.stash[today_key]


def run_id(config: pytest.Config) -> str:
    """Return what tells this run from all others, the same in every worker."""
    if run_key not in config.stash:
        told = getattr(config, "workerinput", {}).get(RUN)
        config.stash[run_key] = str(told) if told is not None else os.urandom(8).hex()
    return config.stash[run_key]


def _flag(name: str) -> Flag:
    return next(flag for flag in FLAGS if flag.name == name)


def _text(config: pytest.Config, name: str) -> str:
    flag = _flag(name)
    given = config.getoption(flag.ini, None)
    if given is None:
        given = os.environ.get(flag.environment) or config.getini(flag.ini) or flag.default
    text = str(given)
    if flag.names_file and max(map(len, text.encode("utf-8", "replace").split(b"/"))) > _LONGEST_NAME:
        raise pytest.UsageError(
            f"{_origin(config, name)}: found {shown(text)}; "
            f"allowed: at most {_LONGEST_NAME} bytes between slashes"
        )
    return text


def _origin(config: pytest.Config, name: str) -> str:
    """Return where a setting was given: the flag, the environment variable or the ini key."""
    flag = _flag(name)
    if was_typed(config, name):
        return flag.flag
    return flag.environment if os.environ.get(flag.environment) else flag.ini


def _read(config: pytest.Config, name: str, read: Callable[[str], T], allowed: str) -> T:
    text = _text(config, name)
    try:
        return read(text)
    except ValueError:
        found = f"{_origin(config, name)}: found {shown(text)}; allowed: {allowed}"
        raise pytest.UsageError(f"{found}{nearest(text, ['auto']) if 'auto' in allowed else ''}") from None


def _checked(config: pytest.Config, name: str, allowed: str, accepts: Callable[[str], bool]) -> str:
    text = _text(config, name)
    if not accepts(text):
        hint = nearest(text, allowed.replace(" or ", " ").split())
        raise pytest.UsageError(f"{_origin(config, name)}: found {shown(text)}; allowed: {allowed}{hint}")
    return text


def _check_no_key(name: str, text: str) -> None:
    """Refuse the name of a model with a key or password in it: it is printed and recorded."""
    found = _KEY.search(text)
    if found is not None:
        raise pytest.UsageError(
            f"{_flag(name).flag}: found {found[1] or 'a password in an address'} in it, not repeated here; "
            "allowed: a key stands in the environment, and api_key_env=NAME in the model's arguments names "
            "the variable"
        )


def _switch(config: pytest.Config, name: str) -> bool:
    text = _text(config, name).lower()
    if text not in _TRUE + _FALSE:
        raise pytest.UsageError(f"{_origin(config, name)}: found {text!r}; allowed: true or false")
    return text in _TRUE


def _from_run(config: pytest.Config) -> Path | None:
    text = _text(config, "from_run")
    # A model that is typed wins over a record that only ini file or environment name.
    if not text or (was_typed(config, "model") and not was_typed(config, "from_run")):
        return None
    return config.invocation_params.dir / Path(text).expanduser()


def _cache(config: pytest.Config) -> Path | None:
    text = _text(config, "use_cache")
    return None if text == NO_CACHE else config.invocation_params.dir / Path(text).expanduser()


def _prices(config: pytest.Config) -> tuple[float, float] | None:
    text = _text(config, "prices")
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
    text = _text(config, "limit")
    if not text:
        return None
    return _read(config, "limit", limit_value, f"{LIMIT}, of facts, or a fraction above 0 and up to 1")


def limit_value(text: str) -> int | float:
    """Read a number of facts (at least 1) or a fraction (above 0, at most 1); else ``ValueError``."""
    return LIMIT.integer(text) if text.isdecimal() else SHARE.number(text)


def _seed(config: pytest.Config) -> int | None:
    text = _text(config, "seed")
    return _read(config, "seed", FLAG_SEED.integer, str(FLAG_SEED)) if text else None


def _update_name(config: pytest.Config) -> str | None:
    typed = config.getoption("kb_baseline_update", None)
    _text(config, "baseline_update")
    asked = typed if typed is not None else os.environ.get("KB_BASELINE_UPDATE") or None
    if asked is None:
        # The ini key names what a bare flag blesses; it must not make every run bless.
        return None
    name: str = asked or config.getini("kb_baseline_update") or _text(config, "baseline")
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
