"""What the plugin costs beside the model: where it is idle, where it collects, and at each item.

    OMP_NUM_THREADS=1 python benchmarks/startup.py
    OMP_NUM_THREADS=1 python benchmarks/startup.py idle --rounds 31
    OMP_NUM_THREADS=1 python benchmarks/startup.py collect items
    OMP_NUM_THREADS=1 python benchmarks/startup.py question --model ./model --model-args=dtype=float32

Each figure comes from real pytest processes, in turns, medians. ``idle``: a project without suites, with
the plugin and with ``-p no:kbrel``, and what Python's own ``-X importtime`` says. ``collect``: ``pytest
--co`` over the suites that ship, over a synthetic one of FKTC's size (16,167 facts of 20 relations, 13
prompts each: 210,171) and over 18,000 questions as Head-to-Tail's scripts write them. ``items``: whole runs
of the embedded checkpoint; what each item took less the time inside the model, with the first item of a
process apart, for imports fall there. ``question``: until a checkpoint has answered the first batch of the
suites that ship, and until a run of one item has ended.

CPU seconds are those of the process and of all that it started; other work on the machine moves them less
than the seconds on the clock. All processes find their modules compiled, as those of a user do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("idle", "collect", "items", "question")
# FKTC's shape (Wang et al., table 10): relations, facts, frames and contexts.
RELATIONS, FACTS, FRAMES, CONTEXTS = 20, 16_167, 7, 5
QUESTIONS = 18_000
ITEMS = 20
MODEL: list[str] = []
FKTC_SUITE = "suite: fktc\nfacts: fktc\nformat: fktc\nmonitor:\n  gates:\n    accuracy: {max_drop: 0.02}\n"
BOTH_SUITE = FKTC_SUITE + "reliability:\n  slices: [known, known-four-shot]\n"
QUESTIONS_SUITE = "suite: questions\nfacts: questions.json\nformat: head-to-tail\nhead_to_tail:\n  gates:\n"
QUESTIONS_SUITE += "    accuracy: {max_drop: 0.02}\n"
# A plugin of the measured run: what the model itself takes at each item. Of a generator only the time until
# its next answers is the model's.
CLOCK = """\
import functools, json, os, time
from pathlib import Path

import pytest

now = {"wall": time.perf_counter, "cpu": time.process_time}
items, state = [], {"depth": 0, "wall": 0.0, "cpu": 0.0, "load": 0.0}


def inside(action):
    started = {name: clock() for name, clock in now.items()}
    state["depth"] += 1
    try:
        return action()
    finally:
        state["depth"] -= 1
        if not state["depth"]:
            for name, clock in now.items():
                state[name] += clock() - started[name]


def stepped(method):
    @functools.wraps(method)
    def timed(self, requests):
        batches = method(self, requests)
        while (batch := inside(lambda: next(batches, None))) is not None:
            yield batch
    return timed


def pytest_collection_finish(session):
    from pytest_kbrel.models.hf import backend as hf
    from pytest_kbrel.models.hf.model import HfModel

    HfModel.score_as_ready = stepped(HfModel.score_as_ready)
    HfModel.generate_as_ready = stepped(HfModel.generate_as_ready)
    load = hf.load
    object.__setattr__(hf.HF, "open", lambda *args, **kwargs: inside(lambda: load(*args, **kwargs)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    before = {name: clock() - state[name] for name, clock in now.items()}
    result = yield
    items.append({name: clock() - state[name] - before[name] for name, clock in now.items()})
    items[-1]["id"] = item.nodeid
    return result


def pytest_sessionfinish(session):
    name = os.environ.get("PYTEST_XDIST_WORKER", "main")
    Path(os.environ["KBREL_CLOCK"], name + ".json").write_text(json.dumps(items))
"""
# A plugin that ends the process where the model has answered its first batch.
FIRST = """\
import os


def pytest_collection_finish(session):
    from pytest_kbrel.models.hf import backend as hf

    load = hf.load

    def opened(*args, **kwargs):
        model = load(*args, **kwargs)
        for name in ("score_as_ready", "generate_as_ready"):
            setattr(model, name, ended(getattr(model, name)))
        return model

    object.__setattr__(hf.HF, "open", opened)


def ended(ready):
    def first(requests):
        next(ready(requests))
        os._exit(0)

    return first
"""


def main() -> None:
    """Measure the parts that are asked for and print a table of each."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all without"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=0,
        help="pairs in turn (default: 21 idle, 5 collect, 3 items)",
    )
    parser.add_argument("--model", default="reference", help="of question")
    parser.add_argument("--model-args", default="")
    options = parser.parse_args()
    MODEL.extend(
        (f"--kb-model={options.model}", f"--kb-model-args={options.model_args}")
    )
    if wrong := set(options.parts) - {*PARTS}:
        parser.error(f"found {', '.join(sorted(wrong))}; allowed: {', '.join(PARTS)}")
    measures: dict[str, Callable[[Path, int], None]] = {
        "idle": idle,
        "collect": collect,
        "items": items,
        "question": question,
    }
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as compiled:
        os.environ["PYTHONPYCACHEPREFIX"] = compiled
        for part in options.parts or PARTS:
            with tempfile.TemporaryDirectory() as folder:
                measures[part](Path(folder), options.rounds)


def pytest_seconds(
    folder: Path, *args: str, env: dict[str, str] | None = None, may_fail: bool = False
) -> tuple[float, float]:
    """Run pytest in ``folder``; return the seconds on the clock and those of CPU, children included.

    ``may_fail`` allows verdicts to be red, the exit code 1.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
    )
    seconds = time.perf_counter() - started
    if done.returncode > may_fail:
        output = f"{done.stdout}{done.stderr}"[-3000:]
        raise SystemExit(
            f"pytest {' '.join(args)} ended with {done.returncode}:\n{output}"
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu


def idle(folder: Path, rounds: int) -> None:
    """Compare a project's own run with the plugin installed and blocked."""
    (folder / "test_other.py").write_text(
        "def test_other():\n    pass\n", encoding="utf-8"
    )
    ways = {"with": ("-q",), "without": ("-q", "-p", "no:kbrel")}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    pytest_seconds(folder, "-q")
    for number in range(rounds or 21):
        # In turns, and each as often the first of its pair.
        for name in sorted(ways, reverse=bool(number % 2)):
            times[name].append(pytest_seconds(folder, *ways[name]))
    print("| idle | median ms on the clock | median ms of CPU |\n|---|--:|--:|")
    for name, all_seconds in times.items():
        print(
            f"| {name} the plugin | {_ms(s for s, _ in all_seconds)} | {_ms(c for _, c in all_seconds)} |"
        )
    pairs = list(zip(times["with"], times["without"], strict=True))
    wall, cpu = (_ms(a[n] - b[n] for a, b in pairs) for n in (0, 1))
    print(f"| difference of a pair | {wall} | {cpu} |")
    imports = statistics.median(_imports(folder) for _ in range(rounds or 21))
    print(
        f"\nPython's own account of the plugin's imports (median): {imports:.1f} ms\n"
    )


def _imports(folder: Path) -> float:
    """Return what the plugin's own modules take to import, in milliseconds."""
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    own = [
        line.split("|")
        for line in lines
        if line.startswith("import time:") and "pytest_kbrel" in line
    ]
    return sum(int(parts[0].removeprefix("import time:")) for parts in own) / 1000


def _ms(seconds: Iterable[float]) -> str:
    return f"{1000 * statistics.median(seconds):.1f}"


def collect(folder: Path, rounds: int) -> None:
    """Time ``pytest --co`` over what ships and over the largest suites."""
    write_fktc(folder)
    write_questions(folder)
    shutil.copytree(ROOT / "suites", folder / "shipped")
    suites = {
        "no suite: pytest itself": ("-p", "no:kbrel", "empty"),
        "shipped": ("shipped",),
        "FKTC's size": ("fktc.kb.yaml",),
        "FKTC's size, two probes": ("both.kb.yaml",),
        "18,000 questions": ("questions.kb.yaml",),
    }
    (folder / "empty").mkdir()
    (folder / "empty" / "test_other.py").write_text(
        "def test_other():\n    pass\n", encoding="utf-8"
    )
    print(
        "| pytest --co | median seconds on the clock | median seconds of CPU |\n|---|--:|--:|"
    )
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in suites}
    pytest_seconds(folder, "--co", "-q", "shipped")
    for _ in range(rounds or 5):
        for name, args in suites.items():
            times[name].append(pytest_seconds(folder, "--co", "-q", *args))
    for name, all_seconds in times.items():
        wall, cpu = (statistics.median(pair[n] for pair in all_seconds) for n in (0, 1))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} |")
    print()


def items(folder: Path, rounds: int) -> None:
    """Time whole runs of the embedded checkpoint, by item, less what its model takes."""
    (folder / "kbrel_clock.py").write_text(CLOCK, encoding="utf-8")
    write_relations(folder)
    # Empty tests in the same processes, behind the suite: what pytest takes for any test.
    text = "import pytest\n\n@pytest.mark.parametrize('n', range(20))\ndef test_empty(n):\n    pass\n"
    (folder / "test_empty.py").write_text(text, encoding="utf-8")
    print(
        "| run | responses of an item | an item | an empty test | the difference | first of a process |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for workers in ((), ("-n2",)):
        measured = []
        for name, suite in (("1 fact", "one.kb.yaml"), ("20 facts", "some.kb.yaml")):
            result: list[Item] = []
            for _ in range(rounds or 3):
                result += _clocked(folder, suite, "test_empty.py", *workers)
            answers = (folder / "kbrel-report" / "responses.jsonl").read_bytes().count(
                b"\n"
            ) / ITEMS
            item = _median(one for one in result if one.is_ours and not one.first)
            empty = _median(one for one in result if not one.is_ours)
            first = _median(one for one in result if one.first)
            measured.append((answers, item[1] - empty[1]))
            label = f"items of {name}{', 2 workers' if workers else ''}"
            cells = (item, empty, (item[0] - empty[0], item[1] - empty[1]), first)
            print(
                f"| {label} | {answers:.0f} | {' | '.join(f'{c:.1f} ({w:.1f})' for w, c in cells)} |"
            )
        (few, low), (many, high) = measured
        print(f"| each response | | | | {(high - low) / (many - few):.3f} | |")
    print("\nMilliseconds of CPU (on the clock) beside the model, medians.\n")


def question(folder: Path, rounds: int) -> None:
    """Time the way to the first answers, and a whole run of one item."""
    (folder / "kbrel_first.py").write_text(FIRST, encoding="utf-8")
    flags = ("-q", "--kb-use-cache=off", f"--kb-output-path={folder}/out", *MODEL)
    ways = {
        "first answers": (str(ROOT / "suites"), "-p", "kbrel_first"),
        "the end of one item": (str(ROOT / "suites"), "-k", "P36"),
    }
    env = {"PYTHONPATH": str(folder)}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for number in range(1 + (rounds or 5)):
        for name, args in ways.items():
            taken = pytest_seconds(folder, *flags, *args, env=env)
            if number:
                times[name].append(taken)
    print(
        "| until | median seconds on the clock | median seconds of CPU |\n|---|--:|--:|"
    )
    for name, all_seconds in times.items():
        wall, cpu = (statistics.median(pair[n] for pair in all_seconds) for n in (0, 1))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} |")
    print()


class Item(NamedTuple):
    """What a test took beside the model, in milliseconds; ``first``: it is its process's first of a suite."""

    wall: float
    cpu: float
    is_ours: bool
    first: bool


def _median(items: Iterable[Item]) -> tuple[float, float]:
    walls, cpus = zip(*((one.wall, one.cpu) for one in items), strict=True)
    return statistics.median(walls), statistics.median(cpus)


def _clocked(folder: Path, *args: str) -> list[Item]:
    """Run a suite and return what each test of the run took beside the model."""
    times = folder / "times"
    times.mkdir(exist_ok=True)
    for old in times.glob("*.json"):
        old.unlink()
    env = {"KBREL_CLOCK": str(times), "PYTHONPATH": str(folder)}
    flags = ("--kb-model=reference", "--kb-use-cache=off", "-p", "kbrel_clock")
    # Questions of made-up words get answers that no gate accepts.
    pytest_seconds(folder, "-q", *flags, *args, env=env, may_fail=True)
    items: list[Item] = []
    for file in times.glob("*.json"):
        entries = json.loads(file.read_text(encoding="utf-8"))
        ours = [".kb.yaml::" in one["id"] for one in entries]
        items += [
            Item(
                1000 * one["wall"],
                1000 * one["cpu"],
                mine,
                first=mine and True not in ours[:number],
            )
            for number, (one, mine) in enumerate(zip(entries, ours, strict=True))
        ]
    return items


def write_relations(folder: Path) -> None:
    """Write suites of 20 relations, an item each: with one fact each, and with 20."""
    draw = random.Random(2)
    for name, count in (("one", 1), ("some", 20)):
        data = folder / name
        data.mkdir()
        facts, relations = [], []
        for number in range(ITEMS):
            objects = [_word(draw).title() for _ in range(50)]
            relations.append(
                f"R{number}:\n  label: thing\n  domain: d{number}\n  frames:\n"
            )
            relations += [
                f"    - What is the {_word(draw)} of [X], in wording {n}?\n"
                for n in range(FRAMES)
            ]
            for fact in range(count):
                right, *wrong = draw.sample(objects, CONTEXTS + 1)
                entry = {
                    "relation": f"R{number}",
                    "subject": f"{_word(draw)} {fact}",
                    "object": right,
                }
                facts.append(json.dumps({**entry, "negatives": wrong}) + "\n")
        (data / "facts.jsonl").write_text("".join(facts), encoding="utf-8")
        (data / "relations.yaml").write_text("".join(relations), encoding="utf-8")
        gates = "  gates:\n    monitor: {max: 1000}\n    accuracy: {min: 0}\n"
        text = f"suite: {name}\nfacts: {name}/facts.jsonl\nmonitor:\n{gates}"
        lax = "integrity: {below_random: allowed, unmoved: 1, anchor_prob: 0, repeated: 1, empty: 1, "
        lax += "answered: 0, truncated: 1}\n"
        (folder / f"{name}.kb.yaml").write_text(text + lax, encoding="utf-8")


def write_fktc(folder: Path) -> None:
    """Write suites over facts in FKTC's format and of its size: a file a relation."""
    draw = random.Random(0)
    data = folder / "fktc"
    data.mkdir()
    for relation in range(RELATIONS):
        # As in FKTC, a few hundred objects go round.
        objects = [f"{_word(draw)} {_word(draw)}".title() for _ in range(300)]
        frames = [
            f"{_word(draw)} {_word(draw)} of [X] in wording {n}?" for n in range(FRAMES)
        ]
        lines: list[object] = [{"relations": frames}]
        for number in range(FACTS // RELATIONS + (relation < FACTS % RELATIONS)):
            chosen = draw.sample(objects, CONTEXTS + 1)
            subject = f"{_word(draw)} {_word(draw)} {number}".title()
            lines.append(
                {"subject": subject, "object": chosen[0], "taxonomy": chosen[1:]}
            )
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (data / f"P{9000 + relation}-subclass.json").write_text(text, encoding="utf-8")
    (folder / "fktc.kb.yaml").write_text(FKTC_SUITE, encoding="utf-8")
    (folder / "both.kb.yaml").write_text(BOTH_SUITE, encoding="utf-8")


def write_questions(folder: Path) -> None:
    """Write a suite over questions as the scripts of Head-to-Tail write them."""
    draw = random.Random(1)
    rows: dict[str, list[object]] = {"head": [], "torso": [], "tail": []}
    for number in range(QUESTIONS):
        name = f"{_word(draw)}_{_word(draw)}_{number}".title()
        entity = (
            f"<http://dbpedia.org/resource/{name}>",
            f"tt{number:07d}",
            f"goodreads {number}",
        )
        template = f"<http://dbpedia.org/ontology/kind{number % 120}>"
        answer = f"{_word(draw)} {_word(draw)}"
        row = [
            [entity[number % 3], template, "-"],
            template,
            f"What is {name} known for?",
            answer,
        ]
        rows[("head", "torso", "tail")[number // 3 % 3]].append(row)
    (folder / "questions.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    (folder / "questions.kb.yaml").write_text(QUESTIONS_SUITE, encoding="utf-8")


def _word(draw: random.Random) -> str:
    return "".join(
        draw.choice("bdfgklmnprstv") + draw.choice("aeiou")
        for _ in range(draw.randint(2, 4))
    )


if __name__ == "__main__":
    main()
