"""A process that ends wakes who waits for it; the engine's queue is stood in for, the process is real."""

from __future__ import annotations

import multiprocessing
import time
from queue import Empty, Queue
from types import SimpleNamespace

import pytest

from pytest_kbrel.models.vllm.engine import EngineEndedError, watch


def engine(**parts):
    return SimpleNamespace(llm_engine=SimpleNamespace(engine_core=SimpleNamespace(**parts)))


def test_who_waits_is_told_when_a_process_is_killed():
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,), daemon=True)
    process.start()
    outputs = Queue()
    watch(engine(outputs_queue=outputs), [process])
    with pytest.raises(Empty):
        outputs.get(timeout=0.1)
    process.kill()
    assert isinstance(outputs.get(timeout=300), EngineEndedError)
    process.join()


def test_an_engine_without_processes_is_not_watched():
    outputs = Queue()
    watch(engine(outputs_queue=outputs), [])
    watch(engine(), [])
    assert outputs.empty()
