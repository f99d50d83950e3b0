"""Registry of all backends, and functions on specs of any backend."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import ModelError, NoFolderError, nearest
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.arguments import join_args, parse_args
from pytest_kbrel.models.base import Backend, Embedder, Model, Spec
from pytest_kbrel.models.hf.backend import HF
from pytest_kbrel.models.openai import OPENAI
from pytest_kbrel.models.scripted import SCRIPTED
from pytest_kbrel.models.vllm import VLLM

BACKENDS = {backend.name: backend for backend in (OPENAI, HF, VLLM, ANSWERS, SCRIPTED)}
"""All backends by name; importing them loads no model's package."""


# What other tools write before the name of a model behind a server; none is the name of models on the hub.
_SERVERS = re.compile(
    "(anthropic|local|openai)(-chat)?-completions|text-completion-openai|anthropic(-chat)?|api|azure(_ai)?|"
    "bedrock|custom_openai|gemini|groq|https?:|litellm(_proxy)?|llama[_-]?cpp|llamafile|lm[_-]?studio|localai|"
    "oobabooga|ollama(_chat)?|openai[_-](compatible|like)|openrouter|sglang|tgi|together_ai|vertex_ai|"
    "vllm[_-]server|hosted_vllm|watsonx|xinference"
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
    if _SERVERS.fullmatch(head) and not Path(text).exists():
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


def encoder_backend(text: str, folder: Path) -> Backend:
    """Return the backend of an encoder of texts; a relative path begins at ``folder``.

    Raises :class:`~pytest_kbrel.errors.ModelError` for a backend that has no encoders.
    """
    backend = backend_of(text)
    if backend.embedder is not None:
        return backend
    if (folder / text).is_dir():
        return HF
    forms = [f"{name}/NAME" for name, of in BACKENDS.items() if of.embedder]
    raise ModelError(
        f"{text}: {backend.name}/ has no encoders of texts; allowed: tfidf, "
        f"{', '.join(forms)} or a folder beside the suite"
    )


def open_encoder(text: str, args: str, folder: Path) -> Embedder:
    """Open an encoder of texts with those of ``args`` that its backend has; raises as `encoder_backend`."""
    backend = encoder_backend(text, folder)
    assert backend.embedder is not None
    return backend.embedder(text, _joined(args, backend.args), folder)


def check_spec(spec: Spec) -> None:
    """Check a spec without loading a model or calling a server.

    Raises :class:`~pytest_kbrel.errors.ModelError` or :class:`~pytest_kbrel.errors.MissingExtraError` for a
    missing checkpoint, package, key or device, for truncated weights, and for an option that is not possible.
    """
    try:
        BACKENDS[spec.backend].check(spec)
    except NoFolderError as error:
        raise _with_hint(spec, error) from None


def _with_hint(spec: Spec, error: NoFolderError) -> NoFolderError:
    """Return the error with the backend or reference that the spec may mean."""
    head, slash, rest = spec.text.partition("/")
    if slash and head not in BACKENDS:
        return NoFolderError(f"{error}{nearest(head, BACKENDS)}")
    meant = rest if slash else head
    _, colon, candidate = meant.partition(":")
    return NoFolderError(f"{error}{nearest(meant, [f'reference{colon}{candidate}'])}")


def open_model(spec: Spec, *, threads: int | None = None) -> Model:
    """Open a model: load a checkpoint, start an engine, connect to a server, or read a script.

    ``threads`` is the number of CPU threads for transformers. Raises as :func:`check_spec`, and :class:`~pytest_kbrel.errors.ModelError` for a checkpoint that
    does not work.
    """
    try:
        return BACKENDS[spec.backend].open(spec, threads=threads)
    except NoFolderError as error:
        raise _with_hint(spec, error) from None
