from __future__ import annotations

import multiprocessing
import time
from queue import Empty, Queue
from types import SimpleNamespace

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.registry import (
    BACKENDS,
    backend_of,
    check_spec,
    read_spec,
)
from pytest_kbrel.models.vllm import VllmSpec, parse_vllm
from pytest_kbrel.models.vllm.model import EngineEndedError, watch


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        ("tensor_parallel_size=auto,data_parallel_size=1", "tensor_parallel_size", 1),
        ("gpu_memory_utilization=1", "gpu_memory_utilization", 1.0),
        ("max_num_seqs=auto", "max_num_seqs", None),
        ("enforce_eager=False", "enforce_eager", False),
        ("quantization=fp8", "quantization", "fp8"),
    ],
)
def test_what_the_engine_is_told(args, field, value):
    assert getattr(parse_vllm("vllm/x/y", args), field) == value


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("vllm/x/y", "tensor_paralel_size=2", "did you mean 'tensor_parallel_size'"),
        ("vllm/x/y", "peft=./adapter", "unknown key 'peft'"),
        ("vllm/x/y", "tensor_parallel_size=1025", "to 1,024, of GPUs"),
        ("vllm/x/y", "max_num_seqs=1000001", "from 1 to 1,000,000, of sequences"),
        ("vllm/x/y", "gpu_memory_utilization=90", "a number above 0 and up to 1"),
        ("vllm/x/y", "max_model_len=5,max_length=5", "one thing"),
        ("vllm/x/y", "trust_remote_code=True", "never runs code"),
        ("vllm/x/y", "data_parallel_size=2", "write -n 2, or -n auto"),
        ("vllm/", "", "no checkpoint named"),
        ("vllm/reference:int4", "", "allowed is reference"),
    ],
)
def test_what_is_wrong_is_said(text, args, said):
    with pytest.raises(ModelError, match=said):
        parse_vllm(text, args)


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_vllm_chooses_where_it_runs(device):
    with pytest.raises(ModelError, match="CUDA_VISIBLE_DEVICES says"):
        parse_vllm("vllm/x/y", device=device)


def test_a_spec_goes_to_its_backend():
    spec = read_spec("vllm/x/y", "dtype=half,tensor_parallel_size=4", batch_size="64")
    assert isinstance(spec, VllmSpec)
    assert (spec.backend, spec.checkpoint.dtype, spec.checkpoint.batch_size) == (
        "vllm",
        "float16",
        64,
    )
    assert not BACKENDS[spec.backend].unscorable(spec)
    assert BACKENDS["vllm"].gpus(spec) == 4
    assert BACKENDS["hf"].gpus(read_spec("./here")) == 0
    names = ("vllm/x/y", "vllm", "openai/x", "hf/vllm/x", "reference", "vllmx/y")
    assert [backend_of(name).name for name in names] == [
        "vllm",
        "vllm",
        "openai",
        "hf",
        "hf",
        "hf",
    ]


def test_a_path_that_holds_no_checkpoint_is_found_before_the_package_is_missed(
    tmp_path,
):
    with pytest.raises(ModelError, match="no such folder"):
        check_spec(read_spec(f"vllm/{tmp_path}/nowhere"))


def test_an_adapter_is_not_run_without_a_word(tmp_path):
    settings = '{"base_model_name_or_path": "org/base"}'
    (tmp_path / "adapter_config.json").write_text(settings)
    with pytest.raises(ModelError, match=f"runs none; allowed: hf/{tmp_path}"):
        parse_vllm(f"vllm/{tmp_path}")


def test_who_waits_is_told_when_a_process_is_killed():
    process = multiprocessing.get_context("spawn").Process(
        target=time.sleep, args=(600,), daemon=True
    )
    process.start()
    outputs = Queue()
    core = SimpleNamespace(outputs_queue=outputs)
    watch(SimpleNamespace(llm_engine=SimpleNamespace(engine_core=core)), [process])
    with pytest.raises(Empty):
        outputs.get(timeout=0.1)
    process.kill()
    assert isinstance(outputs.get(timeout=300), EngineEndedError)
    process.join()
