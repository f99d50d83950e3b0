"""Hostile and broken input: a table of what is put in, and of the exit code and message that come out.

A row is one input (:mod:`tests.hostile.row`). The tables lie in a module for each way in: suite files, facts,
flags, checkpoints, baselines, recorded runs, servers, kept answers and commands.
"""

from __future__ import annotations

from tests.hostile import (
    baselines,
    checkpoints,
    commands,
    facts,
    flags,
    recorded,
    store,
    suites,
)

TABLES = {
    "suite files": suites.ROWS,
    "facts": facts.ROWS,
    "flags and models": flags.ROWS,
    "checkpoints": checkpoints.ROWS,
    "baselines": baselines.ROWS,
    "recorded runs": recorded.ROWS,
    "kept answers": store.ROWS,
    "kbrel": commands.ROWS,
}
