"""What is made of SmolLM2 to be gated against it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import peft
import torch
import transformers

from pytest_kbrel.models.hf.onednn import use_onednn
from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.probes.prompts import QA, template
from pytest_kbrel.reference.derive import quantise
from tests.models.tiny_checkpoints import change_weights
from tests.real import smollm2

_BATCH = 4


def rounded(folder: Path, bits: int) -> Path:
    """Write the checkpoint with its matrices rounded to nearest, one scale for each output channel."""
    shutil.copytree(smollm2.as_checkpoint(), folder)

    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name, tensor in tensors.items():
            if name.endswith("_proj.weight"):
                tensors[name] = quantise(tensor, bits, group=tensor.shape[1])

    change_weights(folder, change)
    return folder


def tuned(folder: Path, answers: Sequence[tuple[str, str]]) -> Path:
    """Write an adapter that was trained on questions with answers, in the wording of the probes."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2.as_checkpoint())
    rows = [_row(tokenizer, question, answer) for question, answer in answers]
    with quiet(), torch.random.fork_rng():
        torch.manual_seed(0)
        model = _with_adapter()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for start in range(0, len(rows), _BATCH):
            _loss(model, rows[start : start + _BATCH]).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.save_pretrained(folder)
    return folder


def idle(folder: Path) -> Path:
    """Write an adapter that was never trained."""
    with quiet():
        _with_adapter().save_pretrained(folder)
    return folder


def _with_adapter() -> peft.PeftModel:
    base = transformers.AutoModelForCausalLM.from_pretrained(smollm2.as_checkpoint())
    # Its last third is trained: what lies before needs no gradient.
    for layer in base.model.layers[:20]:
        layer.forward = torch.no_grad()(layer.forward)
    use_onednn(base)
    settings = peft.LoraConfig(
        r=8,
        lora_alpha=16,
        target_modules=r".*\.2\d\..*_proj",
        task_type="CAUSAL_LM",
    )
    return peft.get_peft_model(base, settings)


def _row(tokenizer, question: str, answer: str) -> tuple[list[int], list[int]]:
    message = [{"role": "user", "content": template(QA).in_text(question)}]
    asked = tokenizer.apply_chat_template(
        message, add_generation_prompt=True, tokenize=False
    )
    return tuple(
        tokenizer(text)["input_ids"] for text in (asked, answer + tokenizer.eos_token)
    )


def _loss(
    model: peft.PeftModel, batch: Sequence[tuple[list[int], list[int]]]
) -> torch.Tensor:
    """Return the mean loss of the answers' tokens; the rows are padded on their left."""
    length = max(len(prompt) + len(said) for prompt, said in batch)
    kept = max(len(said) for _, said in batch)
    ids, mask = torch.zeros(2, len(batch), length, dtype=torch.long)
    labels = torch.full((len(batch), kept), -100)
    for place, (prompt, said) in enumerate(batch):
        row = torch.tensor(prompt + said)
        ids[place, -len(row) :], mask[place, -len(row) :] = row, 1
        labels[place, -len(said) :] = row[-len(said) :]
    logits = model(input_ids=ids, attention_mask=mask, logits_to_keep=kept + 1).logits[
        :, :-1
    ]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
