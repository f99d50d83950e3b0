"""Weights on a CPU are pages of their file: processes that load a checkpoint share one copy of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.tiny_checkpoints import make_checkpoint

ROOT = Path(__file__).parents[2]
# Loads, asks, says so, waits until the other process has done the same, then looks at its own memory.
WORKER = """\
import json, re, sys
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.records import GenerateRequest, ScoreRequest

model = load(parse_spec(sys.argv[1]), threads=1)
assert model.score([ScoreRequest(prompt="Paris is", continuation=" the")])[0].probabilities
assert model.generate([GenerateRequest(prompt="Paris is", max_new_tokens=4)])[0].token_ids
print("ready", flush=True)
sys.stdin.readline()
found, ranges, ours = {}, [], False
for line in open("/proc/self/smaps"):
    if place := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
        ours = line.rstrip().endswith("/model.safetensors")
        ranges += [(int(place[1], 16), int(place[2], 16))] if ours else []
    elif ours and line.split()[-1] == "kB":
        name, size = line.split()[:2]
        found[name] = found.get(name, 0) + 1024 * int(size)
outside = [
    name for name, weights in model.parts.model.named_parameters()
    if not any(start <= weights.data_ptr() < end for start, end in ranges)
]
print(json.dumps({"pages": found, "outside": outside}), flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(
    not Path("/proc/self/smaps").exists(), reason="memory is looked at by Linux's /proc"
)
@pytest.mark.slow
def test_two_processes_share_one_copy_of_the_weights(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "checkpoint")
    size = (folder / "model.safetensors").stat().st_size
    for result in together(folder):
        assert result["outside"] == []
        pages = result["pages"]
        assert pages["Rss:"] >= 0.9 * size
        # Copied when they were written to.
        assert pages["Anonymous:"] == 0
        # A page that two processes have counts half for each.
        assert pages["Pss:"] <= 0.6 * pages["Rss:"]


def together(folder: Path) -> list[dict]:
    """Load a checkpoint in two processes and return what each sees while both have it."""
    command = [sys.executable, "-c", WORKER, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(2)]
    try:
        assert [worker.stdout.readline().strip() for worker in workers] == [
            "ready",
            "ready",
        ]
        result = []
        for worker in workers:
            worker.stdin.write("\n")
            worker.stdin.flush()
            result.append(json.loads(worker.stdout.readline()))
        return result
    finally:
        for worker in workers:
            worker.communicate(timeout=300)
