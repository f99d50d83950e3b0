"""What the page of a large run takes, and how long a session waits until its first line.

    OMP_NUM_THREADS=1 python benchmarks/pages.py
    OMP_NUM_THREADS=1 python benchmarks/pages.py page --share 0.05

``page``: half of FKTC's facts as ``memory.py --scripted`` has them, 210,000 responses in 20 relations, are
recorded by pytest and blessed as a baseline, and a run of other answers is compared with it. ``kbrel report``
makes the page of each. ``line``: seconds until pytest begins to say what it gates, beside those of ``pytest
--version``, in turns. Every command is a process of its own, and all of them find their modules compiled, as
those of a user do.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from memory import SCRIPTED, Ground

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("page", "line")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without"
    )
    parser.add_argument("--share", type=float, default=0.5, help="of FKTC's size")
    parser.add_argument(
        "--rounds", type=int, default=7, help="of each command of `line`"
    )
    given = parser.parse_args(arguments)
    if wrong := set(given.parts) - {*PARTS}:
        parser.error(f"found {', '.join(sorted(wrong))}; allowed: {', '.join(PARTS)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"load {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory() as compiled:
        os.environ["PYTHONPYCACHEPREFIX"] = compiled
        for part in given.parts or PARTS:
            with tempfile.TemporaryDirectory() as name:
                if part == "page":
                    page(Path(name), given.share)
                else:
                    line(given.rounds)
    return 0


def page(folder: Path, share: float) -> None:
    """Record a run and one that is compared with it, and time the page of each."""
    ground = Ground(folder, share, one=False, scripted=True)
    ask = ("--kb-model=./model", "--kb-use-cache=off")
    ground.pytest(*ask, "--kb-output-path=alone", "--kb-baseline-update=whole")
    other = SCRIPTED.replace("digest_size=4", "digest_size=5").replace(
        'b"quick"', 'b"other"'
    )
    (folder / "quick_model.py").write_text(other)
    # Half of the facts are answered otherwise, so that cases may well fail.
    with contextlib.suppress(RuntimeError):
        ground.pytest(*ask, "--kb-output-path=compared", "--kb-baseline=whole")
    print(
        "| page of a run | responses | seconds | CPU seconds | MB |\n|---|--:|--:|--:|--:|"
    )
    for output, what in (("alone", "alone"), ("compared", "compared with a baseline")):
        with (folder / output / "responses.jsonl").open("rb") as stream:
            responses = sum(1 for _ in stream)
        file = folder / output / "report.html"
        file.unlink()
        run = ground.kbrel("report", output)
        size = file.stat().st_size / 1e6
        print(
            f"| {what} | {responses:,} | {run.seconds:.1f} | {run.cpu:.1f} | {size:.2f} |"
        )
    print()


def line(rounds: int) -> None:
    """Time the first line of a session over the suites that ship, and pytest's own start."""
    ways = {
        "pytest --version": ("--version",),
        "first line": ("suites", "--kb-model=reference"),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for args in ways.values():
        first_line(args)
    for number in range(rounds):
        # In turns, and each as often the first of its pair.
        for name in sorted(ways, reverse=bool(number % 2)):
            times[name].append(first_line(ways[name]))
    print("| until | median seconds | least | most |\n|---|--:|--:|--:|")
    for name, seconds in times.items():
        print(
            f"| `{name}` | {statistics.median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} |"
        )
    print()


def first_line(args: Sequence[str]) -> float:
    """Return the seconds until pytest prints its version or a line of the plugin; it is ended then."""
    started = time.perf_counter()
    flags = ("-p", "no:cacheprovider", "--kb-use-cache=off")
    with tempfile.TemporaryDirectory() as output:
        command = [
            sys.executable,
            "-m",
            "pytest",
            *args,
            *flags,
            f"--kb-output-path={output}/report",
        ]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        with process.stdout as lines:
            shown = next(
                (one for one in lines if one.startswith(("kbrel:", "pytest "))), ""
            )
            seconds = time.perf_counter() - started
        process.kill()
        process.wait()
    if not shown:
        raise RuntimeError(f"pytest {' '.join(args)} printed no such line")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
