"""Errors of the hub, in the words of a user who must do something about them."""

from __future__ import annotations

import pytest
from huggingface_hub import errors

from pytest_kbrel.errors import ModelError, NoFolderError
from pytest_kbrel.models.pretrained import loading


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
    ("error", "words"),
    [
        (of(errors.GatedRepoError), "gated on the hub; accept its"),
        (of(errors.RepositoryNotFoundError), "no such repository, or it is private"),
        (of(errors.RevisionNotFoundError), "the hub has no revision v9 of it"),
        (of(errors.LocalEntryNotFoundError), "it is not in the hub's cache ("),
        (of(errors.OfflineModeIsEnabled), "cannot be reached"),
        (ValueError("other"), "OSError: We couldn't connect to ... or"),
    ],
)
def test_what_the_hub_refuses_is_said(error: Exception, words: str) -> None:
    with pytest.raises(ModelError) as caught, loading("config", "/", "v9", "; hint"):
        raise wrapped(error)
    message = str(caught.value)
    assert message.startswith("/: config cannot be loaded: ")
    assert message.endswith("; hint")
    assert words in message
    assert isinstance(caught.value, NoFolderError) == ("no such folder" in message)
