"""Specs of checkpoints (``--kb-model``, ``--kb-model-args``), parsed and checked without loading anything."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_kbrel.bounds import BATCH, TOKEN_ID, TOKENS
from pytest_kbrel.errors import ModelError, NoFolderError, nearest
from pytest_kbrel.models.arguments import (
    CHAT_ARGS,
    choice,
    flag,
    number,
    parse_backend_args,
    parse_chat_args,
)
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.chat import ChatArgs
from pytest_kbrel.models.checkpoint.files import (
    ADAPTER_WEIGHTS,
    base_of_adapter,
    check_folder,
    looks_like_hub_id,
    tokenizer_files,
    weight_files,
)
from pytest_kbrel.records import record
from pytest_kbrel.untrusted import parse

DTYPES = {
    "auto": "auto",
    "float32": "float32",
    "fp32": "float32",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "fp16": "float16",
    "half": "float16",
}
"""Accepted names of number formats and what they mean."""

FLASH = "flash_attention_2"
ATTENTION = ("eager", "sdpa", FLASH)
"""Ways to compute attention, in transformers' words; a kernel of the hub would be code from outside."""

KINDS = ("default", "causal", "seq2seq")
"""What lm-eval's ``backend`` may be."""

BNB_4BIT = ("compute_dtype", "quant_type", "quant_storage", "use_double_quant")
"""Options of bitsandbytes' quantisation to 4 bits, without their ``bnb_4bit_``."""

_ALIASES = {"device_map_option": "device_map"}
_PLACEMENT_TEXTS = ("max_memory_per_gpu", "max_cpu_memory", "offload_folder")

_FLAGS = (
    "load_in_4bit",
    "load_in_8bit",
    "fix_mistral_regex",
    "add_bos_token",
)

MODEL_ARGS = (
    *_FLAGS,
    *("pretrained", "backend", "dtype", "revision", "subfolder", "peft", "gguf_file"),
    *(f"bnb_4bit_{name}" for name in BNB_4BIT),
    *("parallelize", "device_map", "device_map_option", *_PLACEMENT_TEXTS),
    *("prefix_token_id", "trust_remote_code", "tokenizer", "max_length", "device"),
    *("attn_implementation", "apply_chat_template", *CHAT_ARGS),
)
"""The keys of ``--kb-model-args`` this version knows, in lm-eval's own words."""


@record
class ModelSpec(Spec):
    """A checkpoint and how to run it.

    ``path`` is a folder or a hub id, ``derived`` a derivation applied after loading (``"int4"``) or ``""``.
    ``batch_size`` is a budget in tokens, ``None`` where the backend chooses. ``max_length`` is in tokens,
    ``None`` for what the checkpoint says; ``add_bos_token`` ``None`` for what the tokenizer does.
    ``subfolder`` is where in the folder or repository the checkpoint lies. ``kind`` is ``"causal"`` or
    ``"seq2seq"`` where the user says so. ``prefix_token_id`` stands for an empty prompt, in place of BOS.
    ``fix_mistral_regex`` is transformers' own: Mistral's tokenizers were saved with a wrong pattern.
    """

    path: str
    backend: str = "hf"
    derived: str = ""
    revision: str = ""
    device: str = "auto"
    dtype: str = "auto"
    batch_size: int | None = None
    chat_template: bool = False
    chat: ChatArgs = ChatArgs()
    tokenizer: str = ""
    max_length: int | None = None
    add_bos_token: bool | None = None
    attn_implementation: str = ""
    peft: str = ""
    gguf_file: str = ""
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    subfolder: str = ""
    kind: str = ""
    bnb_4bit: tuple[tuple[str, str | bool], ...] = ()
    placement: Placement | None = None
    prefix_token_id: int | None = None
    fix_mistral_regex: bool | None = None

    @property
    def name(self) -> str:
        """What reports call the model: ``./base + ./my-lora``, ``folder/model-Q4_K_M.gguf``, ``org/name@v2``."""
        is_adapter = self.peft and self.text.removeprefix("hf/") == self.peft
        text = self.path if is_adapter else self.text
        parts = (text.rstrip("/"), self.subfolder, self.gguf_file)
        name = "/".join(filter(None, parts))
        version = f"@{self.revision}" if self.revision else ""
        adapter = f" + {self.peft}" if self.peft else ""
        return f"{name}{version}{adapter}"

    @property
    def chats(self) -> bool:
        """True if prompts are put into the tokenizer's chat template."""
        return self.chat_template

    @property
    def is_local(self) -> bool:
        """True if ``path`` is a folder of this machine."""
        return Path(self.path).expanduser().is_dir()

    @property
    def location(self) -> str:
        """``path`` as the libraries want it; for folders ``~`` is expanded, and ``subfolder`` is a part."""
        return (
            str(Path(self.path).expanduser() / self.subfolder)
            if self.is_local
            else self.path
        )


def dtype_of(spec: ModelSpec, saved: str, device: str) -> str:
    """Return the number type in which a checkpoint is loaded, ``auto`` for that in which it was ``saved``."""
    if spec.dtype != "auto":
        return spec.dtype
    # Half precision on a CPU is slow, and coarser than the differences a gate decides on.
    return "float32" if device == "cpu" and saved == "float16" else "auto"


def parse_spec(
    text: str,
    model_args: str = "",
    *,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: str = "auto",
    chat_template: bool = False,
) -> ModelSpec:
    """Return the spec that ``--kb-model`` and its companions name.

    ``text`` is a folder or hub id (``hf/`` may lead it), ``reference`` or ``reference:NAME``. ``model_args``
    is lm-eval's ``key=value,key=value``. Nothing is loaded, and of folders only an adapter's is looked into: it
    names its base model and may have a tokenizer.

    Raises :class:`ModelError` for an unknown key, a value of the wrong kind, or two places
    that contradict each other.
    """
    text = text.strip()
    args, notes = parse_backend_args(model_args, MODEL_ARGS, "hf", _ALIASES)
    flags = {key: flag(args, key) for key in ("trust_remote_code", *_FLAGS)}
    if flags.pop("trust_remote_code"):
        raise ModelError(
            "model-args: trust_remote_code=True is refused: this version never runs code from a checkpoint; "
            "allowed are the architectures that the installed transformers knows"
        )
    if flags["load_in_4bit"] and flags["load_in_8bit"]:
        raise ModelError("model-args: load_in_4bit and load_in_8bit exclude each other")
    path, derived = _resolve(text, args.get("pretrained", ""))
    peft, revision = _expanded(args.get("peft", "")), args.get("revision", "")
    if not peft and (base := base_of_adapter(Path(path).expanduser())):
        peft, (path, at) = path, base
        revision = revision or at
    # What it was trained with: tokens that it adds, and the template.
    own = peft if peft and tokenizer_files(Path(peft).expanduser()) else ""
    device = _agreed("device", device, args.get("device", "auto"))
    placement, mapped = _placement(args)
    if placement is None:
        notes += [
            f"model-args: {key}={args[key]} is not used: without parallelize=True or device_map=auto the "
            "checkpoint goes to one device"
            for key in _PLACEMENT_TEXTS
            if key in args
        ]
    elif device not in ("auto", "cuda"):
        raise ModelError(
            f"device {device} and device_map={placement.device_map} contradict each other; give one of them"
        )
    if device.partition(":")[0] == "meta":
        raise ModelError(
            f"{text}: found device {device!r}, which holds no numbers and computes none; allowed: auto, cpu, "
            "cuda, cuda:0, mps"
        )
    given: dict[str, Any] = {k: v for k, v in flags.items() if v is not None}
    own_template = flag(args, "apply_chat_template")
    return ModelSpec(
        text=text if text != "hf" else f"hf/{path}",
        path=path,
        derived=derived,
        revision=revision,
        device=_agreed("device", device, mapped or "auto"),
        dtype=_agreed("dtype", _dtype(dtype), _dtype(args.get("dtype", "auto"))),
        batch_size=number(
            {"batch size": batch_size}, "batch size", BATCH, "of tokens, or auto"
        ),
        # The flag is for all models of a run, an argument for one.
        chat_template=chat_template if own_template is None else own_template,
        chat=parse_chat_args(args),
        tokenizer=_expanded(args.get("tokenizer", own)),
        max_length=number(args, "max_length", TOKENS, "of tokens"),
        attn_implementation=choice(args, "attn_implementation", ATTENTION),
        peft=peft,
        gguf_file=args.get("gguf_file", ""),
        subfolder=args.get("subfolder", ""),
        kind=choice(args, "backend", KINDS).replace("default", ""),
        bnb_4bit=_bnb_4bit(args, in_4bit=bool(flags["load_in_4bit"])),
        placement=placement,
        prefix_token_id=number(args, "prefix_token_id", TOKEN_ID),
        notes=tuple(notes),
        **given,
    )


@contextmanager
def importing(spec: ModelSpec) -> Iterator[None]:
    """Raise :class:`ModelError` where a package that is installed does not import.

    No garbage is collected meanwhile, and none later among what is imported: that would take seconds.
    """
    known, collects = len(sys.modules), gc.isenabled()
    gc.disable()
    try:
        yield
    except ImportError as error:
        raise ModelError(
            f"loading {spec.text}: torch or transformers does not import: {error}"
        ) from None
    finally:
        # Not where a model is there already: it has to be collected some day.
        if len(sys.modules) > known:
            gc.freeze()
        if collects:
            gc.enable()


def announce(spec: ModelSpec) -> str:
    """Return what is about to be loaded, such as ``loading ./qwen3 (84 MB)``; the hub's sizes are not known."""
    folder = Path(spec.location)
    try:
        files = [folder / spec.gguf_file] if spec.gguf_file else weight_files(folder)
        size = sum(file.stat().st_size for file in files)
    except (ModelError, OSError):
        # Loading says what is wrong.
        return f"loading {spec.name}"
    shown = f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"
    return f"loading {spec.name} ({shown})"


def check_path(spec: ModelSpec) -> None:
    """Raise :class:`ModelError` unless ``spec.path`` is a folder with config and safetensors, or a hub id.

    Neither torch nor transformers is needed. A path that does not exist but has the form ``org/name`` passes.
    """
    folder = Path(spec.path).expanduser()
    if folder.is_dir():
        if spec.revision:
            raise ModelError(
                f"{spec.path}: revision={spec.revision} names a version on the hub, and this is a folder; "
                "allowed: no revision, or a hub id"
            )
        inner = Path(spec.location)
        if not inner.is_dir():
            subfolders = [p.name for p in folder.iterdir() if p.is_dir()]
            raise ModelError(
                f"{inner}: no such subfolder{nearest(spec.subfolder, subfolders)}"
            )
        check_folder(inner, gguf_file=spec.gguf_file)
    elif folder.is_file():
        hint = (
            f"; give its folder and gguf_file={folder.name}"
            if folder.suffix == ".gguf"
            else ""
        )
        raise ModelError(
            f"{spec.path}: a file; allowed is a checkpoint folder or a hub id org/name{hint}"
        )
    elif not looks_like_hub_id(spec.path):
        siblings = folder.parent.iterdir() if folder.parent.is_dir() else ()
        hint = nearest(str(folder), [str(p) for p in siblings if p.is_dir()])
        if spec.peft and spec.path not in spec.text:
            hint = f"; {spec.peft} names it as its base model: give yours, with model-args peft={spec.peft}"
        raise (ModelError if hint else NoFolderError)(
            f"{spec.path}: no such folder; allowed is a folder with config.json, safetensors and tokenizer, "
            f"a hub id org/name, or reference{hint}"
        )
    adapter = Path(spec.peft)
    if spec.peft and adapter.is_dir() and not (adapter / ADAPTER_WEIGHTS).is_file():
        raise ModelError(
            f"{spec.peft}: no {ADAPTER_WEIGHTS}; adapters load from safetensors only"
        )


def _resolve(text: str, pretrained: str) -> tuple[str, str]:
    name, colon, candidate = text.partition(":")
    if name == "reference" and (colon or text == "reference"):
        if pretrained:
            raise ModelError(
                f"{text}: model-args may not name another checkpoint (pretrained={pretrained})"
            )
        from pytest_kbrel.reference import resolve

        path, derivation = resolve(candidate)
        return str(path), derivation
    path_text = "" if text == "hf" else text.removeprefix("hf/")
    if path_text and pretrained and path_text != pretrained:
        raise ModelError(
            f"two checkpoints are named: {path_text} and model-args pretrained={pretrained}"
        )
    if not (path_text or pretrained):
        raise ModelError(
            f"{text or '(empty)'}: no checkpoint named; allowed is a folder, a hub id or reference"
        )
    return path_text or pretrained, ""


def _expanded(path: str) -> str:
    # No shell expands what stands behind an equals sign.
    return str(Path(path).expanduser()) if path.startswith("~") else path


def _bnb_4bit(
    args: Mapping[str, str], *, in_4bit: bool
) -> tuple[tuple[str, str | bool], ...]:
    keys = {name: f"bnb_4bit_{name}" for name in BNB_4BIT}
    given: dict[str, str | bool] = {
        name: args[key] for name, key in keys.items() if key in args
    }
    if given and not in_4bit:
        raise ModelError(
            f"model-args: {keys[next(iter(given))]} is for load_in_4bit=True; give both or neither"
        )
    for name in ("compute_dtype", "quant_storage"):
        if given.get(name, "int8") not in ("uint8", "int8"):
            given[name] = _dtype(str(given[name]))
    choice(args, keys["quant_type"], ("fp4", "nf4"))
    if (double := flag(args, keys["use_double_quant"])) is not None:
        given["use_double_quant"] = double
    return tuple(sorted(given.items()))


def _dtype(name: str) -> str:
    key = name.lower().removeprefix("torch.")
    if key not in DTYPES:
        raise ModelError(
            f"dtype {name!r} is unknown; allowed: {', '.join(DTYPES)}{nearest(key, DTYPES)}"
        )
    return DTYPES[key]


def _agreed(what: str, option: str, arg: str) -> str:
    if "auto" not in (option, arg) and option != arg:
        raise ModelError(
            f"{what} is given twice: {option} by its own flag, {arg} by model-args"
        )
    return arg if option == "auto" else option


WORDS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Ways in which accelerate spreads layers by itself."""

_DEVICE = re.compile(r"(cpu|mps|cuda|xpu|npu|hpu)(:[0-9]{1,4})?|[0-9]{1,4}")
_MEMORY = re.compile(
    r"[0-9]{1,15}|[0-9]{1,6}([.][0-9]{1,6})? ?[KMGT]i?B", re.IGNORECASE
)


@record
class Placement:
    """Spread of a checkpoint over devices.

    ``device_map`` is one of :data:`WORDS` or a JSON object of parts and devices. Memory is what accelerate
    may fill, in bytes or as in ``10GiB``; empty for what is free.
    """

    device_map: str = "auto"
    max_memory_per_gpu: str = ""
    max_cpu_memory: str = ""
    offload_folder: str = ""

    @property
    def parts(self) -> dict[str, str | int] | None:
        """Devices by the names of parts, ``None`` where accelerate is to choose."""
        return None if self.device_map in WORDS else json.loads(self.device_map)


def _placement(args: Mapping[str, str]) -> tuple[Placement | None, str]:
    """Return how to spread a checkpoint, ``None`` for not at all, and the one device that it is mapped to."""
    parallelize, chosen = flag(args, "parallelize"), args.get("device_map", "")
    for key in ("max_memory_per_gpu", "max_cpu_memory"):
        if key in args and not _MEMORY.fullmatch(args[key]):
            raise ModelError(
                f"model-args: {key}={args[key]:.60}; allowed is a number of bytes, or as in 10GiB"
            )
    if not (chosen or parallelize):
        return None, ""
    if not _DEVICE.fullmatch(chosen):
        texts = {key: args[key] for key in _PLACEMENT_TEXTS if key in args}
        return Placement(device_map=_device_map(chosen or "auto"), **texts), ""
    if parallelize:
        raise ModelError(
            f"model-args: parallelize=True and device_map={chosen} contradict each other; give one"
        )
    # One device for all is no map, and needs no accelerate.
    return None, f"cuda:{chosen}" if chosen.isdigit() else chosen


def _device_map(device_map: str) -> str:
    if device_map in WORDS:
        return device_map
    if not device_map.startswith("{"):
        raise ModelError(
            f"model-args: device_map={device_map}; allowed: {', '.join(WORDS)}, a device, or a JSON object of "
            f'parts and devices such as {{"model.embed_tokens": 0, …}}{nearest(device_map, WORDS)}'
        )
    parts = parse(device_map)
    wrong = [
        f"{name!r} goes to {device!r}"
        for name, device in parts.items()
        if device != "disk" and not _DEVICE.fullmatch(str(device))
    ]
    if wrong or not parts:
        what = wrong[0] if wrong else "it is empty"
        raise ModelError(
            f"model-args: device_map: {what}; allowed: cpu, disk, or a GPU by its number or as in cuda:1"
        )
    return device_map
