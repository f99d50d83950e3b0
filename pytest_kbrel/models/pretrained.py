"""Loading by transformers: its errors in few words, whatever a library has wrapped around them, and silence."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import transformers
from huggingface_hub import constants, errors
from transformers.utils import logging as hf_logging

from pytest_kbrel.errors import KbrelError, ModelError, NoFolderError
from pytest_kbrel.models.batching import describe_error


@contextmanager
def loading(what: str, name: str, revision: str = "", hint: str = "") -> Iterator[None]:
    """Raise :class:`ModelError` for whatever is raised while ``what`` of the checkpoint ``name`` is loaded.

    ``revision`` is the one that is asked for, empty for the latest; ``hint`` ends the message.
    """
    try:
        yield
    except KbrelError:
        raise
    except Exception as error:
        reason = _reason(error, name, revision)
        kind = NoFolderError if reason.startswith("no such folder here") else ModelError
        message = f"{name}: {what} cannot be loaded: {reason}{hint}"
        raise kind(message) from None


def _reason(error: Exception, name: str, revision: str) -> str:
    text = str(error)
    if "trust_remote_code" in text:
        return "it needs code from the checkpoint, which is never run; allowed is what transformers knows"
    if "model type" in text and "recognize" in text:
        return f"its architecture is unknown to transformers {transformers.__version__}"
    if of_hub := _hub_reason(error, revision):
        return of_hub
    if isinstance(error, OSError) and not Path(name).expanduser().exists():
        return "no such folder here, and no such checkpoint in the hub's cache or within reach"
    if type(error).__name__ == "SafetensorError":
        return f"the safetensors are corrupt: {text}"
    return describe_error(error)


_UNREACHABLE = (
    errors.LocalEntryNotFoundError,
    errors.OfflineModeIsEnabled,
    ConnectionError,
)


def _hub_reason(error: Exception, revision: str) -> str:
    """Return why the hub did not give a file, and what to do; empty if ``error`` is about something else."""
    reasons: dict[Any, str] = {
        errors.GatedRepoError: "it is gated on the hub; accept its conditions on its page there, then log in with "
        "'hf auth login' or set HF_TOKEN, as an account that has access",
        errors.RepositoryNotFoundError: f"no such folder here, and the hub ({constants.ENDPOINT}) has no such "
        "repository, or it is private and the token in use (HF_TOKEN) may not read it",
        errors.RevisionNotFoundError: f"the hub has no revision {revision or 'main'} of it",
        _UNREACHABLE: f"no such folder here, it is not in the hub's cache ({constants.HF_HUB_CACHE}), and the "
        f"hub ({constants.ENDPOINT}) cannot be reached",
    }
    chain = list(_chain(error))
    for kinds, reason in reasons.items():
        if any(isinstance(one, kinds) for one in chain):
            return reason
    return ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that led to it, the last one first."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' advice, and the progress bars of all libraries; other lines come at the end."""
    stderr = io.StringIO(newline="")
    verbosity = hf_logging.get_verbosity()
    hf_logging.set_verbosity(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(stderr):
            warnings.simplefilter("ignore")
            yield
    finally:
        for line in stderr.getvalue().split("\n"):
            # A bar is written over and over.
            if line and "\r" not in line:
                print(line, file=sys.stderr)
        hf_logging.set_verbosity(verbosity)
