"""Under which key an answer is kept: who answers, and what was asked, how."""

from __future__ import annotations

import hashlib
import json

from pytest_kbrel.records import Fingerprint, GenerateRequest, Request
from pytest_kbrel.serialization import values_of

_LATER = ("system", "turns")
"""The last fields of both kinds of requests."""


def key_of(model: str, request: Request) -> str:
    """Return the key of an answer (sha256, hex): one digest of who answers and of what was asked, how.

    ``model`` is the model's :func:`digest_of`.
    """
    kind = "generate" if isinstance(request, GenerateRequest) else "score"
    said = values_of(request)
    # Keys of older versions hold, which knew neither.
    said = said if request.system or request.turns else said[: -len(_LATER)]
    return hashlib.sha256(json.dumps([model, kind, said]).encode()).hexdigest()


def digest_of(model: Fingerprint) -> str:
    """Return the digest (sha256, hex) of what makes two models one as far as their answers go."""
    return hashlib.sha256(json.dumps(identity(model), sort_keys=True).encode()).hexdigest()


def identity(model: Fingerprint) -> dict[str, object]:
    """Return what makes two models one as far as their answers go.

    A checkpoint is known by its contents, however it is called and wherever it lies or runs, and by what
    computes its answers; a model behind a server by its name and the server's address, for nothing else is
    known of it.
    """
    found: dict[str, object] = {
        "backend": model.backend,
        "weights": model.weights_digest,
        "tokenizer": model.tokenizer_digest,
        "dtype": model.dtype,
        "derived": model.derived,
        "quantisation": model.quantisation,
        "decoding": model.decoding,
        "chat_template": model.chat_template,
        "adds_bos": model.adds_bos,
        **({"prompting": model.prompting} if model.prompting else {}),
    }
    if model.weights_digest:
        # Whoever tries a new version of a library wants to know what that one answers.
        return found | {"computed_by": model.backend_version, "scoring": model.scoring_version}
    return found | {"name": model.architecture, "server": model.device}
