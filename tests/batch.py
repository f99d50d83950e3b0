"""A program that answers a batch as OpenAI's service and ``vllm run-batch`` do, without a server.

run_batch(OpenAIServer(say=lambda text: "Paris", models=("judge",)), requests, answers)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.openai_server import Call, OpenAIServer


def run_batch(
    server: OpenAIServer, requests: Path, answers: Path
) -> list[dict[str, Any]]:
    """Answer each line of ``requests``; return the lines of ``answers``."""
    lines = [
        answer_to(server, json.loads(line))
        for line in requests.read_text().splitlines()
    ]
    answers.write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8"
    )
    return lines


def answer_to(server: OpenAIServer, request: dict[str, Any]) -> dict[str, Any]:
    """Return the line of the output that answers a line of the input."""
    assert request["method"] == "POST"
    call = Call(
        path=request["url"].removeprefix("/v1/"), body=request["body"], headers={}
    )
    status, text = server.answer(call)
    response = {"status_code": status, "request_id": "r", "body": json.loads(text)}
    return {
        "id": "b",
        "custom_id": request["custom_id"],
        "response": response,
        "error": None,
    }
