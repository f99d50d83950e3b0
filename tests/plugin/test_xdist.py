"""Which worker gets which GPU, decided on specs of workers that are never started."""

from __future__ import annotations

import signal
import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_kbrel.plugin import xdist
from pytest_kbrel.plugin.xdist import Distribution, visible_gpus

VISIBLE = "CUDA_VISIBLE_DEVICES"


def dealt(
    workers: int, *, device: str = "auto", each: int | None = 0, env: dict[str, str] | None = None
) -> list[Any]:
    specs = [SimpleNamespace(env=dict(env or {})) for _ in range(workers)]
    Distribution(cast(Any, None), device, each).pytest_xdist_setupnodes(cast(Any, None), specs)
    return [spec.env.get(VISIBLE) for spec in specs]


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
        ("4,5", {"env": {VISIBLE: "9"}}, ["9", "9", "9"]),
    ],
)
def test_three_workers_are_dealt_gpus(
    monkeypatch: pytest.MonkeyPatch, listed: str, settings: dict[str, Any], result: list[str | None]
) -> None:
    monkeypatch.setenv(VISIBLE, listed)
    assert dealt(3, **settings) == result


@pytest.mark.parametrize(("gpus", "each", "workers", "most"), [("0,1", 1, 3, 2), ("0,1,2", 2, 2, 1)])
def test_workers_that_need_more_gpus_than_there_are_are_refused(
    monkeypatch: pytest.MonkeyPatch, gpus: str, each: int, workers: int, most: int
) -> None:
    monkeypatch.setenv(VISIBLE, gpus)
    dealt(most, each=each)
    with pytest.raises(
        pytest.UsageError, match=rf"^-n {workers}: .* takes {each} GPU.* allowed is -n {most} at"
    ):
        dealt(workers, each=each)


@pytest.mark.parametrize(
    ("listed", "result"), [("0", ["0"]), (" 2 ,GPU-5f3a,, ", ["2", "GPU-5f3a"]), ("", []), (" ", [])]
)
def test_the_callers_own_list_holds(monkeypatch: pytest.MonkeyPatch, listed: str, result: list[str]) -> None:
    monkeypatch.setenv(VISIBLE, listed)
    monkeypatch.setattr(xdist.shutil, "which", lambda name: pytest.fail("nobody is to be asked"))
    assert visible_gpus() == result


def test_without_a_list_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    said = "GPU 0: NVIDIA H100 (UUID: GPU-a)\nGPU 1: NVIDIA H100 (UUID: GPU-b)\nMIG 1g.10gb Device 0:\n"
    monkeypatch.setattr(xdist.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(xdist.subprocess, "run", lambda line, **how: SimpleNamespace(stdout=said))
    assert visible_gpus() == ["0", "1"]
    for error in (OSError(), subprocess.CalledProcessError(9, "x"), subprocess.TimeoutExpired("x", 30)):

        def fail(line: Any, error: Exception = error, **how: Any) -> None:
            raise error

        monkeypatch.setattr(xdist.subprocess, "run", fail)
        assert visible_gpus() == []
    monkeypatch.setattr(xdist.shutil, "which", lambda name: None)
    assert visible_gpus() == []


def test_a_number_that_no_workers_gpu_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "4,5")
    said = r"^--kb-device: found cuda:1; with -n 2 each worker sees 1 of 2 GPU\(s\) as cuda:0"
    with pytest.raises(pytest.UsageError, match=said):
        dealt(2, device="cuda:1")
    assert dealt(2, device="cuda:0") == ["4", "5"]
    assert dealt(1, device="cuda:1", each=2) == ["4,5"]
    # Who says which GPUs a worker sees knows their numbers.
    assert dealt(2, device="cuda:1", env={VISIBLE: "0,1"}) == ["0,1", "0,1"]


class Workers:
    """xdist's session and its manager of workers, of which one is reached over something else than a pipe."""

    def __init__(self) -> None:
        self.nodemanager, self.EXIT_TIMEOUT = self, 10.0
        self.sent: list[int] = []
        self.ended: list[float] = []
        here = SimpleNamespace(_io=SimpleNamespace(popen=SimpleNamespace(send_signal=self.sent.append)))
        self.group = [here, SimpleNamespace(), here]

    def teardown_nodes(self) -> None:
        self.ended.append(self.EXIT_TIMEOUT)


@pytest.mark.parametrize("interrupt", [True, False])
def test_workers_of_a_session_that_stopped_get_a_second(interrupt: bool) -> None:
    workers = Workers()
    manager = SimpleNamespace(getplugin=lambda name: workers if name == "dsession" else None)
    distribution = Distribution(cast(Any, None), "cpu")
    distribution.stop(interrupt)
    assert not workers.ended
    distribution.pytest_xdist_setupnodes(cast(Any, SimpleNamespace(pluginmanager=manager)), [])
    distribution.stop(interrupt)
    assert workers.sent == ([signal.SIGINT] * 2 if interrupt else [])
    assert workers.ended == [1.0]
