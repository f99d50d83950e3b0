"""What :mod:`speed` asks and whom: checkpoints of random weights, and questions like those of the probes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from pytest_kbrel.evaluation.stub_run import asks_of
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.records import ScoreRequest
from pytest_kbrel.resources import suites
from pytest_kbrel.suites import load_suite

VOCABULARY = 32_000
# Before each question, as "prefix" has it: some 66 tokens.
EXAMPLES = (
    ("Which planet is closest to the Sun?", "Mercury"),
    ("How many days does a week have?", "seven"),
    ("Which gas do plants take from the air?", "carbon dioxide"),
)
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "\n")


def _llama(
    width: int, inner: int, layers: int, heads: int, pairs: int = 0
) -> Callable[[], Any]:
    return lambda: transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=pairs or heads,
        max_position_embeddings=2048,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )


CONFIGS: dict[str, Callable[[], Any]] = {
    "llama-35m": _llama(384, 1024, 6, 6),
    "llama-134m": _llama(768, 2048, 12, 12),
    "llama-6.9b": _llama(4096, 11008, 32, 32),
    "qwen3-44m": lambda: transformers.Qwen3Config(
        vocab_size=151_669,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "bloom-23m": lambda: transformers.BloomConfig(
        vocab_size=VOCABULARY,
        hidden_size=384,
        n_layer=6,
        n_head=6,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "mpt-23m": lambda: transformers.MptConfig(
        vocab_size=VOCABULARY,
        d_model=384,
        n_layers=6,
        n_heads=6,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "neo-24m": lambda: transformers.GPTNeoConfig(
        vocab_size=VOCABULARY,
        hidden_size=384,
        num_layers=6,
        num_heads=6,
        attention_types=[[["global", "local"], 3]],
        bos_token_id=1,
        eos_token_id=2,
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


def made(name: str, folder: Path, dtype: str, device: str) -> HfModel:
    """Save a checkpoint of random weights, if ``name`` is not the folder of one, and load it as a user would."""
    if name not in CONFIGS:
        return load(parse_spec(name, "", device=device, dtype=dtype))
    torch.manual_seed(0)
    config = CONFIGS[name]()
    factory = _factory(config)
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        with torch.device(device):
            model = factory.from_config(config)
    finally:
        torch.set_default_dtype(before)
    model.save_pretrained(folder)
    del model
    # A tokenizer that knows neither letters nor digits is taken for an empty one.
    words = [
        *SPECIAL,
        "a",
        "b",
        "1",
        *(f"w{number}" for number in range(config.vocab_size - len(SPECIAL) - 3)),
    ]
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
    ).save_pretrained(folder)
    return load(parse_spec(str(folder), "", device=device, dtype=dtype))


def untouched(model: HfModel) -> Any:
    """Return the same checkpoint as transformers loads it, for those that the plugin is held against."""
    inner, folder = model.parts.model, model.parts.spec.path
    loaded = _factory(inner.config).from_pretrained(folder, dtype=inner.dtype)
    # Where a model is to stop and how it pads is no subject of this comparison.
    loaded.generation_config = inner.generation_config
    return loaded.to(inner.device).eval()


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
        Task(
            "monitor-prefix",
            pairs=tuple((f"{examples} {prompt}", right) for prompt, right in cells),
        ),
        Task("options-bare", pairs=tuple(options)),
        Task(
            "options-prefix",
            pairs=tuple((f"{examples} {prompt}", one) for prompt, one in options),
        ),
        Task(
            "answers-prefix",
            prompts=tuple(f"{examples} {question}" for question in questions),
        ),
    )


def suite_tasks(facts: int) -> tuple[Task, ...]:
    """Return the same work in words: what MONITOR and Head-to-Tail of the shipped suite ask, ``facts`` a case."""
    examples = "".join(
        f"Question: {question}\nAnswer: {answer}\n\n" for question, answer in EXAMPLES
    )
    cells, questions = [], []
    for case in load_suite(suites() / "world.kb.yaml", limit=facts).cases:
        if case.id in ("monitor[P36]", "monitor[P37]"):
            for request in (ask.request for ask in asks_of(case)):
                if isinstance(request, ScoreRequest):
                    cells.append((request.prompt, request.continuation))
        elif case.probe == "head_to_tail":
            questions += [ask.request.prompt for ask in asks_of(case)]
    return (
        Task("monitor-bare", pairs=tuple(cells)),
        Task("monitor-prefix", pairs=tuple((examples + a, b) for a, b in cells)),
        # The instruction and two examples stand before each question.
        Task("answers-prefix", prompts=tuple(questions)),
    )


def _factory(config: Any) -> Any:
    return (
        transformers.AutoModelForSeq2SeqLM
        if config.is_encoder_decoder
        else transformers.AutoModelForCausalLM
    )
