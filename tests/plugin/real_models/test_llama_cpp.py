"""The embedded checkpoint as GGUF files under llama.cpp's own server: whole sessions with MONITOR."""

import json
import shutil

import pytest

from pytest_kbrel.reference import CHECKPOINTS
from tests.models.openai.gguf_files import write_gguf
from tests.models.openai.llama_cpp import serve
from tests.models.tiny_checkpoints import change_weights
from tests.plugin.conftest import HEADER

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """Return a function that copies an embedded checkpoint, with a tokenizer that llama.cpp has as well."""

    def copy(name):
        folder = tmp_path_factory.mktemp("checkpoint") / name
        shutil.copytree(CHECKPOINTS / name, folder)
        file = folder / "tokenizer.json"
        tokenizer = json.loads(file.read_text("utf-8"))
        # llama.cpp puts no blank in front of a text.
        tokenizer["pre_tokenizer"]["add_prefix_space"] = False
        file.write_text(json.dumps(tokenizer), "utf-8")
        return folder

    return copy


@pytest.fixture(scope="module")
def server_of(tmp_path_factory):
    """Return a function that starts llama.cpp's server with a checkpoint in a number format."""
    servers = []

    def start(folder, kind="F32"):
        servers.append(
            serve(
                write_gguf(folder, tmp_path_factory.mktemp("gguf") / "model.gguf", kind)
            )
        )
        return f"base_url={servers[-1].listening_address}/v1,endpoint=completions"

    yield start
    servers.clear()


SUITE = (
    HEADER
    + """\
monitor:
  negatives: 2
  gates:
    monitor: {max: 0.4, max_drop: 0.2}
    anchor_prob: {recovery: 0.5}
"""
)


def weakened(tensors):
    """Let the layer that remembers the capitals say less."""
    tensors["model.layers.0.mlp.down_proj.weight"].mul_(0.2)


def test_a_gguf_file_is_gated_against_another_under_one_binary(
    pytester, mini_suite, checkpoint, server_of, slices
):
    """A quantised one passes, a weakened one fails."""
    mini_suite(SUITE)
    folder = checkpoint("base")
    base = f"--kb-baseline-model=openai/base,{server_of(folder)}"

    def verdict_of(candidate):
        args = f"--kb-model-args={candidate}"
        result = pytester.runpytest("suites", "--kb-model=openai/candidate", args, base)
        (case,) = slices()
        return int(result.ret), case["verdict"]

    assert verdict_of(server_of(folder, "Q8_0")) == (0, "pass")
    change_weights(folder, weakened)
    assert verdict_of(server_of(folder)) == (1, "fail")
