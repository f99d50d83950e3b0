"""What MONITOR costs beside the accuracy study, in calls, tokens and time (Wang et al., 4.3 and Table 8).

    python benchmarks/monitor_cost.py
    python benchmarks/monitor_cost.py --relation P36 --facts 100 --model ./checkpoint
    python benchmarks/monitor_cost.py --file P1412-subclass.json

Both are asked in one process, of the same model, about the same facts, in turns, each by a fresh asker that
puts requests that are alike to the model once. ``definition``: MONITOR scores the right answer in 1 + R + M
cells, the study generates an answer in all R x (1 + 1 + M). ``published``: both generate by beam search and
keep the probabilities of each step, as the authors' script does; then once more with a study of texts only,
which is how a suite with ``study: full`` asks for it. Calls and tokens are the metrics of these names.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import torch

from pytest_kbrel import resources
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import (
    Case,
    Exchange,
    GenerateRequest,
    MonitorSettings,
    Request,
    ScoreRequest,
    Table,
)
from pytest_kbrel.suites import load_suite
from tests.function_model import answers_of

Variant = Literal["definition", "published"]
METRICS = (
    "calls_monitor",
    "calls_study",
    "saving_calls",
    "tokens_monitor",
    "tokens_study",
    "saving_tokens",
)


def main() -> None:
    """Measure both variants and print one table line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--file", type=Path, help="an FKTC file instead of the world suite"
    )
    parser.add_argument(
        "--relation", default="P37", help="the relation of the world suite"
    )
    parser.add_argument("--facts", type=int, default=40, help="how many facts")
    parser.add_argument("--model", default="reference")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is timed")
    given = parser.parse_args()
    case = case_of(given.file, given.relation, given.facts)
    model = load(parse_spec(given.model))
    relation, negatives = case.relations[0], len(case.facts[0].negatives)
    print(
        f"{given.model}, {given.file.name if given.file else given.relation}: {len(case.facts)} facts, "
        f"R = {len(relation.frames)}, M = {negatives}; {model.describe().device}, "
        f"{torch.get_num_threads()} threads, median of {given.rounds}\n"
    )
    print(
        "| variant | facts kept | calls: MONITOR | study | ratio | tokens: MONITOR | study | ratio ",
        end="",
    )
    print("| seconds: MONITOR | study | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for variant in ("definition", "published"):
        settings = MonitorSettings(variant=variant, negatives=negatives, study="full")
        for line in lines(
            dataclasses.replace(case, settings=settings), model, variant, given.rounds
        ):
            print(line, flush=True)


def case_of(file: Path | None, relation: str, facts: int) -> Case:
    """Return the case of a relation of the world suite, or of an FKTC file."""
    source = file or resources.suites() / "world" / "facts.jsonl"
    text = f"suite: cost\nfacts: {source.resolve()}\nmonitor: {{limit: {facts}"
    text += "}\nformat: fktc\n" if file else f", slices: [{relation}]}}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cost.kb.yaml"
        path.write_text(text, encoding="utf-8")
        return load_suite(path).cases[0]


def lines(case: Case, model: Model, variant: Variant, rounds: int) -> Iterator[str]:
    """Ask everything once, time the lists of requests in turns, and yield lines of the table."""
    exchanges: list[Exchange] = []
    table = run_case(case, answers_of(model), exchanges.extend).table
    fact_ids = {row.fact_id for row in table.rows if row.values[0]}
    if not fact_ids:
        yield f"| {variant} | 0 |" + " – |" * 9
        return
    requests = [
        exchange.ask.request
        for exchange in exchanges
        if exchange.ask.fact_id in fact_ids
    ]
    generated = [
        request for request in requests if isinstance(request, GenerateRequest)
    ]
    texts = [
        dataclasses.replace(request, steps=False, watch=()) for request in generated
    ]
    if variant == "definition":
        own: Sequence[Request] = [
            request for request in requests if isinstance(request, ScoreRequest)
        ]
        studies = {"definition": texts}
    else:
        own = [request for request in generated if request.steps]
        steps = [dataclasses.replace(request, steps=True) for request in generated]
        studies = {"published": steps, "published, study of texts": texts}
    seconds = [
        (timed(model, own), *(timed(model, study) for study in studies.values()))
        for _ in range(rounds)
    ]
    monitor, *whole = (statistics.median(times) for times in zip(*seconds, strict=True))
    costs = figures(table)
    cells = [
        f"{costs[name]:.2f}" if "saving" in name else f"{costs[name]:.0f}"
        for name in METRICS
    ]
    for name, study in zip(studies, whole, strict=True):
        times = [f"{monitor:.2f}", f"{study:.2f}", f"{study / monitor:.2f}"]
        yield f"| {' | '.join([name, str(len(fact_ids)), *cells, *times])} |"


def figures(table: Table) -> dict[str, float]:
    """Return the metrics of a table, by name."""
    return {
        figure.name: figure.value([table]) or 0.0
        for figure in figures_of(metrics_for("monitor", "", table.columns))
    }


def timed(model: Model, requests: Sequence[Request]) -> float:
    """Return the seconds that the requests take."""
    start = time.perf_counter()
    answers_of(model)(requests)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
