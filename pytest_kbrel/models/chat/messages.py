"""What a request is as messages of a conversation, and as one text."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.records import Request

Message = Mapping[str, str]


def message(role: str, content: str) -> dict[str, str]:
    """Return one message, as chat templates and servers take it."""
    return {"role": role, "content": content}


def messages_of(request: Request, instruction: str = "") -> list[dict[str, str]]:
    """Return a request as messages: system, the examples as turns, and the prompt of the user.

    ``instruction`` is the model's own system message; it stands before that of the request.
    """
    system = _joined(instruction, request.system)
    turns = [
        message(role, said)
        for turn in request.turns
        for role, said in zip(("user", "assistant"), turn, strict=True)
    ]
    return [*([message("system", system)] if system else []), *turns, message("user", request.prompt)]


def text_of(request: Request, instruction: str = "") -> str:
    """Return a request as one text, as a model without a chat template reads it."""
    turns = [f"{asked} {said}" for asked, said in request.turns]
    return _joined(instruction, request.system, *turns, request.prompt)


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
