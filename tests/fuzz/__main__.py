"""Damage the input of some targets for some minutes: ``python -m tests.fuzz --help``."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.fuzz.targets import TARGETS, try_once, world_of


def main() -> int:
    """Return 1 where a fault was found; its seed repeats it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"{', '.join(TARGETS)}; or all"
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    given = parser.parse_args()
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"found {', '.join(unknown)}; allowed: {', '.join(TARGETS)}")
    end = time.monotonic() + 60 * given.minutes
    seed, found = given.seed, 0
    with tempfile.TemporaryDirectory(prefix="kbrel-fuzz-") as folder:
        world_of(Path(folder))
        os.chdir(folder)
        while time.monotonic() < end:
            for name in given.targets or TARGETS:
                out = io.StringIO()
                try:
                    with (
                        contextlib.redirect_stdout(out),
                        contextlib.redirect_stderr(out),
                    ):
                        try_once(name, seed)
                except Exception:
                    found += 1
                    print(f"{name}, --seed {seed}:\n{traceback.format_exc()}")
            seed += 1
    print(f"seeds {given.seed} to {seed - 1}: {found} faults")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
