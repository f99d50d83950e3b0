"""What the options of a checkpoint cost and bring: attention, number format, tokens a batch.

    OMP_NUM_THREADS=1 python benchmarks/options.py speed
    OMP_NUM_THREADS=1 python benchmarks/options.py budgets
    OMP_NUM_THREADS=1 python benchmarks/options.py accuracy

``speed`` loads a checkpoint of random weights once for each option and asks the same questions in turns;
seconds are process time, medians. ``budgets`` does so for each number of tokens a batch, each in a process of
its own, whose peak of memory is told. ``accuracy`` asks the embedded checkpoint all cases of the world suite
once for each number format and holds the answers to the same questions against those in float32.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from speed_work import made, tasks

from pytest_kbrel import resources
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.devices import bytes_a_token
from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import (
    Exchange,
    Generated,
    GenerateRequest,
    Request,
    Response,
    Scored,
    ScoreRequest,
)
from pytest_kbrel.suites import load_suite
from tests.function_model import answers_of

WAYS = {
    "default (sdpa, float32)": "",
    "attn_implementation=eager": "attn_implementation=eager",
    "dtype=bfloat16": "dtype=bfloat16",
    "dtype=float16": "dtype=float16",
}
BUDGETS = (512, 1024, 2048, 4096, 8192, 16384)
TASKS = ("monitor-bare", "monitor-prefix", "answers-prefix")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("speed", "budgets", "accuracy", "one-budget"))
    parser.add_argument(
        "--model", default="llama-35m", help="of benchmarks/speed_work.py"
    )
    parser.add_argument(
        "--facts",
        type=int,
        default=40,
        help="facts a task, or of each slice of the suite",
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--tokens", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    if given.what == "one-budget":
        one_budget(given)
        return
    print(
        f"{torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, {given.facts} facts, median of {given.rounds}, "
        f"load {os.getloadavg()[0]:.1f} before\n"
    )
    {"speed": speed, "budgets": budgets, "accuracy": accuracy}[given.what](given)


def speed(given: argparse.Namespace) -> None:
    """Print a line for each option: what loading took, and each task."""
    with tempfile.TemporaryDirectory() as folder:
        made(given.model, Path(folder), "float32", "cpu")
        print(f"| {given.model} | loaded and asked once | {' | '.join(TASKS)} |")
        print("|---|--:|" + "--:|" * len(TASKS))
        models: dict[str, HfModel] = {}
        first: dict[str, float] = {}
        for way in given.ways:
            started = time.process_time()
            models[way] = load(parse_spec(str(folder), WAYS[way], device="cpu"))
            for task in TASKS:
                run_of(models[way], task, given.facts)()
            first[way] = time.process_time() - started
        seconds: dict[tuple[str, str], list[float]] = {}
        for _ in range(given.rounds):
            for task in TASKS:
                for way, model in models.items():
                    run = run_of(model, task, given.facts)
                    before = time.process_time()
                    run()
                    seconds.setdefault((way, task), []).append(
                        time.process_time() - before
                    )
        for way in models:
            cells = " | ".join(
                f"{statistics.median(seconds[way, task]):.2f}" for task in TASKS
            )
            print(f"| `{way}` | {first[way]:.1f} | {cells} |", flush=True)


def budgets(given: argparse.Namespace) -> None:
    """Print a line for each number of tokens a batch: seconds and memory, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        made(given.model, Path(folder), "float32", "cpu")
        print(
            f"| tokens a batch | {' | '.join(TASKS)} | peak beside the loaded model, MiB | reckoned |"
        )
        print("|--:|" + "--:|" * (len(TASKS) + 2))
        for tokens in BUDGETS:
            command = [
                __file__,
                "one-budget",
                "--tokens",
                str(tokens),
                "--folder",
                folder,
            ]
            rest = ["--facts", str(given.facts), "--rounds", str(given.rounds)]
            done = subprocess.run(
                [sys.executable, *command, *rest],
                check=True,
                text=True,
                capture_output=True,
            )
            print(done.stdout.strip(), flush=True)


def one_budget(given: argparse.Namespace) -> None:
    """Print the line of one number of tokens a batch."""
    model = load(
        parse_spec(str(given.folder), device="cpu", batch_size=str(given.tokens))
    )
    for task in TASKS:
        run_of(model, task, 2)()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    medians = []
    for task in TASKS:
        run, seconds = run_of(model, task, given.facts), []
        for _ in range(given.rounds):
            started = time.process_time()
            run()
            seconds.append(time.process_time() - started)
        medians.append(f"{statistics.median(seconds):.2f}")
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    reckoned = given.tokens * bytes_a_token(model.parts.model) / 2**20
    print(f"| {given.tokens} | {' | '.join(medians)} | {peak:.0f} | {reckoned:.0f} |")


def accuracy(given: argparse.Namespace) -> None:
    """Print, for each number format, how far answers to the same questions are from those in float32."""
    suite = load_suite(resources.suites() / "world.kb.yaml", limit=given.facts)
    responses: dict[str, dict[Request, Response]] = {}
    for dtype in ("float32", "bfloat16", "float16"):
        model = load(parse_spec("reference", device="cpu", dtype=dtype))
        exchanges: list[Exchange] = []
        for case in suite.cases:
            run_case(case, answers_of(model), exchanges.extend)
        responses[dtype] = {one.ask.request: one.response for one in exchanges}
    print(
        "| dtype | scored | largest difference, nats a text | in probability | texts | changed |"
    )
    print("|---|--:|--:|--:|--:|--:|")
    for dtype in ("bfloat16", "float16"):
        both = [
            (request, responses["float32"][request], responses[dtype][request])
            for request in responses["float32"].keys() & responses[dtype].keys()
        ]
        scored = [
            (logs(one), logs(other))
            for request, one, other in both
            if isinstance(request, ScoreRequest)
            and isinstance(one, Scored)
            and isinstance(other, Scored)
        ]
        texts = [
            one.text == other.text
            for request, one, other in both
            if isinstance(request, GenerateRequest)
            and isinstance(one, Generated)
            and isinstance(other, Generated)
        ]
        nats = max(abs(one - other) for one, other in scored)
        probability = max(abs(math.exp(one) - math.exp(other)) for one, other in scored)
        changed = texts.count(False)
        print(
            f"| {dtype} | {len(scored)} | {nats:.2f} | {probability:.3f} | {len(texts)} | "
            f"{changed} ({changed / len(texts):.2%}) |"
        )


def run_of(model: HfModel, name: str, facts: int) -> Callable[[], object]:
    """Return what asks a model one task."""
    task = next(task for task in tasks(facts) if task.name == name)
    if task.pairs:
        scores = [
            ScoreRequest(prompt=prompt, continuation=answer)
            for prompt, answer in task.pairs
        ]
        return lambda: model.score(scores)
    asks = [
        GenerateRequest(prompt=prompt, max_new_tokens=12) for prompt in task.prompts
    ]
    return lambda: model.generate(asks)


def logs(answer: Scored) -> float:
    """Return the log-probability of a whole continuation."""
    return sum(math.log(max(value, 1e-300)) for value in answer.probabilities)


if __name__ == "__main__":
    main()
