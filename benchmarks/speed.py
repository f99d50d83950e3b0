"""How fast questions are answered: beside lm-evaluation-harness, beside plain batches, beside the limit.

    python -m pip install -c constraints.txt -e ".[hf]" lm_eval==0.4.13 accelerate
    OMP_NUM_THREADS=2 python benchmarks/speed.py
    OMP_NUM_THREADS=1 python benchmarks/speed.py --models llama-35m --tasks monitor-prefix --clock process

All are asked the same questions in one process, on the same threads, in turns; times are medians, and ratios
those of the medians. A model is the folder of a checkpoint, which is asked what the shipped suite asks, or has
random weights and a vocabulary of words. Whoever the plugin is held against has the checkpoint as transformers
loads it. Where probabilities are further apart than 1e-4 (float32), the script ends with an error.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from speed_limit import limit_of, rates
from speed_ways import Run, generating_ways, scoring_ways
from speed_work import CONFIGS, Task, made, suite_tasks, tasks, untouched

from pytest_kbrel.models.hf.model import HfModel

CLOCKS = {"wall": time.perf_counter, "process": time.process_time}


def main() -> None:
    """Measure every model on every task and print one table line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--models",
        nargs="+",
        default=["llama-35m", "llama-134m", "t5-60m"],
        help=f"the folder of a checkpoint, or one of random weights: {', '.join(CONFIGS)}",
    )
    parser.add_argument(
        "--tasks", nargs="+", default=None, choices=[task.name for task in tasks(1)]
    )
    parser.add_argument("--facts", type=int, default=40, help="facts a task")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--clock",
        default="wall",
        choices=CLOCKS,
        help="process: where others use the machine",
    )
    parser.add_argument(
        "--without",
        nargs="+",
        default=[],
        help="ways to leave out, by the start of a name",
    )
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    print(
        f"{torch.get_num_threads()} threads, {given.dtype}, {given.device}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, {given.facts} facts, {given.clock} time, "
        f"median of {given.rounds}, load {os.getloadavg()[0]:.1f} before\n"
    )
    print(
        "| model | task | way | seconds | ratio | share of the limit | largest difference |"
    )
    print("|---|---|---|--:|--:|--:|--:|")
    wrong = 0
    for name in given.models:
        with tempfile.TemporaryDirectory() as folder:
            model = made(name, Path(folder), given.dtype, given.device)
            other = untouched(model)
            make_tasks = tasks if name in CONFIGS else suite_tasks
            for task in make_tasks(given.facts):
                if given.tasks is None or task.name in given.tasks:
                    wrong += measure(Path(name).name, model, other, task, given)
            print(f"<!-- {name}: {rates(model)} -->", flush=True)
    if wrong:
        sys.exit(f"{wrong} ways gave other numbers than kbrel")


def measure(
    name: str, model: HfModel, other: Any, task: Task, given: argparse.Namespace
) -> int:
    """Time the ways of doing one task in turns and print a line each; return how many gave other numbers."""
    ways = (scoring_ways if task.pairs else generating_ways)(model, other, task)
    ways = {
        way: run
        for way, run in ways.items()
        if not way.startswith(tuple(given.without))
    }
    first = {way: run() for way, run in ways.items()}
    seconds = timed(ways, given.rounds, given.clock, model.parts.model.device)
    limit = limit_of(model, task, CLOCKS[given.clock]) if task.pairs else None
    ours = statistics.median(seconds["kbrel"])
    wrong = 0
    for way, times in seconds.items():
        median = statistics.median(times)
        share = f"{limit / median:.0%}" if limit else ""
        if task.pairs:
            distance = max(
                abs(a - b) for a, b in zip(first["kbrel"], first[way], strict=True)
            )
            furthest = max(
                abs(math.exp(a) - math.exp(b))
                for a, b in zip(first["kbrel"], first[way], strict=True)
            )
            wrong += given.dtype == "float32" and not furthest <= 1e-4
            shown = f"{distance:.0e}"
        else:
            equal = sum(a == b for a, b in zip(first["kbrel"], first[way], strict=True))
            shown = f"{equal} of {len(first[way])} equal"
        print(
            f"| {name} | {task.name} | {way} | {median:.2f} | {median / ours:.1f} | {share} | {shown} |",
            flush=True,
        )
    return wrong


def timed(
    ways: dict[str, Run], rounds: int, clock: str, device: torch.device
) -> dict[str, list[float]]:
    """Return the seconds of each round of each way, all ways once a round."""
    now = CLOCKS[clock]
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            started = now()
            run()
            if device.type == "cuda":
                torch.cuda.synchronize()
            seconds[way].append(now() - started)
    return seconds


if __name__ == "__main__":
    main()
