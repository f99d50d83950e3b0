"""What several workers bring, and what joining shards takes.

    OMP_NUM_THREADS=1 python benchmarks/scaling.py workers --rounds 3
    OMP_NUM_THREADS=1 python benchmarks/scaling.py workers --facts 1500 900 600 500 400 300 200 200 150 100
    OMP_NUM_THREADS=1 python benchmarks/scaling.py merge

``workers``: requests a second of the embedded checkpoint, from the moment when the first process has loaded
it to the end of the last item. ``--facts`` has the number of facts of each case; without it one case has
nearly all. Beside one worker and two of them stand: two sessions that begin at the same time and share
nothing, which is what the machine itself allows; and one worker with two threads. Each run begins with an
empty store. ``merge`` is ``merge.py``, whose arguments may follow.

The ways take turns, and the figures are medians. The machine should have nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

SUITE = """\
suite: scaling
facts: facts.jsonl
monitor:
  gates: {accuracy: {min: 0.0}}
"""
FRAMES = (
    "Which city is the capital of [X]?",
    "What is the capital of [X]?",
    "Name the capital of [X].",
)
SMALL_FACTS = 5
ONE_LARGE = [2000, *[SMALL_FACTS] * 4]
# A plugin of the measured runs: when a model was loaded, and when the latest item ended.
CLOCK = """\
import os, time
from pathlib import Path


def note(what):
    Path(os.environ["KBREL_CLOCK"], f"{os.getpid()}.{what}").write_text(repr(time.time()))


def pytest_collection_finish(session):
    from pytest_kbrel.models.hf import backend as hf

    load = hf.HF.open

    def loaded(*args, **options):
        model = load(*args, **options)
        note("loaded")
        return model

    object.__setattr__(hf.HF, "open", loaded)


def pytest_runtest_logreport(report):
    note("ended")

"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is asked for and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    of_workers = commands.add_parser("workers", help="requests a second")
    of_workers.add_argument(
        "--facts",
        type=int,
        nargs="+",
        default=ONE_LARGE,
        metavar="N",
        help="of each case (default: 2000 5 5 5 5)",
    )
    of_workers.add_argument("--rounds", type=int, default=3)
    commands.add_parser("merge", help="64 shards joined", add_help=False)
    given, others = parser.parse_known_args(arguments)
    if given.command == "merge":
        import merge

        merge.main(others)
        return
    if others:
        parser.error(f"found {' '.join(others)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "scaling_clock.py").write_text(CLOCK)
        workers(folder, given.facts, given.rounds)


def workers(folder: Path, facts: Sequence[int], rounds: int) -> None:
    """Print requests a second of one worker and of two."""
    write_suite(folder, facts)
    one = "one worker"
    ways: dict[str, Callable[[], float]] = {
        one: lambda: rate_of(folder, [Session(folder, "a")]),
        "two workers": lambda: rate_of(folder, [Session(folder, "a", "-n2")]),
        "two sessions": lambda: rate_of(
            folder, [Session(folder, "a"), Session(folder, "b")]
        ),
        "one worker, two threads": lambda: rate_of(
            folder, [Session(folder, "a", OMP_NUM_THREADS="2")]
        ),
    }
    rates = in_turns(ways, rounds)
    twice = 2 * statistics.median(rates[one])
    print("| way | requests/s | all rounds | of twice one worker |")
    print("|---|--:|---|--:|")
    for way, figures in rates.items():
        median = statistics.median(figures)
        listed = ", ".join(f"{figure:.1f}" for figure in figures)
        print(f"| {way} | {median:.1f} | {listed} | {median / twice:.3f} |")


def in_turns(
    ways: dict[str, Callable[[], float]], rounds: int
) -> dict[str, list[float]]:
    """Return the figures of each way, all of which are measured once a round."""
    figures: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, measure in ways.items():
            figures[way].append(measure())
            print(f"{way}: {figures[way][-1]:.1f}", file=sys.stderr, flush=True)
    return figures


class Session:
    """A run in a process of its own, which begins at once with an empty store."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *flags: str,
        **environment: str,
    ) -> None:
        self.folder = folder / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.clock = self.folder / "clock"
        self.clock.mkdir(parents=True)
        line = [
            sys.executable,
            "-m",
            "pytest",
            "scaling.kb.yaml",
            "--kb-model=reference",
            *flags,
        ]
        line += [f"--kb-output-path={name}/report", f"--kb-use-cache={name}/store"]
        path = os.pathsep.join(
            filter(None, [str(folder), os.environ.get("PYTHONPATH", "")])
        )
        environment |= {"PYTHONPATH": path, "KBREL_CLOCK": str(self.clock)}
        self._process = subprocess.Popen(
            [*line, "-q", "-p", "scaling_clock", "-p", "no:cacheprovider"],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def wait(self) -> Path:
        """Wait for the end; return the folder of the reports."""
        output, _ = self._process.communicate()
        report = self.folder / "report"
        if not (report / "responses.jsonl").exists():
            raise RuntimeError(output.decode())
        return report


def rate_of(folder: Path, sessions: Sequence[Session]) -> float:
    """Return the requests a second of sessions that began at the same time."""
    requests = sum(
        (one.wait() / "responses.jsonl").read_bytes().count(b"\n") for one in sessions
    )
    times = {
        what: [
            float(path.read_text())
            for one in sessions
            for path in one.clock.glob(f"*.{what}")
        ]
        for what in ("loaded", "ended")
    }
    return requests / (max(times["ended"]) - min(times["loaded"]))


def write_suite(folder: Path, sizes: Sequence[int]) -> None:
    """Write a suite with a case of each of these numbers of made-up facts."""
    lines, relations = [], []
    for number, size in enumerate(sizes):
        frames = "".join(f"    - {frame}\n" for frame in FRAMES)
        relations.append(
            f"R{number}:\n  label: capital {number}\n  domain: places\n  frames:\n{frames}"
        )
        for fact in range(size):
            name = f"{_name(number)} {_name(fact)}"
            record = {
                "relation": f"R{number}",
                "subject": name,
                "object": f"Port {_name(fact)}",
            }
            lines.append(json.dumps(record) + "\n")
    (folder / "facts.jsonl").write_text("".join(lines))
    (folder / "relations.yaml").write_text("".join(relations))
    (folder / "scaling.kb.yaml").write_text(SUITE)


def _name(number: int) -> str:
    syllables = ("ba", "de", "fi", "go", "lu", "ma", "ne", "ri", "so", "tu")
    return "".join(syllables[int(digit)] for digit in f"{number:04}").capitalize()


if __name__ == "__main__":
    main()
