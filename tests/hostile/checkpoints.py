"""Checkpoints that are broken, or that would run code of their own."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from pytest_kbrel.reference import resolve
from tests.hostile.row import USAGE, Row

ARGS = ("--kb-model=./checkpoint", "suites")
CANARY = "open('canary', 'w').close()\n"


class Opener:
    """What a pickle makes when it is read: an empty file."""

    def __reduce__(self) -> tuple[object, ...]:
        return (open, ("canary-of-a-pickle", "w"))


def checkpoint(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """Put a copy of the embedded checkpoint in place and change it."""

    def make(path: Path) -> None:
        shutil.copytree(resolve("")[0], path)
        change(path)

    return make


def broken(
    what: str, change: Callable[[Path], None], printed: str, exit: int = USAGE
) -> Row:
    return Row(what, {"checkpoint": checkpoint(change)}, exit, printed, ARGS)


def written(name: str, content: str | bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        (path / name).write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )

    return change


def without(name: str) -> Callable[[Path], None]:
    return lambda path: (path / name).unlink()


def edited(name: str, **values: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        data = json.loads((path / name).read_text())
        (path / name).write_text(json.dumps(data | values))

    return change


def cut(path: Path) -> None:
    weights = path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])


def padded(path: Path) -> None:
    with (path / "model.safetensors").open("ab") as file:
        file.write(b"\0" * 4096)


def header(length: int, text: bytes = b"{}") -> Callable[[Path], None]:
    return written("model.safetensors", struct.pack("<Q", length) + text)


def pickled(path: Path) -> None:
    (path / "model.safetensors").unlink()
    (path / "pytorch_model.bin").write_bytes(pickle.dumps(Opener()))


def remote(path: Path) -> None:
    edited(
        "config.json",
        model_type="mine",
        auto_map={"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"},
    )(path)
    (path / "code.py").write_text(CANARY)


def remote_tokenizer(path: Path) -> None:
    edited(
        "tokenizer_config.json",
        tokenizer_class="Mine",
        auto_map={"AutoTokenizer": ["code.Mine", None]},
    )(path)
    (path / "code.py").write_text(CANARY)


def index(shards: dict[str, str]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        (path / "model.safetensors").rename(path / "model-00001-of-00001.safetensors")
        (path / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {}, "weight_map": shards})
        )

    return change


LFS = (
    "version https://git-lfs.github.com/spec/v1\noid sha256:"
    + "0" * 64
    + "\nsize 4096\n"
)
ROWS = [
    broken("no config", without("config.json"), "config.json"),
    broken("no weights", without("model.safetensors"), "checkpoint"),
    broken("no tokenizer", without("tokenizer.json"), "tokenizer"),
    broken("a config that is no JSON", written("config.json", "{"), "config.json"),
    broken("a config that is a list", written("config.json", "[]"), "config.json"),
    broken(
        "a config of 100,000 levels",
        written("config.json", '{"a": ' + "[" * 100_000),
        "config.json",
    ),
    broken(
        "a config of no kind that is known",
        edited("config.json", model_type="nobody"),
        "its architecture is unknown",
    ),
    broken(
        "a config with heads that do not divide",
        edited("config.json", num_attention_heads=7),
        "checkpoint",
    ),
    broken("a tokenizer that is no JSON", written("tokenizer.json", "{"), "tokenizer"),
    broken(
        "a tokenizer of 100,000 levels",
        written("tokenizer.json", "[" * 100_000),
        "tokenizer",
    ),
    broken(
        "weights that are empty", written("model.safetensors", b""), "model.safetensors"
    ),
    broken("weights that are cut off", cut, "model.safetensors"),
    broken("weights with bytes behind them", padded, "model.safetensors"),
    broken(
        "weights that are text",
        written("model.safetensors", "no weights\n" * 99),
        "model.safetensors",
    ),
    broken(
        "weights that stayed in Git LFS",
        written("model.safetensors", LFS),
        "model.safetensors",
    ),
    broken("a header longer than the file", header(10**12), "model.safetensors"),
    broken("a header of 2^64 bytes", header(2**64 - 1), "model.safetensors"),
    broken("a header that is no JSON", header(2, b"{,"), "model.safetensors"),
    broken("a header of nothing", header(2), "weights missing"),
    broken("weights in a pickle", pickled, "pytorch_model.bin"),
    broken(
        "an index of a missing shard",
        index({"a": "model-00002-of-00002.safetensors"}),
        "model-00002-of-00002",
    ),
    broken(
        "an index that leads out of the folder",
        index({"a": "../../etc/passwd"}),
        "model.safetensors.index.json",
    ),
    broken("code beside the config", remote, "checkpoint"),
    broken("code beside the tokenizer", remote_tokenizer, "checkpoint"),
    Row(
        "remote code asked for",
        {"checkpoint": checkpoint(remote)},
        USAGE,
        "trust_remote_code",
        (*ARGS, "--kb-model-args=trust_remote_code=True"),
    ),
    broken(
        "a chat template that looks for Python",
        edited(
            "tokenizer_config.json",
            chat_template="{{ ''.__class__.__mro__[1].__subclasses__() }}",
        ),
        "",
        0,
    ),
    Row(
        "a chat template that looks for Python, used",
        {
            "checkpoint": checkpoint(
                edited(
                    "tokenizer_config.json",
                    chat_template="{{ ''.__class__.__mro__[1].__subclasses__() }}",
                )
            )
        },
        USAGE,
        "template",
        (*ARGS, "--kb-apply-chat-template"),
    ),
    Row(
        "a chat template that is broken",
        {
            "checkpoint": checkpoint(
                edited("tokenizer_config.json", chat_template="{% if %}")
            )
        },
        USAGE,
        "template",
        (*ARGS, "--kb-apply-chat-template"),
    ),
    Row(
        "a GGUF file of text",
        {"checkpoint/m.gguf": "GGUF" + "x" * 99},
        USAGE,
        "m.gguf",
        (*ARGS, "--kb-model-args=gguf_file=m.gguf"),
    ),
    Row(
        "a GGUF file that leads out of the folder",
        {"checkpoint": checkpoint(lambda path: None)},
        USAGE,
        "no file ../../x.gguf",
        (*ARGS, "--kb-model-args=gguf_file=../../x.gguf"),
    ),
    Row(
        "an adapter without its base",
        {"checkpoint/adapter_config.json": "{}"},
        USAGE,
        "checkpoint",
        ARGS,
    ),
]
