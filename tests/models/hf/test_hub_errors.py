"""Errors of the hub, in the words of a user who must do something about them."""

from __future__ import annotations

import pytest
from huggingface_hub import errors

from pytest_kbrel.models.hf import hub_errors
from pytest_kbrel.models.hf.hub_errors import hub_reason


def of(kind: type[Exception]) -> Exception:
    """Without the response of a server, which each version of the library makes by another package."""
    return kind.__new__(kind)


def wrapped(error: Exception) -> OSError:
    """As transformers raises it, in a text of its own."""
    try:
        try:
            raise error
        except Exception as cause:
            raise OSError(
                "We couldn't connect to ... or is not a valid model identifier"
            ) from cause
    except OSError as outer:
        return outer


@pytest.mark.parametrize(
    ("error", "token", "words"),
    [
        (
            of(errors.GatedRepoError),
            None,
            "gated on the hub, and no token is set; accept its",
        ),
        (
            of(errors.GatedRepoError),
            "hf_x",
            "the account of the token in use has no access; accept",
        ),
        (
            of(errors.RepositoryNotFoundError),
            None,
            "no such repository, or it is private and no token",
        ),
        (
            of(errors.RepositoryNotFoundError),
            "hf_x",
            "the account of the token in use may not read it",
        ),
        (of(errors.RevisionNotFoundError), None, "the hub has no revision v9 of it"),
        (of(errors.LocalEntryNotFoundError), None, "it is not in the hub's cache ("),
        (of(errors.OfflineModeIsEnabled), None, "cannot be reached"),
    ],
)
def test_what_the_hub_refuses_is_said(
    monkeypatch: pytest.MonkeyPatch, error: Exception, token: str | None, words: str
) -> None:
    monkeypatch.setattr(hub_errors, "get_token", lambda: token)
    assert words in hub_reason(wrapped(error), "v9")
    assert "hf_x" not in hub_reason(wrapped(error), "v9")
