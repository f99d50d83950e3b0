"""Kill runs at random instants, let each go on, and hold what comes out against a run that nobody disturbed.

    OMP_NUM_THREADS=1 python benchmarks/kill_runs.py --kills 50
    OMP_NUM_THREADS=1 python benchmarks/kill_runs.py --kills 50 --split
    OMP_NUM_THREADS=1 python benchmarks/kill_runs.py --kills 18 --deaths

Each line of the table is one run of the shipped world suite on the embedded checkpoint, killed with its
workers (``kill -9`` for the whole process group) at a random instant after the first answer was kept, then
started again. "Asked again" counts answers that were in the store and were put to the model all the same: a
plugin of the second run writes down all that the model is really asked. "Report" is ``same`` where
``report.json`` (without what two equal runs may differ in) and ``responses.jsonl`` are those of the
undisturbed run: words and verdicts equal, probabilities and figures within 1e-4.

With ``--split`` all killed runs have two workers, which ask large cases in parts. With ``--deaths`` only one of
the two workers is killed, and the same run has to end as if nothing had happened. With ``--served`` the model
is one behind a server of this script, which counts what it is asked. Five stored questions may then be asked
again, to see whether it still is the same model.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_kbrel.reports.json_report import read_report
from pytest_kbrel.resources import suites

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.openai_server import OpenAIServer
from tests.reported import comparable

TOLERANCE = 1e-4
ARGUMENTS = ("suites", "-k", "P36 or P30 or head_to_tail", "--kb-limit=40")
# Cases of so many facts that they are split.
SPLIT = ("suites", "-k", "P36 or head_to_tail", "--kb-limit=150")
SERVED = ("suites", "-k", "head_to_tail", "--kb-limit=40")
STORE = Path(".kbrel-cache/answers.sqlite")
# Longest time in seconds that a run may take to keep its first answer, or to end.
PATIENCE = 300.0
_PLUGIN = '''\
"""Writes down the key of all that the model is really asked."""

import os
from pathlib import Path

from pytest_kbrel.models.hf import backend as hf
from pytest_kbrel.models.cache.store import digest_of, key_of

load = hf.HF.open


def loaded(*args, **options):
    model = load(*args, **options)
    who = digest_of(model.describe())
    log = (Path(os.environ["ASKED"]) / str(os.getpid())).open("a")

    def noting(ask):
        def noted(requests):
            log.writelines(key_of(who, request) + "\\n" for request in requests)
            log.flush()
            return ask(requests)

        return noted

    model.score_as_ready = noting(model.score_as_ready)
    model.generate_as_ready = noting(model.generate_as_ready)
    return model


# The record of the backend, which is frozen, is what a model is opened by.
object.__setattr__(hf.HF, "open", loaded)
'''


@dataclass(frozen=True)
class Result:
    """What a run left: its report without what may differ, and its exchanges."""

    report: dict[str, Any]
    responses: list[dict[str, Any]]
    stored: int


@dataclass(frozen=True)
class Killed:
    """One killed run and the run that went on: ``again`` are stored answers that were asked for once more."""

    workers: int
    seconds: float
    stored: int
    asked: int
    again: int
    total: int
    difference: str


class Ground:
    """A folder with suites in it, where runs are started; ``arguments`` are pytest's."""

    model: tuple[str, ...] = ("--kb-model=reference",)
    may_ask_again = 0

    def __init__(self, folder: Path, arguments: Sequence[str] = ARGUMENTS) -> None:
        self.folder = folder
        self._arguments = arguments
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "noting_asked.py").write_text(_PLUGIN)
        self._asked = folder / "asked"

    def start(self, workers: int) -> subprocess.Popen[bytes]:
        """Start a run in a process group of its own."""
        shutil.rmtree(self._asked, ignore_errors=True)
        self._asked.mkdir()
        line = [sys.executable, "-m", "pytest", *self._arguments, *self.model]
        line += [
            "-p",
            "noting_asked",
            "-p",
            "no:cacheprovider",
            *([f"-n{workers}"] if workers > 1 else []),
        ]
        path = os.pathsep.join(
            filter(None, [str(self.folder), os.environ.get("PYTHONPATH", "")])
        )
        with (self.folder / "output.txt").open("wb") as output:
            return subprocess.Popen(
                line,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": path, "ASKED": str(self._asked)},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def finish(self, workers: int) -> Result:
        """Run to the end; raises ``RuntimeError`` with the output where no report comes of it."""
        report = self.folder / "kbrel-report" / "report.json"
        report.unlink(missing_ok=True)
        self.start(workers).wait(PATIENCE)
        return self._result(report)

    def _result(self, report: Path) -> Result:
        if not report.exists():
            raise RuntimeError((self.folder / "output.txt").read_text())
        lines = (
            (report.parent / "responses.jsonl").read_text(encoding="utf-8").splitlines()
        )
        return Result(
            report=comparable(read_report(report)),
            responses=[json.loads(line) for line in lines],
            stored=self.total(set()),
        )

    def kill(self, workers: int, seconds: float) -> None:
        """Start a run and kill it so many seconds after it has kept its first answer."""
        process = self._begin(workers, seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def let_die(self, seconds: float, which: int) -> tuple[set[str], Result]:
        """Kill one of a run's two workers; return what was kept then, and the result of the run."""
        report = self.folder / "kbrel-report" / "report.json"
        shutil.rmtree(report.parent)
        process = self._begin(2, seconds)
        stored = self.stored()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, IndexError):
            os.kill(int(children.read_text().split()[which]), signal.SIGKILL)
        process.wait(PATIENCE)
        return stored, self._result(report)

    def _begin(self, workers: int, seconds: float) -> subprocess.Popen[bytes]:
        """Start a run and wait until so many seconds after it has kept its first answer."""
        before = len(self.stored())
        process = self.start(workers)
        end = time.monotonic() + PATIENCE
        while (
            len(self.stored()) == before
            and process.poll() is None
            and time.monotonic() < end
        ):
            time.sleep(0.005)
        time.sleep(seconds)
        return process

    def stored(self) -> set[str]:
        """Return the keys of all answers that are kept."""
        path = self.folder / STORE
        if not path.exists():
            return set()
        connection = sqlite3.connect(path, timeout=PATIENCE)
        try:
            return {
                key.hex() for (key,) in connection.execute("SELECT key FROM answers")
            }
        except sqlite3.OperationalError:
            # It is just being made.
            return set()
        finally:
            connection.close()

    def requests_sent(self) -> list[str]:
        """Return the keys of all that the latest run really put to its models."""
        return [
            line
            for file in self._asked.iterdir()
            for line in file.read_text().splitlines()
        ]

    def total(self, before: set[str]) -> int:
        """Return how many answers there are after a run that began with some."""
        return len(self.stored())

    def forget(self) -> None:
        """Delete what is kept."""
        shutil.rmtree((self.folder / STORE).parent, ignore_errors=True)


class ServedGround(Ground):
    """The same with a model behind a server, whose answers are kept until a run has ended."""

    may_ask_again = 5

    def __init__(self, folder: Path, server: OpenAIServer) -> None:
        super().__init__(folder, SERVED)
        self._server = server
        self._before = 0
        self.model = (
            "--kb-model=openai/judge",
            f"--kb-model-args=base_url={server.base_url},max_concurrent=2",
        )

    def start(self, workers: int) -> subprocess.Popen[bytes]:
        """Start a run; what is asked from here on is its."""
        self._before = len(self._server.calls)
        return super().start(workers)

    def stored(self) -> set[str]:
        """Return the prompts of all answers that are kept."""
        path = self.folder / STORE
        if not path.exists():
            return set()
        with contextlib.closing(sqlite3.connect(path, timeout=PATIENCE)) as connection:
            try:
                rows = connection.execute("SELECT request FROM answers").fetchall()
            except sqlite3.OperationalError:
                return set()
        return {json.loads(text)[1]["prompt"] for (text,) in rows}

    def requests_sent(self) -> list[str]:
        """Return the prompts that the server got in the latest run."""
        return [
            call.text
            for call in self._server.calls[self._before :]
            if call.path != "models"
        ]

    def total(self, before: set[str]) -> int:
        """Return how many questions have had an answer: nothing is kept of a run that has ended."""
        return len(before | set(self.requests_sent()))


def resumed(ground: Ground, workers: int, seconds: float, whole: Result) -> Killed:
    """Let a killed run go on; return how that ended, against the run that nobody disturbed."""
    before = ground.stored()
    result = ground.finish(workers)
    return compared(ground, whole, result, workers, seconds, before)


def outlived(ground: Ground, seconds: float, which: int, whole: Result) -> Killed:
    """Kill one of two workers; return how the run ended, against the run that nobody disturbed."""
    before, result = ground.let_die(seconds, which)
    killed = compared(ground, whole, result, 2, seconds, before)
    times = Counter(ground.requests_sent())
    return replace(killed, again=sum(times[key] > 1 for key in before))


def compared(
    ground: Ground,
    whole: Result,
    result: Result,
    workers: int,
    seconds: float,
    before: set[str],
) -> Killed:
    """Hold a result against that of the run that nobody disturbed."""
    sent = ground.requests_sent()
    difference = first_difference(result.report, whole.report)
    return Killed(
        workers=workers,
        seconds=seconds,
        stored=len(before),
        asked=len(sent),
        again=len(before & set(sent)),
        total=ground.total(before),
        difference=difference or first_difference(result.responses, whole.responses),
    )


def first_difference(value: Any, wanted: Any, where: str = "") -> str:
    """Return the first place where two values of JSON differ, ``""`` where they are equal.

    Numbers may be :data:`TOLERANCE` apart.
    """
    if (
        isinstance(value, dict)
        and isinstance(wanted, dict)
        and value.keys() == wanted.keys()
    ):
        pairs: Iterator[tuple[object, Any, Any]] = (
            (key, value[key], wanted[key]) for key in wanted
        )
    elif (
        isinstance(value, list)
        and isinstance(wanted, list)
        and len(value) == len(wanted)
    ):
        pairs = ((at, *pair) for at, pair in enumerate(zip(value, wanted, strict=True)))
    else:
        numbers = isinstance(value, float) and isinstance(wanted, float)
        same = abs(value - wanted) <= TOLERANCE if numbers else value == wanted
        return "" if same else f"{where}: {value!r:.80} and {wanted!r:.80}"
    return next(
        filter(None, (first_difference(a, b, f"{where}/{key}") for key, a, b in pairs)),
        "",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where anything was lost, asked again or different."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--served", action="store_true", help="a model behind a server")
    kinds.add_argument(
        "--split", action="store_true", help="two workers and larger cases"
    )
    kinds.add_argument("--deaths", action="store_true", help="one of two workers only")
    given = parser.parse_args(arguments)
    draw = random.Random(given.seed)
    bad = 0
    with tempfile.TemporaryDirectory() as name, OpenAIServer() as server:
        folder = Path(name)
        shutil.copytree(suites(), folder / "suites")
        # Slow enough that a run can be killed in the midst of it.
        server.say = lambda text: time.sleep(0.01) or f"city {len(text)}"
        own = Ground(folder, SPLIT if given.split or given.deaths else ARGUMENTS)
        ground = ServedGround(folder, server) if given.served else own
        whole = ground.finish(1)
        print(
            "| kill | workers | seconds after the first answer | stored | asked | asked again | of | report |"
        )
        print("|--:|--:|--:|--:|--:|--:|--:|---|")
        for number in range(given.kills):
            workers = 2 if given.split else 1 + number % 2
            ground.forget()
            # Also short ones: on a quiet machine all is over in a few seconds.
            seconds = draw.uniform(0, 8.0 / (1 + number % 3))
            if given.deaths:
                one = outlived(ground, seconds, number % 2, whole)
            else:
                ground.kill(workers, seconds)
                one = resumed(ground, workers, seconds, whole)
            wrong = (
                one.again > ground.may_ask_again
                or one.total != whole.stored
                or one.difference
            )
            bad += bool(wrong)
            print(
                f"| {number + 1} | {one.workers} | {one.seconds:.2f} | {one.stored} | {one.asked} "
                f"| {one.again} | {one.total} | {one.difference or 'same'} |",
                flush=True,
            )
    print(
        f"\n{given.kills} kills, {bad} of them with something lost, asked again or different"
    )
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
