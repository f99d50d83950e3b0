"""A server that answers, and what runs against it say."""

from __future__ import annotations

import pytest


@pytest.fixture
def server(openai_server):
    """Answer each prompt with words of its own."""
    openai_server.say = lambda text: f"city {len(text)}"
    return openai_server


@pytest.fixture
def gate(server):
    """Return the arguments of a run against the server."""
    return (
        "--kb-model=openai/judge",
        f"--kb-model-args=base_url={server.base_url},max_concurrent=1,max_retries=0",
        "suites",
    )


@pytest.fixture
def resume_notes(report):
    """Return what the latest run says about the run before, by lines."""

    def lines(folder="kbrel-report"):
        return report(folder)["environment"].get("answers_resumed", "").splitlines()

    return lines
