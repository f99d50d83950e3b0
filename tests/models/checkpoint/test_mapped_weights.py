"""Weights on a CPU are pages of their file: processes that load a checkpoint share one copy of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.tiny_checkpoints import make_checkpoint

ROOT = Path(__file__).parents[2]
# Two processes load, ask, and each looks at its memory once the other has asked as well.
WORKERS = """\
import json, multiprocessing, os, re, sys
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.records import GenerateRequest, ScoreRequest

both = multiprocessing.get_context("fork").Barrier(2)
child = os.fork()
model = load(parse_spec(sys.argv[1]), threads=1)
assert model.score([ScoreRequest(prompt="Paris is", continuation=" the")])[0].probabilities
assert model.generate([GenerateRequest(prompt="Paris is", max_new_tokens=4)])[0].token_ids
both.wait(300)
pages, ranges, ours = {}, [], False
for line in open("/proc/self/smaps"):
    if place := re.match("([0-9a-f]+)-([0-9a-f]+) ", line):
        ours = line.rstrip().endswith("/model.safetensors")
        ranges += [(int(place[1], 16), int(place[2], 16))] if ours else []
    elif ours and line.split()[-1] == "kB":
        name, size = line.split()[:2]
        pages[name] = pages.get(name, 0) + 1024 * int(size)
outside = [
    name for name, weights in model.parts.model.named_parameters()
    if not any(start <= weights.data_ptr() < end for start, end in ranges)
]
both.wait(300)
if child:
    os.waitpid(child, 0)
print(json.dumps({"pages": pages, "outside": outside}), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(
    not Path("/proc/self/smaps").exists(), reason="memory is looked at by Linux's /proc"
)
@pytest.mark.slow
def test_two_processes_share_one_copy_of_the_weights(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "checkpoint")
    size = (folder / "model.safetensors").stat().st_size
    done = subprocess.run(
        [sys.executable, "-c", WORKERS, str(folder)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == 2
    for result in results:
        assert result["outside"] == []
        pages = result["pages"]
        assert pages["Rss:"] >= 0.9 * size
        # Copied when they were written to.
        assert pages["Anonymous:"] == 0
        # A page that two processes have counts half for each.
        assert pages["Pss:"] <= 0.6 * pages["Rss:"]
