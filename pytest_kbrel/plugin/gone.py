"""Flags of earlier versions that no longer exist, with what to do instead."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NoReturn

import pytest

GONE = {
    "--kb-attribute": "use captum on the checkpoint",
    "--kb-judge-labels": "kbrel labels says how often a judge errs",
    "--kb-picked-of": "pick a checkpoint by other facts than those of the gates",
    "--kb-noise-floor": "compare the model with itself: --kb-baseline-model=MODEL with "
    "another --kb-batch-size",
}


def add_gone_flags(group: pytest.OptionGroup) -> None:
    """Declare the flags, which ``pytest --help`` leaves out and whose use is an error."""
    for flag in GONE:
        group.addoption(flag, nargs="?", action=_Refusal, help=argparse.SUPPRESS)


def gone_settings(names: Iterable[str]) -> dict[str, str]:
    """Return what to do instead of each ini key or environment variable of a removed flag."""
    by_bare_name = {_bare(flag): instead for flag, instead in GONE.items()}
    return {
        name: by_bare_name[_bare(name)] for name in names if _bare(name) in by_bare_name
    }


def _bare(name: str) -> str:
    return name.lower().lstrip("-").replace("-", "_")


class _Refusal(argparse.Action):
    """Ends the session with what to do in place of the flag."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        flag = self.option_strings[0]
        parser.error(f"{flag} was removed; {GONE[flag]}")
