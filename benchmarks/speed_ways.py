"""The ways to do the work of :mod:`speed`: the plugin's, and those it is held against."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from speed_work import Task

from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.records import GenerateRequest, ScoreRequest

BATCH = 32
NEW_TOKENS = 12
Run = Callable[[], list[Any]]


def scoring_ways(model: HfModel, other: Any, task: Task) -> dict[str, Run]:
    """Return the ways to score: ours with and without sharing, plain transformers, lm-evaluation-harness.

    Each returns the log-probability of every pair's continuation. ``other`` is the checkpoint as transformers
    loads it.
    """
    requests = [
        ScoreRequest(prompt=prompt, continuation=answer)
        for prompt, answer in task.pairs
    ]
    alone = HfModel(dataclasses.replace(model.parts))
    alone._scorer.sharing_mode = "plain"

    def log_probabilities(of: HfModel) -> list[float]:
        return [log(answer.probabilities) for answer in of.score(requests)]  # type: ignore[union-attr]

    ways: dict[str, Run] = {
        "kbrel": lambda: log_probabilities(model),
        "kbrel, nothing shared": lambda: log_probabilities(alone),
        f"transformers, batches of {BATCH}": lambda: plainly(model, other, task),
    }
    harness = lm_eval_of(model, other)
    if harness is not None:
        from lm_eval.api.instance import Instance

        instances = [
            Instance(
                request_type="loglikelihood", doc={}, arguments=(prompt, answer), idx=0
            )
            for prompt, answer in task.pairs
        ]
        ways[f"lm-eval, batch {BATCH}"] = lambda: [
            value for value, _ in harness.loglikelihood(instances, disable_tqdm=True)
        ]
    return ways


def plainly(model: HfModel, other: Any, task: Task) -> list[float]:
    """Score as the documentation of transformers does: padded batches, longest first, all logits."""
    pairs = [model.parts.encoder.pair(*pair) for pair in task.pairs]
    order = sorted(
        range(len(pairs)), key=lambda n: -len(pairs[n].context) - len(pairs[n].targets)
    )
    scores: dict[int, float] = {}
    for numbers in _pieces(order):
        some = [pairs[number] for number in numbers]
        with torch.inference_mode():
            if other.config.is_encoder_decoder:
                labels = padded(
                    [(*pair.lead, *pair.targets) for pair in some], -100
                ).to(other.device)
                inputs = padded([pair.context for pair in some], 0).to(other.device)
                mask = padded([[1] * len(pair.context) for pair in some], 0).to(
                    other.device
                )
                logits = other(
                    input_ids=inputs, attention_mask=mask, labels=labels
                ).logits
                starts = [len(pair.lead) for pair in some]
            else:
                inputs = padded(
                    [(*pair.context, *pair.targets[:-1]) for pair in some], 0
                ).to(other.device)
                logits = other(input_ids=inputs).logits
                starts = [len(pair.context) - 1 for pair in some]
            values = logits.float().log_softmax(-1)
        for row, (number, pair) in enumerate(zip(numbers, some, strict=True)):
            places = range(starts[row], starts[row] + len(pair.targets))
            scores[number] = float(
                values[row, list(places), list(pair.targets)].double().sum()
            )
    return [scores[number] for number in range(len(pairs))]


def generating_ways(model: HfModel, other: Any, task: Task) -> dict[str, Run]:
    """Return the ways to write answers of at most 12 tokens, which end with their line."""
    requests = [
        GenerateRequest(prompt=prompt, max_new_tokens=NEW_TOKENS)
        for prompt in task.prompts
    ]
    prompts = [list(model.parts.encoder.prompt(prompt)) for prompt in task.prompts]
    tokenizer = model.parts.tokenizer

    def ours() -> list[str]:
        return [answer.text for answer in model.generate(requests)]  # type: ignore[union-attr]

    def text(ids: Sequence[int]) -> str:
        return (
            str(tokenizer.decode(list(ids), skip_special_tokens=True))
            .partition("\n")[0]
            .strip()
        )

    def plain() -> list[str]:
        texts: list[str] = []
        for some in _pieces(prompts):
            width = max(map(len, some))
            # Decoders write behind the prompt, so that it must end where the row ends.
            padded_rows = torch.tensor(
                [[0] * (width - len(row)) + row for row in some], device=other.device
            )
            mask = torch.tensor(
                [[0] * (width - len(row)) + [1] * len(row) for row in some],
                device=other.device,
            )
            with torch.inference_mode():
                written = other.generate(
                    padded_rows,
                    attention_mask=mask,
                    max_new_tokens=NEW_TOKENS,
                    do_sample=False,
                    pad_token_id=0,
                )
            behind = 0 if other.config.is_encoder_decoder else width
            texts += [text(row[behind:]) for row in written.tolist()]
        return texts

    ways: dict[str, Run] = {
        "kbrel": ours,
        f"transformers generate, batches of {BATCH}": plain,
    }
    if not other.config.is_encoder_decoder:
        from continuous import continuous

        ways["transformers continuous batching"] = lambda: continuous(
            other, tokenizer, list(task.prompts), NEW_TOKENS
        )
    harness = lm_eval_of(model, other)
    if harness is not None:
        from lm_eval.api.instance import Instance

        settings = {"until": ["\n"], "max_gen_toks": NEW_TOKENS, "do_sample": False}
        instances = [
            Instance(
                request_type="generate_until",
                doc={},
                arguments=(prompt, settings),
                idx=0,
            )
            for prompt in task.prompts
        ]
        ways[f"lm-eval, batch {BATCH}"] = lambda: [
            written.strip()
            for written in harness.generate_until(instances, disable_tqdm=True)
        ]
    return ways


def lm_eval_of(model: HfModel, other: Any) -> Any:
    """Return lm-evaluation-harness around ``other``; ``None`` where it is not installed."""
    try:
        from lm_eval.models.huggingface import HFLM
    except ImportError:
        return None
    backend = "seq2seq" if other.config.is_encoder_decoder else "causal"
    return HFLM(
        pretrained=other,
        tokenizer=model.parts.tokenizer,
        backend=backend,
        batch_size=BATCH,
    )


def padded(rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
    """Return rows as one tensor, filled behind."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])


def log(probabilities: Sequence[float]) -> float:
    """Return the log-probability of a whole continuation."""
    return float(torch.tensor(probabilities, dtype=torch.float64).log().sum())


def _pieces(things: Sequence[Any]) -> list[Sequence[Any]]:
    return [things[start : start + BATCH] for start in range(0, len(things), BATCH)]
