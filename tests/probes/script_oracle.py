"""A second, slow way to MONITOR's published variant: one sequence at a time, with transformers alone.

It follows what the authors' script does and shares no code with the package. In one place it does what the
package does: every end token of the model counts, and not only ``</s>``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers as tf

from pytest_kbrel.models.pretrained import quiet

Told = Sequence[tuple[str, str, Sequence[str]]]
DELETED = [".</s>", ".\n", ".", ";", "!", ",", "?", "\n", "</s>", "<pad>"]


def trimmed(pieces: Sequence[str], ends: Sequence[str] = ("</s>",)) -> int:
    """Return how many of a run's steps count, from the texts of its most probable tokens."""
    count = len(pieces)
    if pieces[-1] in ends or pieces[-1] == ".":
        count -= 1
    if len(pieces) > 1 and pieces[-2] == ".":
        count -= 1
    for step in range(1, count):
        if pieces[step] == "\n" or pieces[step] in ends:
            return step
    return max(count, 0)


class Run:
    """One beam search: its answer, and the distribution of each step that counts."""

    def __init__(
        self, model: Any, tokenizer: Any, ends: Sequence[str], prompt: str
    ) -> None:
        ids = tokenizer.encode(prompt, return_tensors="pt")
        with torch.inference_mode():
            output = model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                num_beams=5,
                max_new_tokens=15,
                output_scores=True,
                return_dict_in_generate=True,
            )
        answer = tokenizer.decode(output.sequences[0], skip_special_tokens=True).strip()
        if answer.startswith(prompt):
            answer = answer[len(prompt) :].strip()
        for piece in DELETED:
            answer = answer.replace(piece, "")
        self.answer = answer
        steps = [scores[0].softmax(-1) for scores in output.scores]
        self.pieces = [tokenizer.decode([int(step.argmax())]) for step in steps]
        self.steps = steps[: trimmed(self.pieces, ends)]

    def probabilities(self, tokens: Sequence[int]) -> list[float]:
        """Return those of ``tokens`` at the steps; 0 behind the run's end."""
        known = [
            float(step[token]) for step, token in zip(self.steps, tokens, strict=False)
        ]
        return known + [0.0] * (len(tokens) - len(known))


class Script:
    """The figures of a checkpoint over one relation of 7 prompts with 5 negatives a fact."""

    def __init__(self, folder: Path, prompts: Sequence[str], facts: Told) -> None:
        with quiet():
            config = tf.AutoConfig.from_pretrained(folder)
            factory = (
                tf.AutoModelForSeq2SeqLM
                if config.is_encoder_decoder
                else tf.AutoModelForCausalLM
            )
            model = factory.from_pretrained(folder).eval()
            tokenizer = tf.AutoTokenizer.from_pretrained(folder)
        eos = model.generation_config.eos_token_id
        ends = [
            *tokenizer.convert_ids_to_tokens([eos] if isinstance(eos, int) else eos),
            "</s>",
        ]
        self.runs: list[Run] = []

        def run(prompt: str) -> Run:
            self.runs.append(Run(model, tokenizer, ends, prompt))
            return self.runs[-1]

        self.kept: list[str] = []
        pfds, irds, terms, anchors, right = [], [], [], [], []
        for subject, gold, taxonomy in facts:
            base = prompts[0].replace("[X]", subject)
            primary = run(f"{gold}. {base}")
            if primary.answer != gold:
                continue
            self.kept.append(subject)
            tokens = [int(step.argmax()) for step in primary.steps]
            anchor = primary.probabilities(tokens)

            def distance(
                foreign: Run, tokens: list[int] = tokens, anchor: list[float] = anchor
            ) -> float:
                other = foreign.probabilities(tokens)
                return sum(
                    abs(p - q) for p, q in zip(anchor, other, strict=True)
                ) / len(anchor)

            frames = [run(prompt.replace("[X]", subject)) for prompt in prompts]
            contexts = [run(f"{other}. {base}") for other in taxonomy]
            pfds.append(sum(map(distance, frames)) / 7)
            irds.append(sum(map(distance, contexts)) / 5)
            terms.append(
                math.sqrt((pfds[-1] ** 2 + irds[-1] ** 2 + pfds[-1] * irds[-1]) / 3)
            )
            anchors.append(sum(anchor) / len(anchor))
            right.append([one.answer == gold for one in (*frames, *contexts)])
        count = len(self.kept)
        self.figures = {
            "monitor": sum(terms) / sum(anchors),
            "pfd": sum(pfds) / count,
            "ird": sum(irds) / count,
            "anchor_prob": sum(anchors) / count,
            "accuracy_base": sum(one[0] for one in right) / count,
            "accuracy_qa": sum(sum(one[:7]) for one in right) / 7 / count,
            "accuracy_negative": sum(sum(one[7:]) for one in right) / 5 / count,
        }
