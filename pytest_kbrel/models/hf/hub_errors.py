"""Errors of the Hugging Face hub in few words, whatever a library has wrapped around them."""

from __future__ import annotations

from collections.abc import Iterator

from huggingface_hub import constants, errors, get_token


def hub_reason(error: Exception, revision: str = "") -> str:
    """Return why the hub did not give a file, and what to do; empty if ``error`` is about something else.

    ``revision`` is the one that was asked for, empty for the latest.
    """
    chain = tuple(_chain(error))
    token = bool(get_token())
    if _has(chain, errors.GatedRepoError):
        todo = (
            "the account of the token in use has no access"
            if token
            else "no token is set"
        )
        return (
            f"it is gated on the hub, and {todo}; accept its conditions on its page there, then log in "
            "with 'hf auth login' or set HF_TOKEN"
        )
    if _has(chain, errors.RepositoryNotFoundError):
        private = (
            "the account of the token in use may not read it"
            if token
            else "no token (HF_TOKEN) is set"
        )
        return (
            f"no such folder here, and the hub ({constants.ENDPOINT}) has no such repository, or it is "
            f"private and {private}"
        )
    if _has(chain, errors.RevisionNotFoundError):
        return f"the hub has no revision {revision or 'main'} of it"
    if _has(
        chain,
        errors.LocalEntryNotFoundError,
        errors.OfflineModeIsEnabled,
        ConnectionError,
    ):
        return (
            f"no such folder here, it is not in the hub's cache ({constants.HF_HUB_CACHE}), and the hub "
            f"({constants.ENDPOINT}) cannot be reached"
        )
    return ""


def _has(chain: tuple[BaseException, ...], *kinds: type[BaseException]) -> bool:
    return any(isinstance(error, kinds) for error in chain)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that led to it, the last one first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
