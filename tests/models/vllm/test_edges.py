"""Arguments of a ``vllm/`` model at their edges, and each that it takes and gives on."""

from __future__ import annotations

import multiprocessing
import time
from queue import Empty, Queue
from types import SimpleNamespace

import pytest

from pytest_kbrel.models.vllm import parse_vllm
from pytest_kbrel.models.vllm.engine import EngineEndedError, watch


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        ("tensor_parallel_size=1", "tensor_parallel_size", 1),
        ("tensor_parallel_size=auto", "tensor_parallel_size", 1),
        ("gpu_memory_utilization=1", "gpu_memory_utilization", 1.0),
        ("gpu_memory_utilization=0.01", "gpu_memory_utilization", 0.01),
        ("max_num_seqs=1", "max_num_seqs", 1),
        ("max_num_seqs=auto", "max_num_seqs", None),
        ("enforce_eager=False", "enforce_eager", False),
        ("data_parallel_size=1", "tensor_parallel_size", 1),
        ("quantization=fp8", "quantization", "fp8"),
    ],
)
def test_the_least_and_the_most_that_the_engine_is_told(args, field, value):
    assert getattr(parse_vllm("vllm/x/y", args), field) == value


def engine(**parts):
    return SimpleNamespace(
        llm_engine=SimpleNamespace(engine_core=SimpleNamespace(**parts))
    )


def test_who_waits_is_told_when_a_process_is_killed():
    process = multiprocessing.get_context("spawn").Process(
        target=time.sleep, args=(600,), daemon=True
    )
    process.start()
    outputs = Queue()
    watch(engine(outputs_queue=outputs), [process])
    with pytest.raises(Empty):
        outputs.get(timeout=0.1)
    process.kill()
    assert isinstance(outputs.get(timeout=300), EngineEndedError)
    process.join()
