from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests.openai_server import OpenAIServer

# Nothing here may reach for a hub, and two test processes must not fight over the cores.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("kbrel", deadline=None)
hypothesis.settings.load_profile("kbrel")


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """A server on loopback that speaks the OpenAI protocol, this test's own."""
    with OpenAIServer() as server:
        yield server
