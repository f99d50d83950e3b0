"""The subcommands of ``kbrel``, one file each.

Each module has ``register(commands)``, which adds its parser and sets ``run`` on it: a function of the parsed
options that returns the exit code. Heavy imports belong inside that function.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pytest_kbrel.cli import build, cache, compare, import_, init, judge, schema

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

COMMANDS = (init, import_, schema, build, compare, judge, cache)
