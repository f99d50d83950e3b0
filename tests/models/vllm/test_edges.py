"""Arguments of a ``vllm/`` model at their edges, and each that it takes and gives on."""

from __future__ import annotations

import multiprocessing
import time
from queue import Empty, Queue
from types import SimpleNamespace

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.hf.spec import ModelSpec
from pytest_kbrel.models.registry import args_for, backend_of
from pytest_kbrel.models.vllm import VllmSpec, parse_vllm
from pytest_kbrel.models.vllm.engine import EngineEndedError, watch


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (" vllm/x ", True),
        (" vllm ", True),
        ("vllm/", True),
        ("Vllm/x", False),
        ("vllmx", False),
        ("x/vllm", False),
    ],
)
def test_which_spec_vllm_runs(text, result):
    assert (backend_of(text).name == "vllm") is result


def test_a_checkpoint_of_which_nothing_is_said():
    assert parse_vllm(" vllm/x/y ") == VllmSpec(
        text="vllm/x/y",
        checkpoint=ModelSpec(text="vllm/x/y", path="x/y"),
        backend="vllm",
        tensor_parallel_size=1,
        gpu_memory_utilization=None,
        max_num_seqs=None,
        quantization="",
        enforce_eager=False,
    )


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


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        ("dtype=float32", "dtype", "float32"),
        ("revision=main", "revision", "main"),
        ("tokenizer=t", "tokenizer", "t"),
        ("add_bos_token=False", "add_bos_token", False),
        ("max_length=1", "max_length", 1),
        ("max_model_len=1", "max_length", 1),
        ("apply_chat_template=True", "chat_template", True),
        ("trust_remote_code=False", "path", "x/y"),
    ],
)
def test_what_the_checkpoint_is_told(args, field, value):
    assert getattr(parse_vllm("vllm/x/y", args).checkpoint, field) == value


@pytest.mark.parametrize(
    "args",
    [
        *(
            "gpu_memory_utilization=0",
            "gpu_memory_utilization=1.01",
            "gpu_memory_utilization=-1",
        ),
        *(
            "tensor_parallel_size=-1",
            "tensor_parallel_size=1.5",
            "max_num_seqs=0",
            "data_parallel_size=0",
        ),
        "max_model_len=0",
    ],
)
def test_what_lies_just_beside_is_refused(args):
    with pytest.raises(ModelError):
        parse_vllm("vllm/x/y", args)


@pytest.mark.parametrize(
    ("device", "fine"),
    [("auto", True), ("cuda", True), ("cuda:0", False), ("mps", False)],
)
def test_only_the_kind_of_device_is_said(device, fine):
    if fine:
        assert parse_vllm("vllm/x/y", device=device).text == "vllm/x/y"
        return
    with pytest.raises(ModelError, match="is for vLLM to choose"):
        parse_vllm("vllm/x/y", device=device)


OWN = {
    **{
        "tensor_parallel_size": "2",
        "gpu_memory_utilization": "0.5",
        "max_model_len": "8",
        "max_num_seqs": "4",
    },
    **{
        "quantization": "fp8",
        "enforce_eager": "True",
        "data_parallel_size": "1",
        "dtype": "float32",
    },
    **{
        "revision": "main",
        "tokenizer": "t",
        "trust_remote_code": "False",
        "add_bos_token": "True",
    },
    **{"apply_chat_template": "True", "pretrained": "x/y"},
}


@pytest.mark.parametrize("name", OWN)
def test_each_argument_is_one_of_vllms(name):
    text = f"{name}={OWN[name]}"
    assert args_for("vllm/x", f"{text},base_url=http://localhost:1/v1") == text
    parse_vllm("vllm" if name == "pretrained" else "vllm/x/y", text)


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


def test_an_engine_without_processes_is_not_watched():
    outputs = Queue()
    watch(engine(outputs_queue=outputs), [])
    watch(engine(), [])
    assert outputs.empty()
