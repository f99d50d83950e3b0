"""Tokenizer, batches by length, the Muon optimiser and the training loop."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from pytest_kbrel.records import record
from recipe.corpus import Document

PAD, BOS, EOS = 0, 1, 2
SPECIAL = ("<pad>", "<s>", "</s>")


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Train a tokenizer that puts BOS in front; ``vocabulary`` is the number of tokens."""
    tokenizer = Tokenizer(models.BPE())
    # With a space in front, a name at the start of a text and one inside it are the same tokens.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{SPECIAL[BOS]} $A", special_tokens=[(SPECIAL[BOS], BOS)]
    )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, positions: int) -> None:
    """Write the files ``AutoTokenizer`` needs; ``positions`` is the longest input, in tokens."""
    tokenizer.save(str(folder / "tokenizer.json"))
    # Written by hand: transformers 5 would name a class that transformers 4 does not know.
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": SPECIAL[PAD],
        "bos_token": SPECIAL[BOS],
        "eos_token": SPECIAL[EOS],
        "clean_up_tokenization_spaces": False,
        "model_max_length": positions,
    }
    (folder / "tokenizer_config.json").write_text(
        json.dumps(settings, indent=2) + "\n", encoding="utf-8"
    )


# Coefficients of the quintic Newton-Schulz step, from Keller Jordan, "Muon: An optimizer for hidden layers in
# neural networks" (2024), https://kellerjordan.github.io/posts/muon/.
_A, _B, _C = 3.4445, -4.7750, 2.0315


def orthogonalise(matrix: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Return a matrix of the same row and column space whose singular values are all near 1."""
    tall = matrix.shape[0] > matrix.shape[1]
    x: torch.Tensor = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    """Nesterov momentum whose update is orthogonalised; for matrices only.

    torch's own Muon runs these steps in bfloat16, whose speed depends on the processor far more than
    float32's does.
    """

    def __init__(
        self,
        params: Iterable[torch.nn.Parameter],
        lr: float = 0.02,
        momentum: float = 0.95,
        weight_decay: float = 0.05,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            lr, momentum = group["lr"], group["momentum"]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state: dict[str, Any] = self.state[parameter]
                    average = state.setdefault("momentum", torch.zeros_like(parameter))
                    average.lerp_(parameter.grad, 1 - momentum)
                    update = orthogonalise(parameter.grad.lerp(average, momentum))
                    # A tall matrix gets a longer step, so that every output changes by about as much.
                    scale = max(1.0, parameter.shape[0] / parameter.shape[1]) ** 0.5
                    parameter.mul_(1 - lr * group["weight_decay"]).add_(
                        update, alpha=-lr * scale
                    )


# Token ids of a document and the weight of each in the loss.
Example = tuple[list[int], list[float]]
STEP_TOKENS = 1024
# Prompts are learned too, so that names become familiar, but little and not in every document.
PROMPT_WEIGHT, PROMPT_SHARE = 0.2, 0.3


@record
class Plan:
    """Settings of a training.

    ``rate`` is AdamW's learning rate, ``hidden_rate`` Muon's; without the latter AdamW trains all.
    """

    rate: float
    hidden_rate: float | None = None
    warmup: int = 60
    weight_decay: float = 0.0
    floor: float = 0.02


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Pin torch to one thread and to deterministic algorithms, and put its settings back afterwards."""
    threads, strict = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
    )
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(strict)


def encode(
    tokenizer: Tokenizer,
    documents: Sequence[Document],
    *,
    seed: int,
    prompt_share: float = PROMPT_SHARE,
) -> list[Example]:
    """Turn documents into examples that end with EOS."""
    rng = random.Random(seed)
    encodings = tokenizer.encode_batch(
        ["".join(text for text, _ in document) for document in documents]
    )
    examples = []
    for document, encoding in zip(documents, encodings, strict=True):
        prompt = PROMPT_WEIGHT if rng.random() < prompt_share else 0.0
        weights, piece, end = [], 0, len(document[0][0])
        for _, stop in encoding.offsets:
            while stop > end:
                piece += 1
                end += len(document[piece][0])
            # The template's BOS has no place in the text and is never predicted.
            weights.append(0.0 if stop == 0 else document[piece][1] or prompt)
        examples.append(([*encoding.ids, EOS], [*weights, 1.0]))
    return examples


def batches(
    examples: Sequence[Example], *, seed: int, window: int = 4096
) -> list[list[Example]]:
    """Group examples of like length into steps of at most ``STEP_TOKENS`` tokens, in random order."""
    rng = random.Random(seed)
    order = list(range(len(examples)))
    rng.shuffle(order)
    steps: list[list[Example]] = []
    for start in range(0, len(order), window):
        group = sorted(
            order[start : start + window], key=lambda index: len(examples[index][0])
        )
        made: list[list[Example]] = [[]]
        for index in group:
            if made[-1] and (len(made[-1]) + 1) * len(examples[index][0]) > STEP_TOKENS:
                made.append([])
            made[-1].append(examples[index])
        rng.shuffle(made)
        steps += made
    return steps


def train(model: Any, steps: Sequence[Sequence[Example]], plan: Plan) -> list[float]:
    """Train ``model`` in place and return the mean loss on answer tokens (nats) of each step."""
    optimisers = _optimisers(model, plan)
    rates = [
        [group["lr"] for group in optimiser.param_groups] for optimiser in optimisers
    ]
    model.train()
    losses = []
    for number, step in enumerate(steps):
        scale = min((number + 1) / plan.warmup, 1.0) * max(
            plan.floor, 1 - number / len(steps)
        )
        for optimiser, bases in zip(optimisers, rates, strict=True):
            for group, base in zip(optimiser.param_groups, bases, strict=True):
                group["lr"] = base * scale
        each, weights = _losses(model, step)
        for optimiser in optimisers:
            optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward([(each * weights).sum() / weights.sum()])
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in optimisers:
            optimiser.step()
        losses.append(float(each.detach()[weights >= 1].mean()))
    model.eval()
    return losses


def _optimisers(model: Any, plan: Plan) -> list[torch.optim.Optimizer]:
    if plan.hidden_rate is None:
        return [
            torch.optim.AdamW(
                model.parameters(),
                lr=plan.rate,
                betas=(0.9, 0.98),
                weight_decay=plan.weight_decay,
            )
        ]
    named = list(model.named_parameters())
    hidden = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    rest = [p for name, p in named if p.ndim != 2 or "embed" in name]
    return [
        torch.optim.AdamW(rest, lr=plan.rate, betas=(0.9, 0.98), weight_decay=0.0),
        Muon(hidden, lr=plan.hidden_rate, weight_decay=plan.weight_decay),
    ]


def _losses(model: Any, step: Sequence[Example]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(ids) for ids, _ in step)
    ids = torch.full((len(step), longest), PAD)
    weights = torch.zeros(len(step), longest)
    for row, (tokens, token_weights) in enumerate(step):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        weights[row, : len(tokens)] = torch.tensor(token_weights)
    # Padding stands on the right, where a causal model does not see it: no mask is needed.
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    counted = weights[:, 1:] > 0
    logits = model.lm_head(hidden[counted])
    each = torch.nn.functional.cross_entropy(
        logits, ids[:, 1:][counted], reduction="none"
    )
    return each, weights[:, 1:][counted]
