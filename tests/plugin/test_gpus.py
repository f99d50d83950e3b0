"""Which GPUs a session may use, and which worker gets which."""

import os
import subprocess
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from pytest_kbrel.plugin import activation, pytest_xdist_auto_num_workers
from pytest_kbrel.plugin.activation import DEVICES, deal_gpus, visible_gpus


def dealt(workers, *, device="auto", each=0, env=None):
    specs = [
        SimpleNamespace(popen=True, via=None, env=dict(env or {}))
        for _ in range(workers)
    ]
    deal_gpus(specs, device, each)
    return [spec.env.get(DEVICES) for spec in specs]


@pytest.mark.parametrize(
    ("listed", "settings", "result"),
    [
        ("4,5", {}, ["4", "5", "4"]),
        ("4,5", {"device": "cpu"}, [None, None, None]),
        ("4,5,6", {"each": 1}, ["4", "5", "6"]),
        ("4,5,6,7,8,9,10", {"each": 2}, ["4,5", "6,7", "8,9"]),
        ("4,5,6,7,8,9,10", {"each": None}, ["4,5", "6,7", "8,9"]),
        ("4,5", {"env": {DEVICES: "9"}}, ["9", "9", "9"]),
    ],
)
def test_three_workers_are_dealt_gpus(monkeypatch, listed, settings, result):
    monkeypatch.setenv(DEVICES, listed)
    assert dealt(3, **settings) == result


@pytest.fixture
def eight_gpus(pytester, monkeypatch):
    """Put an nvidia-smi on PATH that tells of eight GPUs."""
    tool = pytester.path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(
        '#!/bin/sh\nfor n in 0 1 2 3 4 5 6 7; do echo "GPU $n: H100 (UUID: GPU-$n)"; done\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
    monkeypatch.delenv(DEVICES, raising=False)
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "")


def workers_of(pytester, *args):
    """Return how many workers -n auto starts with these arguments."""
    config = pytester.parseconfig("-n", "auto", *args)
    return config.hook.pytest_xdist_auto_num_workers(config=config)


@pytest.mark.parametrize("word", ["auto", "logical"])
@pytest.mark.parametrize(
    ("listed", "flags", "count"),
    [
        (None, ["--kb-model=reference"], 8),
        (None, ["--kb-model=reference", "--kb-gpus-per-worker=2"], 4),
        (None, ["--kb-model=reference", "--kb-gpus-per-worker=9"], 1),
        (
            None,
            ["--kb-model=vllm/reference", "--kb-model-args=tensor_parallel_size=4"],
            2,
        ),
        (
            None,
            [
                "--kb-model=reference",
                "--kb-model-args=parallelize=True",
                "--kb-gpus-per-worker=2",
            ],
            4,
        ),
        ("3,5", ["--kb-model=reference"], 2),
        ("GPU-5f3a,GPU-99b1,MIG-3", ["--kb-model=reference"], 3),
    ],
)
def test_as_many_workers_are_started_as_there_are_gpus_for(
    pytester, eight_gpus, monkeypatch, word, listed, flags, count
):
    if listed is not None:
        monkeypatch.setenv(DEVICES, listed)
    assert workers_of(pytester, "-n", word, *flags) == count


@pytest.mark.parametrize(
    "flags", [["--kb-model=reference", "--kb-device=cpu"], ["--kb-model=openai/x"]]
)
def test_without_a_model_on_gpus_the_cores_are_counted(pytester, eight_gpus, flags):
    config = pytester.parseconfig("-n", "auto", *flags)
    assert pytest_xdist_auto_num_workers(config) is None


def test_a_projects_other_tests_and_its_own_number_keep_xdists_count(
    pytester, eight_gpus, monkeypatch
):
    monkeypatch.setenv("KB_MODEL", "reference")
    pytester.makepyfile("def test_one(): pass")
    monkeypatch.setattr(
        activation, "visible_gpus", lambda device: pytest.fail("nobody is to be asked")
    )
    assert workers_of(pytester)
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "5")
    assert workers_of(pytester, "--kb-model=reference") == 5


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["-n1", "--kb-gpus-per-worker=1", "--kb-device=cpu"],
            "found 1 GPU(s), and none can be used (--kb-device=cpu",
        ),
        (
            ["-n2", "--kb-gpus-per-worker=2", "--kb-model-args=tensor_parallel_size=4"],
            "--kb-gpus-per-worker: found 2, and tensor_parallel_size=4 splits the model over 4 GPUs",
        ),
    ],
)
def test_what_the_gpus_are_not_enough_for_is_refused(
    pytester, eight_gpus, flags, words
):
    spec = "vllm/reference" if any("tensor" in flag for flag in flags) else "reference"
    (pytester.path / "vllm.py").touch()
    pytester.syspathinsert()
    result = pytester.runpytest(f"--kb-model={spec}", *flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert words in " ".join(result.stderr.str().split())


def test_without_a_list_the_driver_is_asked(monkeypatch):
    monkeypatch.delenv(DEVICES, raising=False)
    listing = "GPU 0: NVIDIA H100 (UUID: GPU-a)\nGPU 1: NVIDIA H100 (UUID: GPU-b)\nMIG 1g.10gb Device 0:\n"
    monkeypatch.setattr(activation.shutil, "which", lambda name: f"/bin/{name}")
    run = Mock(return_value=SimpleNamespace(stdout=listing))
    monkeypatch.setattr(activation.subprocess, "run", run)
    assert visible_gpus() == ["0", "1"]
    for error in (OSError(), subprocess.TimeoutExpired("x", 30)):
        run.side_effect = error
        assert visible_gpus() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "result"),
    [(["-nauto", "--kb-gpus-per-worker=2"], {"seen-gw0": "2,3", "seen-gw1": "4,5"})],
)
def test_workers_get_gpus_in_turn_from_the_list_of_their_user(
    pytester, monkeypatch, flags, result
):
    monkeypatch.setenv(DEVICES, "2,3,4,5")
    pytester.makepyfile(
        """
        import os, pytest, time

        @pytest.mark.parametrize("n", range(6))
        def test_seen(n, worker_id):
            time.sleep(0.1)
            open(f"seen-{worker_id}", "w").write(os.environ["CUDA_VISIBLE_DEVICES"])
        """
    )
    # Nothing asked the model.
    assert pytester.runpytest_subprocess(*flags, "--kb-model=reference").ret == 5
    seen = {path.name: path.read_text() for path in pytester.path.glob("seen-*")}
    assert seen == result
