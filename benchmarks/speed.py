"""How fast questions are answered: beside lm-evaluation-harness, beside plain batches, beside the limit.

    python -m pip install -c constraints.txt -e ".[hf]" lm_eval==0.4.13 accelerate
    OMP_NUM_THREADS=1 python benchmarks/speed.py
    OMP_NUM_THREADS=2 python benchmarks/speed.py --models llama-35m --tasks monitor-prefix --rounds 5

All are asked the same questions in one process, on the same threads, in turns; times are medians of process
time, and ratios those of the medians. The models have random weights and a vocabulary of 32,000 words. Before
anything is timed, the numbers are held against each other (float32: 1e-4 in probability).
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pytest_kbrel.models.hf import load
from pytest_kbrel.models.hf_generation import generate_batch
from pytest_kbrel.models.hf_model import HfModel
from pytest_kbrel.models.hf_packed import asked_of
from pytest_kbrel.models.hf_scoring import score_batch
from pytest_kbrel.models.sharing import distinct_tokens
from pytest_kbrel.models.spec import parse_spec
from pytest_kbrel.records import GenerateRequest, ScoreRequest

VOCABULARY = 32_000
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "\n")
_LLAMA = {"vocab_size": VOCABULARY, "max_position_embeddings": 2048, "bos_token_id": 1, "eos_token_id": 2}
CONFIGS: dict[str, Callable[[], Any]] = {
    "llama-35m": lambda: transformers.LlamaConfig(
        hidden_size=384,
        intermediate_size=1024,
        num_hidden_layers=6,
        num_attention_heads=6,
        num_key_value_heads=6,
        pad_token_id=0,
        **_LLAMA,
    ),
    "llama-125m": lambda: transformers.LlamaConfig(
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
        num_key_value_heads=12,
        pad_token_id=0,
        **_LLAMA,
    ),
    "t5-60m": lambda: transformers.T5Config(
        vocab_size=VOCABULARY,
        d_model=512,
        d_kv=64,
        d_ff=2048,
        num_layers=6,
        num_heads=8,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=0,
    ),
}


@dataclass(frozen=True)
class Task:
    """What is asked: pairs to score, or prompts to continue."""

    name: str
    pairs: tuple[tuple[str, str], ...] = ()
    prompts: tuple[str, ...] = ()


Run = Callable[[], list[Any]]


def main() -> None:
    """Measure every model on every task and print one table line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(CONFIGS), choices=CONFIGS)
    parser.add_argument("--tasks", nargs="+", default=None)
    parser.add_argument("--facts", type=int, default=100, help="facts a task")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    print(
        f"{torch.get_num_threads()} threads, {given.dtype}, {given.device}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, {given.facts} facts, median of {given.rounds}\n"
    )
    print("| model | task | way | seconds | ratio | share of the limit | largest difference |")
    print("|---|---|---|--:|--:|--:|--:|")
    for name in given.models:
        with tempfile.TemporaryDirectory() as folder:
            model = made(name, Path(folder), given.dtype, given.device)
            for task in tasks(given.facts):
                if given.tasks is None or task.name in given.tasks:
                    for line in lines(name, model, task, given.rounds):
                        print(line, flush=True)


def made(name: str, folder: Path, dtype: str, device: str) -> HfModel:
    """Save a checkpoint of random weights and load it as a user would."""
    torch.manual_seed(0)
    config = CONFIGS[name]()
    factory = (
        transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else transformers.AutoModelForCausalLM
    )
    model = factory.from_config(config)
    model.save_pretrained(folder)
    # A tokenizer that knows neither letters nor digits is taken for an empty one.
    words = [*SPECIAL, "a", "b", "1", *(f"w{number}" for number in range(VOCABULARY - len(SPECIAL) - 3))]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
    ).save_pretrained(folder)
    return load(parse_spec(str(folder), "", device=device, dtype=dtype))


def tasks(facts: int) -> tuple[Task, ...]:
    """Return the work: MONITOR's cells with and without examples in front, options, short answers."""
    draw = random.Random(0)

    def words(least: int, most: int | None = None) -> str:
        count = draw.randint(least, most or least)
        return " ".join(f"w{draw.randrange(31_000)}" for _ in range(count))

    examples = words(66)
    frames = [(words(3, 5), words(2, 4)) for _ in range(7)]
    cells, options, questions = [], [], []
    for _ in range(facts):
        subject, right = words(1, 4), " " + words(1, 5)
        for before, behind in frames:
            cells.append((f"{before} {subject} {behind}", right))
        for wrong in range(5):
            context = f"{frames[0][0]} {subject} {words(1, 3)} w{wrong}"
            cells.append((f"{context} {frames[0][0]} {subject} {frames[0][1]}", right))
        question = f"{frames[0][0]} {subject} {frames[0][1]}"
        questions.append(question)
        options += [(question, " " + words(1, 8)) for _ in range(4)]
    return (
        Task("monitor-bare", pairs=tuple(cells)),
        Task("monitor-prefix", pairs=tuple((f"{examples} {prompt}", right) for prompt, right in cells)),
        Task("options-bare", pairs=tuple(options)),
        Task("options-prefix", pairs=tuple((f"{examples} {prompt}", one) for prompt, one in options)),
        Task("answers-prefix", prompts=tuple(f"{examples} {question}" for question in questions)),
    )


def lines(name: str, model: HfModel, task: Task, rounds: int) -> list[str]:
    """Time the ways of doing one task, in turns."""
    ways = scoring_ways(model, task) if task.pairs else generating_ways(model, task)
    first = {way: run() for way, run in ways.items()}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            started = time.perf_counter() if model.parts.model.device.type != "cpu" else time.process_time()
            run()
            ended = time.perf_counter() if model.parts.model.device.type != "cpu" else time.process_time()
            seconds[way].append(ended - started)
    limit = limit_of(model, task) if task.pairs and not model.parts.model.config.is_encoder_decoder else None
    ours = statistics.median(seconds["kbrel"])
    found = []
    for way, times in seconds.items():
        median = statistics.median(times)
        share = f"{limit / median:.0%}" if limit else ""
        distance = difference(first["kbrel"], first[way]) if task.pairs else same(first["kbrel"], first[way])
        found.append(
            f"| {name} | {task.name} | {way} | {median:.2f} | {median / ours:.1f} | {share} | {distance} |"
        )
    return found


def scoring_ways(model: HfModel, task: Task) -> dict[str, Run]:
    """Return the ways to score: ours, our own plain batches, and lm-evaluation-harness."""
    requests = [ScoreRequest(prompt=prompt, continuation=answer) for prompt, answer in task.pairs]

    def ours() -> list[float]:
        return [log(answer.probabilities) for answer in model.score(requests)]  # type: ignore[union-attr]

    def plain() -> list[float]:
        parts = model.parts
        pairs = [parts.encoder.pair(*pair) for pair in task.pairs]
        order = sorted(range(len(pairs)), key=lambda n: -len(pairs[n].context) - len(pairs[n].targets))
        found: dict[int, float] = {}
        for start in range(0, len(order), 32):
            some = order[start : start + 32]
            for number, values in zip(
                some, score_batch(parts.model, [pairs[n] for n in some], 0), strict=True
            ):
                found[number] = log(values)
        return [found[number] for number in range(len(pairs))]

    ways: dict[str, Run] = {"kbrel": ours, "plain batches of 32": plain}
    harness = lm_eval_of(model)
    if harness is not None:
        from lm_eval.api.instance import Instance

        asked = [
            Instance(request_type="loglikelihood", doc={}, arguments=(prompt, answer), idx=0)
            for prompt, answer in task.pairs
        ]
        ways["lm-eval, batch 32"] = lambda: [
            value for value, _ in harness.loglikelihood(asked, disable_tqdm=True)
        ]
    return ways


def generating_ways(model: HfModel, task: Task) -> dict[str, Run]:
    """Return the ways to write answers of at most 12 tokens."""
    requests = [GenerateRequest(prompt=prompt, max_new_tokens=12) for prompt in task.prompts]

    def ours() -> list[str]:
        return [answer.text for answer in model.generate(requests)]  # type: ignore[union-attr]

    def plain() -> list[str]:
        endings = model._generator._endings
        groups: dict[int, list[int]] = {}
        prompts = [model.parts.encoder.prompt(prompt) for prompt in task.prompts]
        for number, ids in enumerate(prompts):
            groups.setdefault(len(ids), []).append(number)
        found: dict[int, str] = {}
        for numbers in groups.values():
            for start in range(0, len(numbers), 32):
                some = numbers[start : start + 32]
                batch = [prompts[n] for n in some], [requests[n] for n in some]
                for number, reply in zip(
                    some, generate_batch(model.parts.model, *batch, endings), strict=True
                ):
                    found[number] = reply.text  # type: ignore[union-attr]
        return [found[number] for number in range(len(prompts))]

    ways: dict[str, Run] = {"kbrel": ours, "generate, batches of equal length": plain}
    harness = lm_eval_of(model)
    if harness is not None:
        from lm_eval.api.instance import Instance

        asked = [
            Instance(
                request_type="generate_until",
                doc={},
                arguments=(prompt, {"until": ["\n"], "max_gen_toks": 12, "do_sample": False}),
                idx=0,
            )
            for prompt in task.prompts
        ]
        ways["lm-eval, batch 32"] = lambda: [
            text.strip() for text in harness.generate_until(asked, disable_tqdm=True)
        ]
    return ways


def lm_eval_of(model: HfModel) -> Any:
    """Return lm-evaluation-harness around the same weights; ``None`` where it is not installed."""
    try:
        from lm_eval.models.huggingface import HFLM
    except ImportError:
        return None
    parts = model.parts
    backend = "seq2seq" if parts.model.config.is_encoder_decoder else "causal"
    return HFLM(pretrained=parts.model, tokenizer=parts.tokenizer, backend=backend, batch_size=32)


def limit_of(model: HfModel, task: Task) -> float:
    """Return the seconds that the matrix products of the distinct tokens take at the rate measured here.

    Distinct tokens are the nodes of the prefix tree; only those in front of a scored token reach the head.
    Attention, norms and softmax are left out, so that no way can reach the limit.
    """
    inner = model.parts.model
    pairs = [model.parts.encoder.pair(*pair) for pair in task.pairs]
    asked = asked_of(pairs)
    nodes = distinct_tokens(one.ids for one in asked)
    spots = len({one.ids[:end] for one in asked for end in range(one.start + 1, len(one.ids) + 1)})
    embedding = inner.get_input_embeddings().weight
    trunk = sum(p.numel() for p in inner.parameters() if p.dim() == 2 and p.shape != embedding.shape)
    return 2 * (
        nodes * trunk / rate(inner, 512, 1024) + spots * embedding.numel() / rate(inner, 512, VOCABULARY)
    )


def rate(model: Any, rows: int, columns: int) -> float:
    """Return the floating-point operations a second of a matrix product of the model's width and dtype."""
    width = model.get_input_embeddings().weight.shape[1]
    left = torch.randn(rows, width, dtype=model.dtype, device=model.device)
    right = torch.randn(columns, width, dtype=model.dtype, device=model.device)
    best = 0.0
    for _ in range(5):
        started = time.process_time() if model.device.type == "cpu" else time.perf_counter()
        for _ in range(4):
            torch.nn.functional.linear(left, right)
        if model.device.type != "cpu":
            torch.cuda.synchronize()
        ended = time.process_time() if model.device.type == "cpu" else time.perf_counter()
        best = max(best, 4 * 2 * rows * width * columns / (ended - started))
    return best


def log(probabilities: Sequence[float]) -> float:
    """Return the log-probability of a whole continuation."""
    return float(torch.tensor(probabilities, dtype=torch.float64).log().sum())


def difference(one: Sequence[float], other: Sequence[float]) -> str:
    """Return how far two lists of log-probabilities are apart at most, in nats a continuation."""
    return f"{max(abs(a - b) for a, b in zip(one, other, strict=True)):.0e}"


def same(one: Sequence[str], other: Sequence[str]) -> str:
    """Return how many texts are equal."""
    return f"{sum(a == b for a, b in zip(one, other, strict=True))} of {len(one)} equal"


if __name__ == "__main__":
    main()
