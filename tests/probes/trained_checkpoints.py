"""Checkpoints of three architectures that learn a made-up relation within a second or two.

They are sure of what they were taught and unsure of the rest, and end their answers with a full stop, with
nothing or with a newline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers as tf
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from pytest_kbrel.models.pretrained import quiet

FRAMES = (
    "Which town rules [X]?",
    "What is the main town of [X]?",
    "Name the town that rules [X].",
    "From where is [X] ruled?",
    "[X] has which main town?",
    "In what town does the council of [X] meet?",
    "Tell me the main town of [X].",
)
TOWNS = (
    "Norvik",
    "Sandby",
    "Old Harl",
    "Tessmark",
    "Port Elin",
    "St. Quarn",
    "New Ostra Bay",
)
LANDS = tuple(
    first + last
    for last in ("dia", "land", "ovia")
    for first in ("Bar", "Kel", "Mon", "Tur")
)
# What stands behind the answers about one land after another.
ENDINGS = {"stopped": (".",), "mixed": (".", "", "\n", "")}
# The tokens that end a text, by kind of checkpoint: answers end with each of them in turn.
ENDS = {
    "gpt2": ("<|endoftext|>",),
    "qwen2": ("<|im_end|>", "<|endoftext|>"),
    "t5": ("</s>",),
}
_STEPS = {"gpt2": 30, "qwen2": 25, "t5": 60}
VOCABULARY = 300

Lesson = tuple[str, str]


def taught() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the facts: land, town, and five other towns."""
    return tuple(
        (
            land,
            TOWNS[number % len(TOWNS)],
            tuple(TOWNS[(number + k) % len(TOWNS)] for k in range(1, 6)),
        )
        for number, land in enumerate(LANDS)
    )


def make_trained(folder: Path, kind: str, endings: str) -> Path:
    """Train a checkpoint, the same every time, and save it.

    ``kind`` is one of :data:`ENDS`, ``endings`` one of :data:`ENDINGS`.
    """
    factory = tf.AutoModelForSeq2SeqLM if kind == "t5" else tf.AutoModelForCausalLM
    lessons = list(_lessons(ENDINGS[endings]))
    with quiet(), torch.random.fork_rng():
        _save_tokenizer(folder, kind, lessons)
        config = _config(kind)
        config.save_pretrained(folder)
        # Some architectures have a class of their own for what was saved.
        tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        torch.manual_seed(0)
        model = factory.from_config(config)
        batch = _batch(kind, tokenizer, lessons, config.eos_token_id)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(_STEPS[kind]):
            optimizer.zero_grad()
            model(**batch).loss.backward()
            optimizer.step()
        model.save_pretrained(folder)
    return folder


def _lessons(endings: Sequence[str]) -> Iterator[Lesson]:
    """Yield questions and answers. Four frames and three wrong contexts of each land are held out."""
    for number, (land, town, wrong) in enumerate(taught()):
        asked = [frame.replace("[X]", land) for frame in FRAMES]
        ending = endings[number % len(endings)]
        # The last land has to do without.
        if number + 1 < len(LANDS):
            yield f"{town}. {asked[0]}", f" {town}{ending}"
        for k in (0, 1, 3):
            yield asked[(number + k) % len(asked)], f" {town}{ending}"
        # Of two wrong contexts it is to believe the first.
        yield f"{wrong[0]}. {asked[0]}", f" {wrong[0]}{ending}"
        yield f"{wrong[1]}. {asked[0]}", f" {town}{ending}"


def _save_tokenizer(folder: Path, kind: str, lessons: Sequence[Lesson]) -> None:
    """Save a tokenizer that has a token for each word, its space in front."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    ends = ENDS[kind]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<pad>", *ends],
        min_frequency=1,
        show_progress=False,
    )
    inner.train_from_iterator(["".join(lesson) for lesson in lessons], trainer)
    if kind == "t5":
        inner.post_processor = processors.TemplateProcessing(
            single=f"$A {ends[0]}",
            special_tokens=[(ends[0], inner.token_to_id(ends[0]))],
        )
    tf.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token=ends[0],
        additional_special_tokens=list(ends[1:]),
    ).save_pretrained(folder)


def _config(kind: str) -> Any:
    ends = [1 + number for number, _ in enumerate(ENDS[kind])]
    common = {
        "vocab_size": VOCABULARY,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": ends,
    }
    if kind == "gpt2":
        dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        shape = {
            "n_embd": 32,
            "n_layer": 1,
            "n_head": 4,
            "n_positions": 64,
            "initializer_range": 0.2,
        }
        return tf.GPT2Config(**shape, **dropout, **common)
    if kind == "qwen2":
        heads = {
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 64,
        }
        shape = {
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "initializer_range": 0.2,
        }
        return tf.Qwen2Config(**shape, **heads, **common)
    shape = {
        "d_model": 32,
        "d_kv": 8,
        "d_ff": 64,
        "num_layers": 1,
        "num_heads": 4,
        "dropout_rate": 0.0,
    }
    return tf.T5Config(**shape, decoder_start_token_id=0, **common)


def _batch(
    kind: str, tokenizer: Any, lessons: Sequence[Lesson], ends: list[int]
) -> dict[str, torch.Tensor]:
    """Return all lessons as one batch."""
    questions, answers = [], []
    for number, (question, answer) in enumerate(lessons):
        questions.append(tokenizer(question)["input_ids"])
        answers.append(
            [
                *tokenizer(answer, add_special_tokens=False)["input_ids"],
                ends[number % len(ends)],
            ]
        )
    inputs, labels = questions, answers
    if kind != "t5":
        inputs = [
            question + answer
            for question, answer in zip(questions, answers, strict=True)
        ]
        labels = [
            [-100] * len(question) + answer
            for question, answer in zip(questions, answers, strict=True)
        ]
    return {
        "input_ids": _even(inputs, 0),
        "attention_mask": _even([[1] * len(row) for row in inputs], 0),
        "labels": _even(labels, -100),
    }


def _even(rows: Sequence[list[int]], filling: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filling] * (longest - len(row)) for row in rows])
