"""Errors of the Hugging Face hub in few words, whatever a library has wrapped around them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from huggingface_hub import constants, errors

_UNREACHABLE = (
    errors.LocalEntryNotFoundError,
    errors.OfflineModeIsEnabled,
    ConnectionError,
)


def hub_reason(error: Exception, revision: str) -> str:
    """Return why the hub did not give a file, and what to do; empty if ``error`` is about something else.

    ``revision`` is the one that was asked for, empty for the latest.
    """
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
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
