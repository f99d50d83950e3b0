"""Sessions over pytest-xdist workers: their GPUs, their models, and workers that die."""

from __future__ import annotations

import json
import signal
import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_kbrel.plugin import xdist
from pytest_kbrel.plugin.xdist import DEVICES, Distribution, visible_gpus
from tests.plugin.conftest import GATE, MODEL

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
    listing = "GPU 0: NVIDIA H100 (UUID: GPU-a)\nGPU 1: NVIDIA H100 (UUID: GPU-b)\nMIG 1g.10gb Device 0:\n"
    monkeypatch.setattr(xdist.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(xdist.subprocess, "run", lambda line, **how: SimpleNamespace(stdout=listing))
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
    message = r"^--kb-device: found cuda:1; with -n 2 each worker sees 1 of 2 GPU\(s\) as cuda:0"
    with pytest.raises(pytest.UsageError, match=message):
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


KILL = """
import os, pathlib

def pytest_runtest_call(item):
    if item.name == {name!r} and not pathlib.Path("killed").exists():
        pathlib.Path("killed").touch()
        os._exit(3)
"""


@pytest.mark.parametrize(
    "name", ["monitor[P36]", pytest.param("reliability[unseen-zero-shot]", marks=pytest.mark.slow)]
)
def test_a_killed_worker_leaves_a_red_run_that_names_the_item(pytester, mini_suite, report, name):
    mini_suite()
    pytester.makeconftest(KILL.format(name=name))
    result = pytester.runpytest(*GATE, "-n2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"FAILED suites/mini.kb.yaml::{name.replace('[', '?').replace(']', '?')}*"])
    actual = report()
    verdicts = {case["id"].split("::")[1]: case["verdict"] for case in actual["cases"]}
    assert verdicts[name] == "invalid"
    assert len(verdicts) == 9
    assert actual["complete"] is False
    assert actual["exit_status"] == 1


def test_an_item_whose_report_is_lost_makes_the_run_red(pytester, mini_suite):
    mini_suite()
    pytester.makeconftest(
        """
        def pytest_runtest_protocol(item):
            return True if item.name == "monitor[P36]" else None
        """
    )
    result = pytester.runpytest(*GATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED suites/mini.kb.yaml::monitor?P36?*no report arrived*"])


@pytest.mark.slow
def test_every_worker_loads_the_model_once(pytester, mini_suite):
    mini_suite()
    pytester.makeconftest(
        """
        import os, pathlib
        from pytest_kbrel.models import scripted

        real = scripted.load

        def load(*args, **kwargs):
            with open(f"loads-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}", "a") as file:
                file.write("x")
            return real(*args, **kwargs)

        scripted.load = load
        """
    )
    assert pytester.runpytest_subprocess(*GATE, "-n2").ret == 0
    loads = {path.name: path.read_text() for path in pytester.path.glob("loads-*")}
    assert loads == {"loads-gw0": "x", "loads-gw1": "x"}


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


ITEM = "head_to_tail[places-head]"
DIE = {
    "exit": "os._exit(0)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
}
MOMENTS = {
    "while collecting": "def pytest_collection_finish(session):\n    die()",
    "in front of a case": f"def pytest_runtest_setup(item):\n    if item.name == {ITEM!r}: die()",
    "as a case begins": f"def pytest_runtest_call(item):\n    if item.name == {ITEM!r}: die()",
    "as a case ends": f"""\
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    yield
    if item.name == {ITEM!r}: die()""",
    "behind a case": f"def pytest_runtest_teardown(item):\n    if item.name == {ITEM!r}: die()",
    "as the session ends": "def pytest_sessionfinish(session):\n    die()",
}
# Another worker takes its place before anything is asked; or all its cases have been told.
UNHARMED = ("while collecting", "as the session ends")
CONFTEST = """\
import os, pathlib, signal
import pytest

def die():
    # The first worker that comes here dies, its successor does not.
    if "PYTEST_XDIST_WORKER" in os.environ:
        try:
            os.close(os.open("died", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        {how}

{when}
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", DIE)
@pytest.mark.parametrize("when", MOMENTS)
def test_a_worker_that_dies(pytester, mini_suite, report, when, how):
    mini_suite()
    pytester.makeconftest(CONFTEST.format(how=DIE[how], when=MOMENTS[when]))
    result = pytester.runpytest(MODEL, "suites", "-n2", "--kb-baseline-update=prod")
    assert (pytester.path / "died").exists()
    printed = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in printed
    actual = report()
    # Of nine cases none is missing, whoever decided it.
    assert len(actual["cases"]) == 9
    if when in UNHARMED:
        assert (result.ret, actual["summary"]["verdict"], actual["complete"]) == (0, "pass", True), printed
        lines = (pytester.path / "kbrel-report" / "responses.jsonl").read_bytes().splitlines()
        assert len({json.loads(line)["case"] for line in lines}) == 6
        return
    assert result.ret != pytest.ExitCode.OK, printed
    assert actual["summary"]["verdict"] == "invalid"
    assert not actual["complete"] or actual["problems"]
    assert not (pytester.path / "baselines").exists()
