"""Host time of a step of writing and of laying its rows out anew, with the limits of a GPU.

    OMP_NUM_THREADS=1 python benchmarks/writing_steps.py

No GPU is needed: what is measured is what Python and PyTorch do beside the forwards of a Llama of narrow
layers, with 32,768 tokens and 500 texts a batch (``--mode packed`` or ``prefix``). Its texts end after some six
tokens. Operations are those that PyTorch dispatches outside the forwards, views included.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import forwards
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

import pytest_kbrel
from pytest_kbrel import resources
from pytest_kbrel.evaluation.stub_run import whole
from pytest_kbrel.models.hf import generator, scorer
from pytest_kbrel.models.hf.decode_loop import DecodeLoop
from pytest_kbrel.models.hf.stopping import NextTokens
from pytest_kbrel.probes import open_case
from pytest_kbrel.records import GenerateRequest
from pytest_kbrel.suites import load_suite

TEXTS = 500
REQUESTS = {"head_to_tail": 2000, "monitor": 3000}


class Clock(TorchDispatchMode):
    """Seconds of the process, calls and operations, each by the parts of a run that it was in."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self._inside = "run"
        self._since = time.process_time()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Count an operation."""
        self.operations[self._inside] += 1
        return func(*args, **(kwargs or {}))

    def timed(self, part: str, function: Any) -> Any:
        """Return ``function``, measured as ``part`` of what calls it."""

        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            outside = self._inside
            self._enter(f"{outside} {part}")
            self.calls[self._inside] += 1
            try:
                return function(*args, **named)
            finally:
                self._enter(outside)

        return call

    def _enter(self, part: str) -> None:
        now = time.process_time()
        self.seconds[self._inside] += now - self._since
        self._inside, self._since = part, now


def main() -> None:
    """Measure both kinds of requests and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", default="packed", choices=["packed", "prefix"])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    as_on = functools.partial(scorer.spares_passes, forwards.Device("cuda"))
    generator.spares_passes = lambda _, *numbers: as_on(*numbers)
    embedded = Path(pytest_kbrel.__file__).parent / "reference" / "checkpoints" / "base"
    limit, folder = forwards.LIMITS["cuda"], tempfile.TemporaryDirectory()
    model = forwards.made(
        embedded, Path(folder.name), limit, layers=given.layers, width=32
    )
    vars(model._generator)["sharing_mode"] = given.mode
    generator.LOGITS_AT_ONCE = TEXTS * model.parts.model.config.vocab_size
    new_line = model.parts.tokenizer.encode("\n", add_special_tokens=False)[-1]
    model.parts.model.set_output_embeddings(forwards.Endings(new_line))
    print(
        "| | steps, renewals | a step: ms, operations | stopping: ms, operations | "
        "a renewal: ms, operations |"
    )
    print("|---|--:|--:|--:|--:|")
    cases = load_suite(resources.suites() / "world.kb.yaml").cases
    for probe, most in REQUESTS.items():
        requests = [
            ask.request
            for case in cases
            if case.probe == probe
            for chunk in whole(case)
            for ask in next(open_case(chunk))
            if isinstance(ask.request, GenerateRequest)
        ][:most]
        clocks = [measured(model, requests) for _ in range(given.rounds)]
        counted = measured(model, requests, counts=True)
        steps, renewals = (counted.calls[f"run {one}"] for one in ("step", "renewal"))
        cells = []
        for part, calls in (
            ("run step", steps),
            ("run step stopping", steps),
            ("run renewal", renewals),
        ):
            # Of a renewal what it does for new prompts too, but for their forward.
            names = [
                name
                for name in counted.seconds
                if name == part or (part == "run renewal" and name.startswith(part))
                if not name.endswith("forward")
            ]
            seconds = statistics.median(
                sum(c.seconds[n] for n in names) for c in clocks
            )
            operations = sum(counted.operations[name] for name in names)
            cells.append(f"{1000 * seconds / calls:.2f}, {operations / calls:.0f}")
        title = f"{probe}, {len(requests)} texts"
        print(f"| {title} | {steps}, {renewals} | {' | '.join(cells)} |", flush=True)


def measured(model: Any, requests: Any, *, counts: bool = False) -> Clock:
    """Return the times of one call of the model, or with ``counts`` its operations."""
    clock = Clock()
    inner = type(model.parts.model)
    with (
        patch.object(DecodeLoop, "_step", clock.timed("step", DecodeLoop._step)),
        patch.object(DecodeLoop, "_renew", clock.timed("renewal", DecodeLoop._renew)),
        patch.object(inner, "forward", clock.timed("forward", inner.forward)),
        patch.object(
            NextTokens, "__init__", clock.timed("stopping", NextTokens.__init__)
        ),
        patch.object(
            NextTokens, "append_to", clock.timed("stopping", NextTokens.append_to)
        ),
        clock if counts else nullcontext(),
    ):
        model.generate(requests)
    return clock


if __name__ == "__main__":
    main()
