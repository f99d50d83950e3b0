from __future__ import annotations

import pytest

from pytest_kbrel.plugin.xdist import DEVICES, visible_gpus
from tests.plugin.conftest import GATE

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


def test_gpus_are_entries_of_the_callers_own_list(monkeypatch):
    monkeypatch.setenv(DEVICES, "2,GPU-5f3a")
    assert visible_gpus() == ["2", "GPU-5f3a"]
    monkeypatch.setenv(DEVICES, "")
    assert visible_gpus() == []


@pytest.mark.slow
def test_workers_get_gpus_in_turn_and_keep_what_their_user_chose(pytester, monkeypatch):
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
