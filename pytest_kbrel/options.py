"""The plugin's settings: flags, ini keys and environment variables, in that order of precedence.

This module is loaded in every pytest run of every project that has the plugin installed, so it imports
nothing but the standard library and pytest.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import nearest

DEFAULT_OUTPUT = "kbrel-report"
DEFAULT_CACHE = ".kbrel-cache"
SUITE_SUFFIX = ".kb.yaml"


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
    use_cache: Path

    @property
    def failing(self) -> set[str]:
        """The verdicts that fail a case under these settings."""
        from pytest_kbrel.records import is_published

        verdicts = {"fail", "invalid", "not comparable"}
        # A paper has not measured all that a suite may ask; a blessed run has.
        if self.baseline and not is_published(self.baseline):
            verdicts.add("no baseline")
        if self.inconclusive == "fail":
            verdicts.add("inconclusive")
        return verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flag:
    name: str
    help: str
    metavar: str | None = None
    default: str = ""
    switch: bool = False
    # The value of a flag that is given without one.
    bare: str | None = None

    @property
    def flag(self) -> str:
        return "--kb-" + self.name.replace("_", "-")

    @property
    def ini(self) -> str:
        return "kb_" + self.name

    @property
    def environment(self) -> str:
        return "KB_" + self.name.upper()


_FLAGS = (
    _Flag(
        name="model",
        metavar="SPEC",
        help="Model to gate: a checkpoint's path or hub id, openai/NAME for one on a server, 'reference' "
        "for the embedded one, 'reference:NAME' for candidates (overconfident, gullible, int4, int3, pruned)",
    ),
    _Flag(
        name="model_args", metavar="K=V,...", help="Loading options in lm-eval's words: dtype=bfloat16,..."
    ),
    _Flag(name="device", metavar="DEVICE", default="auto", help="Where it runs, such as cpu or cuda:0"),
    _Flag(name="dtype", metavar="DTYPE", default="auto", help="Number type of the weights, such as bfloat16"),
    _Flag(
        name="batch_size",
        metavar="auto|TOKENS",
        default="auto",
        help="Tokens in one batch",
    ),
    _Flag(name="apply_chat_template", switch=True, help="Wrap prompts in the model's chat template"),
    _Flag(
        name="judge",
        metavar="rules|SPEC",
        default="rules",
        help="Who decides whether an answer is right: rules, openai/NAME, or a checkpoint",
    ),
    _Flag(
        name="judge_args",
        metavar="K=V,...",
        help="Options of models that judge, write distractors or embed, as for --kb-model-args: base_url=...",
    ),
    _Flag(
        name="attribute",
        metavar="N",
        default="0",
        help="Explain the N worst facts of each MONITOR case: how much each prompt token moved the answer",
    ),
    _Flag(
        name="baseline",
        metavar="NAME|PATH",
        help="Blessed run to compare with, or a paper's figures: published/...",
    ),
    _Flag(
        name="baseline_update",
        metavar="NAME",
        bare="",
        help="Bless this run under NAME (default: the name given to --kb-baseline) if it is complete",
    ),
    _Flag(
        name="inconclusive",
        metavar="warn|fail",
        default="warn",
        help="What a case does that can neither pass nor fail",
    ),
    _Flag(name="limit", metavar="N|FRACTION", help="Sample facts of each case, deterministically by fact id"),
    _Flag(name="seed", metavar="N", help="Replace the seed that suites state"),
    _Flag(
        name="output_path",
        metavar="DIR",
        default=DEFAULT_OUTPUT,
        help="Folder of the reports",
    ),
    _Flag(
        name="use_cache",
        metavar="DIR",
        default=DEFAULT_CACHE,
        help="Folder where what a judge or a writer of distractors said is kept from run to run",
    ),
)
_SHOWING = (
    "collectonly",
    "showfixtures",
    "show_fixtures_per_test",
    "markers",
    "cacheshow",
    "setupplan",
    "setuponly",
)
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def add_options(parser: pytest.Parser) -> None:
    """Declare every flag with its ini twin; environment twins need no declaration."""
    group = parser.getgroup("kbrel", "reliability of a language model's knowledge (pytest-kbrel)")
    for flag in _FLAGS:
        tail = f" (default: {flag.default})" if flag.default else ""
        twins = f" [ini: {flag.ini}, env: {flag.environment}]"
        extra: dict[str, Any] = {"action": "store_true"} if flag.switch else {"metavar": flag.metavar}
        if flag.bare is not None:
            extra |= {"nargs": "?", "const": flag.bare}
        group.addoption(flag.flag, dest=flag.ini, default=None, help=flag.help + tail + twins, **extra)
        parser.addini(flag.ini, flag.help, type="string", default=None)


def model_spec(config: pytest.Config) -> str:
    """Return the model asked for, ``""`` if none: this is what makes the plugin active."""
    return _text(config, "model")


def was_typed(config: pytest.Config, name: str) -> bool:
    """Tell whether a setting stands on the command line, not only in ini file or environment."""
    return config.getoption(_flag(name).ini, None) is not None


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
    """Resolve and check all settings; ``UsageError`` names the flag, what was found and what is allowed."""
    return KbOptions(
        model=_text(config, "model"),
        model_args=_text(config, "model_args"),
        device=_text(config, "device"),
        dtype=_text(config, "dtype"),
        batch_size=_checked(config, "batch_size", "auto or a number of tokens >= 1", _is_batch_size),
        apply_chat_template=_switch(config, "apply_chat_template"),
        judge=_text(config, "judge"),
        judge_args=_text(config, "judge_args"),
        attribute=int(_checked(config, "attribute", "a number of facts >= 0", _is_count)),
        baseline=_text(config, "baseline"),
        baseline_update=_update_name(config),
        inconclusive=_checked(config, "inconclusive", "warn or fail", lambda text: text in ("warn", "fail")),
        limit=_limit(config),
        seed=_seed(config),
        output_path=config.invocation_params.dir / _text(config, "output_path"),
        use_cache=config.invocation_params.dir / _text(config, "use_cache"),
    )


def _flag(name: str) -> _Flag:
    return next(flag for flag in _FLAGS if flag.name == name)


def _text(config: pytest.Config, name: str) -> str:
    flag = _flag(name)
    given = config.getoption(flag.ini, None)
    if given is None:
        given = os.environ.get(flag.environment) or config.getini(flag.ini) or flag.default
    return str(given)


def _checked(config: pytest.Config, name: str, allowed: str, accepts: Callable[[str], bool]) -> str:
    text = _text(config, name)
    if not accepts(text):
        hint = nearest(text, allowed.replace(" or ", " ").split())
        raise pytest.UsageError(f"{_flag(name).flag}: found {text!r}; allowed: {allowed}{hint}")
    return text


def _switch(config: pytest.Config, name: str) -> bool:
    text = _text(config, name).lower()
    if text not in _TRUE + _FALSE:
        raise pytest.UsageError(f"{_flag(name).environment}: found {text!r}; allowed: true or false")
    return text in _TRUE


def _is_batch_size(text: str) -> bool:
    return text == "auto" or (text.isascii() and text.isdigit() and int(text) >= 1)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _limit(config: pytest.Config) -> int | float | None:
    text = _text(config, "limit")
    if not text:
        return None
    try:
        return _limit_value(text)
    except ValueError:
        raise pytest.UsageError(
            f"--kb-limit: found {text!r}; allowed: a number of facts >= 1, or a fraction between 0 and 1"
        ) from None


def _limit_value(text: str) -> int | float:
    if text.isascii() and text.isdigit():
        if int(text) < 1:
            raise ValueError(text)
        return int(text)
    fraction = float(text)
    if not (math.isfinite(fraction) and 0 < fraction <= 1):
        raise ValueError(text)
    return fraction


def _seed(config: pytest.Config) -> int | None:
    text = _text(config, "seed")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise pytest.UsageError(f"--kb-seed: found {text!r}; allowed: a whole number") from None


def _update_name(config: pytest.Config) -> str | None:
    typed = config.getoption("kb_baseline_update", None)
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
