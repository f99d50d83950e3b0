"""Which GPUs a session may use, and which worker gets which."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_kbrel.plugin import gpus
from pytest_kbrel.plugin.gpus import DEVICES, deal_gpus, visible_gpus


def dealt(
    workers: int, *, device: str = "auto", each: int | None = 0, env: dict[str, str] | None = None
) -> list[Any]:
    specs = [SimpleNamespace(env=dict(env or {})) for _ in range(workers)]
    deal_gpus(specs, device, each)
    return [spec.env.get(DEVICES) for spec in specs]


@pytest.mark.parametrize(
    ("listed", "settings", "result"),
    [
        ("4,5", {}, ["4", "5", "4"]),
        ("4,5", {"device": "cuda"}, ["4", "5", "4"]),
        ("4,5", {"device": "cpu"}, [None, None, None]),
        ("", {}, [None, None, None]),
        ("", {"each": 2}, [None, None, None]),
        ("4,5,6", {"each": 1}, ["4", "5", "6"]),
        ("4,5,6,7,8,9", {"each": 2}, ["4,5", "6,7", "8,9"]),
        ("4,5,6,7,8,9,10", {"each": 2}, ["4,5", "6,7", "8,9"]),
        ("4,5,6,7,8,9,10", {"each": None}, ["4,5", "6,7", "8,9"]),
        ("4,5", {"each": None}, ["4", "5", "4"]),
        ("", {"each": None}, [None, None, None]),
        ("4,5", {"env": {DEVICES: "9"}}, ["9", "9", "9"]),
    ],
)
def test_three_workers_are_dealt_gpus(
    monkeypatch: pytest.MonkeyPatch, listed: str, settings: dict[str, Any], result: list[str | None]
) -> None:
    monkeypatch.setenv(DEVICES, listed)
    assert dealt(3, **settings) == result


@pytest.mark.parametrize(("gpus", "each", "workers", "most"), [("0,1", 1, 3, 2), ("0,1,2", 2, 2, 1)])
def test_workers_that_need_more_gpus_than_there_are_are_refused(
    monkeypatch: pytest.MonkeyPatch, gpus: str, each: int, workers: int, most: int
) -> None:
    monkeypatch.setenv(DEVICES, gpus)
    dealt(most, each=each)
    with pytest.raises(
        pytest.UsageError, match=rf"^-n {workers}: .* takes {each} GPU.* allowed is -n {most} at"
    ):
        dealt(workers, each=each)


@pytest.mark.parametrize(
    ("listed", "result"), [("0", ["0"]), (" 2 ,GPU-5f3a,, ", ["2", "GPU-5f3a"]), ("", []), (" ", [])]
)
def test_the_callers_own_list_holds(monkeypatch: pytest.MonkeyPatch, listed: str, result: list[str]) -> None:
    monkeypatch.setenv(DEVICES, listed)
    monkeypatch.setattr(gpus.shutil, "which", lambda name: pytest.fail("nobody is to be asked"))
    assert visible_gpus() == result


def test_without_a_list_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEVICES, raising=False)
    listing = "GPU 0: NVIDIA H100 (UUID: GPU-a)\nGPU 1: NVIDIA H100 (UUID: GPU-b)\nMIG 1g.10gb Device 0:\n"
    monkeypatch.setattr(gpus.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(gpus.subprocess, "run", lambda line, **how: SimpleNamespace(stdout=listing))
    assert visible_gpus() == ["0", "1"]
    for error in (OSError(), subprocess.CalledProcessError(9, "x"), subprocess.TimeoutExpired("x", 30)):

        def fail(line: Any, error: Exception = error, **how: Any) -> None:
            raise error

        monkeypatch.setattr(gpus.subprocess, "run", fail)
        assert visible_gpus() == []
    monkeypatch.setattr(gpus.shutil, "which", lambda name: None)
    assert visible_gpus() == []


def test_a_number_that_no_workers_gpu_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEVICES, "4,5")
    message = r"^--kb-device: found cuda:1; with -n 2 each worker sees 1 of 2 GPU\(s\) as cuda:0"
    with pytest.raises(pytest.UsageError, match=message):
        dealt(2, device="cuda:1")
    assert dealt(2, device="cuda:0") == ["4", "5"]
    assert dealt(1, device="cuda:1", each=2) == ["4,5"]
    # Who says which GPUs a worker sees knows their numbers.
    assert dealt(2, device="cuda:1", env={DEVICES: "0,1"}) == ["0,1", "0,1"]


@pytest.mark.slow
def test_workers_get_gpus_in_turn_from_the_list_of_their_user(pytester, monkeypatch):
    monkeypatch.setenv(DEVICES, "2,3")
    pytester.makepyfile(
        """
        import os, pytest, time

        @pytest.mark.parametrize("n", range(6))
        def test_seen(n, worker_id):
            time.sleep(0.1)
            open(f"seen-{worker_id}", "w").write(os.environ["CUDA_VISIBLE_DEVICES"])
        """
    )
    (pytester.path / "mute.yaml").write_text("default: {text: ''}")
    assert pytester.runpytest_subprocess("-n3", "--kb-model=scripted/mute.yaml").ret == 0
    seen = {path.name: path.read_text() for path in pytester.path.glob("seen-*")}
    assert seen == {"seen-gw0": "2", "seen-gw1": "3", "seen-gw2": "2"}
