"""How a target is fuzzed: hypothesis draws examples, a worker runs them, faults are made small and saved."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import re
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import hypothesis
from hypothesis import HealthCheck, Phase

from tests.fuzz.targets import Example, Target, wrong_suite
from tests.fuzz.worker import Done, Job, receive, send

HANGS = 10.0
# Sessions leave a little memory behind each; a worker is replaced before that counts.
_JOBS = 300
_SHRINKING = 60.0
_CASES = '"cases": [\n'
_GREEN = ("pass", "inconclusive")
# Python's own words for an error, and a place in source where no user wrote any.
_RAW = (
    r"Traceback \(most recent call last\)|INTERNALERROR|MemoryError|^Exception ignored in|^\S*\.py:\d+: |"
    r"^\s+\S*(?:pytest_kbrel/\S+|<unknown>|<string>):\d+: \w+Warning|"
    r"^E   +(?:\w+\.)*\w+(?:Error|Exception|Exit)\b"
)
_LAST = r"(E  |INTERNALERROR>) +\S*(Error|Exit)\b"
_ENVIRONMENT = {
    **{
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "NO_PROXY": "*",
    },
    # An arena a thread would count as memory.
    **{"MALLOC_ARENA_MAX": "2", "PYTHONHASHSEED": "0"},
}
_NOT_KEPT = ("KB_", "OPENAI_", "PYTEST_")


class Worker:
    """A worker process, started when it is needed and again when it has died or has run many jobs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        # A killed session leaves its folder behind.
        self._folder = tempfile.TemporaryDirectory(prefix="kbrel-fuzz-")
        self._log = Path(self._folder.name, "log").open("wb+")  # noqa: SIM115
        self._jobs = 0

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        self.stop()
        self._log.close()
        self._folder.cleanup()

    def run(self, job: Job) -> Done | str:
        """Return how the session ended, or in words that it hung or that the process died."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            self._jobs += 1
            send(process.stdin, job)
            # Where more processes run than there are cores, each gets less done in a second.
            busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
            if not select.select([process.stdout], [], [], HANGS * busy)[0]:
                return f"a hang: nothing after {HANGS:g} seconds\n{self._said()}"
            done: Done = receive(process.stdout)
        except (EOFError, BrokenPipeError):
            return f"the process died with exit status {process.wait()}\n{self._said()}"
        else:
            process = None  # type: ignore[assignment]
            return done
        finally:
            if process is not None:
                self.stop()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._jobs >= _JOBS:
            self.stop()
        if self._process is None:
            self._jobs = 0
            self._log.seek(0)
            self._log.truncate()
            environment = {
                key: value
                for key, value in os.environ.items()
                if not key.startswith(_NOT_KEPT)
            }
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from tests.fuzz.worker import main; main()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env={**environment, **_ENVIRONMENT, "TMPDIR": self._folder.name},
            )
            # The first message says that all is loaded, and that the limit of memory holds.
            assert self._process.stdout is not None
            receive(self._process.stdout)
        return self._process

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read()[-4000:].decode("utf-8", "replace")


def problem_of(example: Example, ended: Done | str) -> str:
    """Return in a line what is wrong with how a session ended; empty where nothing is."""
    if isinstance(ended, str):
        places = re.findall(r'File "\S*?(pytest_kbrel/\S+)", line \d+ in (\w+)', ended)
        return ended.partition("\n")[0] + (
            f" in {places[0][0]}, {places[0][1]}" if places else ""
        )
    if ended.code is None:
        return f"an exception left pytest: {ended.text.strip().splitlines()[-1]:.200}"
    if raw := re.search(_RAW, ended.text, re.MULTILINE):
        lines = [line for line in ended.text.splitlines() if re.match(_LAST, line)]
        return f"a raw Python error: {lines[-1] if lines else raw[0].strip():.200}"
    if ended.code not in (0, 1, 2, 4, 5):
        return f"exit code {ended.code}"
    # A suite that was taken has cases, whatever became of them.
    taken = example.schema and _CASES in ended.report
    if taken and (wrong := wrong_suite(example.job.files[example.job.suite])):
        return f"a suite that is taken: {wrong}"
    return _wrongly_green(example, ended) if ended.code == 0 else ""


def _wrongly_green(example: Example, done: Done) -> str:
    if example.never_green:
        return f"a pass: {example.never_green}"
    try:
        report = json.loads(done.report, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return "a pass without a whole report"
    empty = [case["id"] for case in report["cases"] if not case["n"]]
    # Gates that compare fail nothing where no baseline was named.
    named = any(arg.startswith("--kb-baseline=") for arg in example.job.args)
    if (
        report["summary"]["verdict"]
        not in (*_GREEN, *(() if named else ("no baseline",)))
        or not report["cases"]
    ):
        return f"a pass whose report says {report['summary']['verdict']} of {len(report['cases'])} cases"
    return f"a pass over no facts in {empty[0]}" if empty else ""


def signature(problem: str) -> str:
    """Return what two examples of one fault share: the words without names and numbers."""
    return re.sub(r"0x[0-9a-f]+|\d+|'.*'|\".*\"|/\S*kbrel-fuzz-\S*", "#", problem)[:160]


@dataclass
class Tally:
    """What came of fuzzing a target: sessions by exit code, how many decided cases, and the findings."""

    target: str
    seed: int
    minutes: float = 0.0
    codes: Counter[str] = field(default_factory=Counter)
    deciding: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, ended: Done | str) -> None:
        """Count a session."""
        self.codes[str(ended.code) if isinstance(ended, Done) else "none"] += 1
        self.deciding += isinstance(ended, Done) and _CASES in ended.report

    def line(self) -> str:
        """Return the tally in one line."""
        codes = ", ".join(
            f"{code}: {count}" for code, count in sorted(self.codes.items())
        )
        return (
            f"{self.target}: {self.minutes:.1f} minutes, {self.codes.total()} examples (exit codes {codes}; "
            f"{self.deciding} decided cases), "
            f"{len(self.problems)} found, seed {self.seed}"
        )


def fuzz(
    target: Target, seconds: float, folder: Path, seed: int | None = None
) -> Tally:
    """Run examples of a target until the time is over; each finding is saved in a folder below ``folder``."""
    tally = Tally(target.name, random.randrange(1 << 32) if seed is None else seed)
    begin = time.monotonic()
    known: set[str] = set()
    # It says that it takes long to write an example for people, of a megabyte.
    warnings.simplefilter("ignore", hypothesis.errors.HypothesisWarning)
    with Worker() as worker:
        for job, code in target.sound(lambda job: _whole(worker.run(job))):
            assert _whole(worker.run(job)).code == code, (
                "the undamaged input of this target is not sound any more"
            )
        examples = target.examples(lambda job: _whole(worker.run(job)))
        turn = 0
        while (left := seconds - (time.monotonic() - begin)) > 0:
            search = _Search(worker, tally, known, time.monotonic() + left)
            run = hypothesis.given(examples)(search.check)
            run = hypothesis.seed(tally.seed + turn)(run)
            run = hypothesis.settings(
                max_examples=200,
                deadline=None,
                database=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
                verbosity=hypothesis.Verbosity.quiet,
            )(run)
            try:
                run()
            except Exception as error:
                if search.smallest is None:
                    raise
                if not isinstance(error, _FaultError):
                    print(
                        f"{target.name}: while it was made small: {type(error).__name__}",
                        flush=True,
                    )
            if search.smallest is not None:
                known.add(search.signature)
                saved = save(search.smallest, search.problem, folder, target.name)
                tally.problems.append(search.problem)
                print(
                    f"{target.name}: {search.problem}\n  python -m tests.fuzz --repeat {saved}",
                    flush=True,
                )
            turn += 1
    tally.minutes = (time.monotonic() - begin) / 60
    return tally


class _FaultError(Exception):
    """An example showed a fault."""


class _Search:
    """One search of hypothesis: the first new fault is followed until its example is small."""

    def __init__(
        self, worker: Worker, tally: Tally, known: set[str], end: float
    ) -> None:
        self.worker, self.tally, self.known, self.end = worker, tally, known, end
        self.smallest: Example | None = None
        self.signature = self.problem = ""
        self._begun = 0.0
        self._problems: dict[bytes, str] = {}

    def check(self, example: Example) -> None:
        """Run one example; raise where it shows the fault that is looked for."""
        now = time.monotonic()
        over = (
            now > self.end if self.smallest is None else now > self._begun + _SHRINKING
        )
        key = hashlib.sha256(pickle.dumps(example)).digest()
        if over and key not in self._problems:
            return
        if key not in self._problems:
            self._problems[key] = self._problem(example)
        problem = self._problems[key]
        sort = signature(problem)
        if (
            not problem
            or sort in self.known
            or (self.smallest and sort != self.signature)
        ):
            return
        if self.smallest is None:
            self._begun = now
        self.smallest, self.signature, self.problem = example, sort, problem
        raise _FaultError

    def _problem(self, example: Example) -> str:
        ended = self.worker.run(example.job)
        self.tally.add(ended)
        problem = problem_of(example, ended)
        if problem and self.smallest is None and signature(problem) not in self.known:
            # Sessions share a process: what they left there is not the example's fault.
            self.worker.stop()
            first, problem = problem, problem_of(example, self.worker.run(example.job))
            if not problem:
                print(
                    f"{self.tally.target}: seen once, and not again in a fresh process: {first}",
                    flush=True,
                )
        return problem


def _whole(ended: Done | str) -> Done:
    assert isinstance(ended, Done), ended
    return ended


def save(example: Example, problem: str, folder: Path, name: str) -> Path:
    """Write an example into a folder of its own: its files as they are, and the whole of it to repeat it."""
    target = (
        folder / f"{name}-{hashlib.sha256(signature(problem).encode()).hexdigest()[:8]}"
    )
    for path, data in example.job.files.items():
        (target / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        (target / "files" / path).write_bytes(data)
    (target / "problem.txt").write_text(
        f"{problem}\npytest {' '.join(example.job.args)}\n", encoding="utf-8"
    )
    (target / "example.pickle").write_bytes(pickle.dumps(example))
    return target


def load(folder: Path) -> Example:
    """Read what :func:`save` wrote."""
    example: Example = pickle.loads((folder / "example.pickle").read_bytes())
    return example
