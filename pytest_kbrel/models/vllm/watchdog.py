"""Wakes a question that waits for an engine whose process was killed: vLLM 0.32.0 would wait for ever."""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from queue import Queue
from threading import Thread
from typing import Any


class EngineEndedError(Exception):
    """A process of an engine is no more."""


def watch(llm: Any, processes: Sequence[BaseProcess]) -> None:
    """Tell whoever waits for the engine's next output when one of its processes has ended.

    An engine that runs in this process has none, and no queue that anybody waits at.
    """
    outputs = getattr(llm.llm_engine.engine_core, "outputs_queue", None)
    if outputs is not None and processes:
        Thread(target=_tell, args=(outputs, processes), daemon=True, name="kbrel-vllm").start()


def _tell(outputs: Queue[Any], processes: Sequence[BaseProcess]) -> None:
    connection.wait([process.sentinel for process in processes])
    outputs.put(EngineEndedError("a process of vLLM's engine was ended from outside, or by itself"))
