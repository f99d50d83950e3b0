"""Registry of all backends, and functions on specs of any backend."""

from __future__ import annotations

from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel.errors import ModelError, nearest
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.arguments import join_args, parse_args
from pytest_kbrel.models.base import Backend, Model, Spec
from pytest_kbrel.models.hf.backend import HF
from pytest_kbrel.models.hf.spec import NoFolderError
from pytest_kbrel.models.openai import OPENAI
from pytest_kbrel.models.scripted import SCRIPTED
from pytest_kbrel.models.vllm import VLLM

if TYPE_CHECKING:
    from pytest_kbrel.models.token_counting import TokenCounter

BACKENDS: Mapping[str, Backend] = {
    backend.name: backend for backend in (OPENAI, HF, VLLM, ANSWERS, SCRIPTED)
}
"""All backends by name; importing them loads no model's package."""


# What other tools write before the name of a model behind a server; none is the name of models on the hub.
_SERVERS = frozenset(
    [
        "anthropic",
        "anthropic-chat",
        "anthropic-chat-completions",
        "api",
        "azure",
        "azure_ai",
        "bedrock",
        "custom_openai",
        "gemini",
        "groq",
        "hosted_vllm",
        "http:",
        "https:",
        "litellm",
        "litellm_proxy",
        "llama_cpp",
        "llama-cpp",
        "llamacpp",
        "llamafile",
        "lm-studio",
        "lm_studio",
        "lmstudio",
        "local-chat-completions",
        "local-completions",
        "localai",
        "oobabooga",
        "ollama",
        "ollama_chat",
        "openai-chat-completions",
        "openai-completions",
        "openai-compatible",
        "openai_like",
        "openrouter",
        "sglang",
        "text-completion-openai",
        "tgi",
        "together_ai",
        "vertex_ai",
        "vllm-server",
        "vllm_server",
        "watsonx",
        "xinference",
    ]
)


def backend_of(text: str) -> Backend:
    """Return the backend that a spec names: by the word before its slash, else transformers."""
    return BACKENDS.get(text.strip().partition("/")[0], HF)


def read_spec(text: str, model_args: str = "", **run: Any) -> Spec:
    """Read the name of a model and its companions; nothing is loaded, and no server is asked.

    ``run`` are ``device``, ``dtype``, ``batch_size`` and ``chat_template`` of the run. Raises
    :class:`~pytest_kbrel.errors.ModelError` as the backend's ``parse`` does, and for another tool's name of a
    server.
    """
    head = text.strip().partition("/")[0]
    if head in _SERVERS and not Path(text.strip()).exists():
        raise ModelError(
            f"{head}/…: no such folder; allowed for a model behind a server: openai/NAME with its address in "
            "--kb-model-args=base_url=http://HOST:PORT/v1, where NAME is what the server calls it"
        )
    return backend_of(text).parse(text, model_args, **run)


def args_for(text: str, args: str) -> str:
    """Return those of the arguments of several models that are for the backend ``text`` names.

    Raises :class:`~pytest_kbrel.errors.ModelError` for an argument that no backend has.
    """
    return _joined(args, backend_of(text).args)


def unused_args(args: str, used: Container[str]) -> list[str]:
    """Return the arguments, as ``key=value``, that are not ``used``; raises as :func:`args_for`."""
    parts = [
        part
        for backend in BACKENDS.values()
        for part in _joined(args, backend.args).split(",")
    ]
    return [part for part in dict.fromkeys(parts) if part and part not in used]


def _joined(args: str, keys: Container[str]) -> str:
    every = tuple(
        dict.fromkeys(key for backend in BACKENDS.values() for key in backend.args)
    )
    return join_args(
        {key: value for key, value in parse_args(args, every).items() if key in keys}
    )


def check_spec(spec: Spec) -> None:
    """Check a spec without loading a model or calling a server.

    Raises :class:`~pytest_kbrel.errors.ModelError` or :class:`~pytest_kbrel.errors.MissingExtraError` for a
    missing checkpoint, package, key or device, for truncated weights, and for an option that is not possible.
    """
    try:
        BACKENDS[spec.backend].check(spec)
    except NoFolderError as error:
        raise _with_hint(spec, error) from None


def _with_hint(spec: Spec, error: NoFolderError) -> ModelError:
    """Return the error with the backend or reference that the spec may mean."""
    head, slash, rest = spec.text.partition("/")
    if slash and head not in BACKENDS:
        return ModelError(f"{error}{nearest(head, BACKENDS)}")
    meant = rest if slash else head
    _, colon, candidate = meant.partition(":")
    return ModelError(f"{error}{nearest(meant, [f'reference{colon}{candidate}'])}")


def gpus_of(spec: Spec) -> int | None:
    """Return the number of GPUs a process needs for itself, 0 if it can share one, ``None`` for all."""
    return BACKENDS[spec.backend].gpus(spec)


def unscorable(spec: Spec) -> str:
    """Return why a model gives no probabilities of given texts, as MONITOR needs them; empty if it does.

    A server may be asked; raises :class:`~pytest_kbrel.errors.ModelError` where it cannot be.
    """
    return BACKENDS[spec.backend].unscorable(spec)


def announcement(spec: Spec) -> str:
    """Return what opening a model will load or ask, for people, before anything is; empty if nothing."""
    return BACKENDS[spec.backend].announcement(spec)


def gives_top_tokens(spec: Spec) -> bool:
    """Return True if a model gives the most probable tokens of each position that it writes."""
    return BACKENDS[spec.backend].gives_top_tokens


def gives_answer_probabilities(spec: Spec) -> bool:
    """Return True if a model gives the probabilities of its own answers, as calibration needs them."""
    return BACKENDS[spec.backend].answer_probabilities(spec)


def open_counter(spec: Spec) -> TokenCounter:
    """Return a model's token counter: its own tokenizer, or an estimate.

    Raises :class:`~pytest_kbrel.errors.ModelError` if a checkpoint's tokenizer cannot be loaded.
    """
    return BACKENDS[spec.backend].counter(spec)


def open_model(spec: Spec, *, threads: int | None = None) -> Model:
    """Open a model: load a checkpoint, start an engine, connect to a server, or read a script.

    ``threads`` is the number of CPU threads for transformers. Raises as :func:`check_spec`, and :class:`~pytest_kbrel.errors.ModelError` for a checkpoint that
    does not work.
    """
    try:
        return BACKENDS[spec.backend].open(spec, threads=threads)
    except NoFolderError as error:
        raise _with_hint(spec, error) from None
