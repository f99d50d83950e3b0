"""How many tokens a batch may have: the arithmetic, what is free, and real shortage."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_kbrel.models.hf import devices as module
from pytest_kbrel.models.hf.devices import (
    bytes_a_token,
    cpu_bytes,
    measure_budget,
)

GIB = 2**30


def system(
    folder: Path,
    *,
    available=8 * GIB,
    limit=None,
    used=0,
    files=0,
    address=None,
    size=0,
):
    proc, groups = folder / "proc", folder / "cgroup"
    (proc / "self").mkdir(parents=True)
    (groups / "mine").mkdir(parents=True)
    (proc / "meminfo").write_text(
        f"MemTotal: 1 kB\nMemAvailable:  {available // 1024} kB\n"
    )
    (proc / "self" / "cgroup").write_text("0::/mine\n")
    (proc / "self" / "status").write_text(f"VmSize:\t{size // 1024} kB\n")
    said = "unlimited" if address is None else address
    (proc / "self" / "limits").write_text(
        f"Max address space         {said}    unlimited    bytes\n"
    )
    (groups / "mine" / "memory.max").write_text(
        f"{'max' if limit is None else limit}\n"
    )
    (groups / "mine" / "memory.current").write_text(f"{used}\n")
    (groups / "mine" / "memory.stat").write_text(f"anon 5\ninactive_file {files}\n")
    return cpu_bytes(proc, groups)


def test_free_is_what_machine_container_and_process_leave(tmp_path):
    assert system(tmp_path / "a") == 8 * GIB
    assert system(tmp_path / "b", limit=4 * GIB, used=GIB) == 3 * GIB
    # What files hold is given back when it is needed.
    assert system(tmp_path / "c", limit=4 * GIB, used=2 * GIB, files=GIB) == 3 * GIB
    assert system(tmp_path / "d", limit=64 * GIB) == 8 * GIB
    assert system(tmp_path / "e", address=6 * GIB, size=4 * GIB) == 2 * GIB
    assert system(tmp_path / "f", limit=GIB, used=2 * GIB) == 0
    assert cpu_bytes(tmp_path / "none", tmp_path / "none") is None


def test_a_batch_has_a_share_of_what_is_free(model_of, monkeypatch):
    parts = model_of("llama").parts
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    monkeypatch.setattr(module, "CPU_MOST", 10**9)
    monkeypatch.setattr(module, "free_bytes", lambda device: 4 * GIB)
    per_token = bytes_a_token(parts.model)
    expected = int((0.6 * 4 * GIB - 3 * 2**28) / per_token)
    assert measure_budget(parts.model, parts.spec) == expected
    monkeypatch.setattr(module, "free_bytes", lambda device: GIB)
    assert measure_budget(parts.model, parts.spec) == 256


SHORT = """
import resource, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from pytest_kbrel.models.hf.loading import load_checkpoint
from pytest_kbrel.models.hf.model import HfModel
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.records import Scored, ScoreRequest

parts = load_checkpoint(parse_spec(sys.argv[1], device="cpu"))
asked = [
    ScoreRequest(prompt=f"Paris {n} " + "is the capital of France. " * 12, continuation=" Paris")
    for n in range(400)
]
model, small = HfModel(parts, budget=2**20), HfModel(parts, budget=2048)
model._scorer.sharing_mode = small._scorer.sharing_mode = "plain"
model.score(asked[:2])
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 48 * 2**20, -1))
found = model.score(asked)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
right = small.score(asked)
assert all(isinstance(one, Scored) for one in found), found[0]
worst = max(abs(a.probabilities[0] - b.probabilities[0]) for a, b in zip(found, right))
print(model._batcher.budget, worst < 1e-4)
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="address space is limited on Linux only",
)
@pytest.mark.slow
def test_a_process_that_runs_out_of_memory_halves_and_ends_right(
    checkpoint_of, tmp_path
):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SHORT, str(checkpoint_of("llama"))],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    tokens, equal = done.stdout.split()[-2:]
    assert equal == "True"
    assert 1 <= int(tokens) < 2**20
