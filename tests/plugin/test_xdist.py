"""Sessions over pytest-xdist workers: their models, and workers that die."""

import json
from pathlib import Path

import pytest
from execnet.xspec import XSpec

from pytest_kbrel.plugin.activation import Distribution, may_share
from tests.made_cases import made_options
from tests.plugin.conftest import GATE, GATED, MODEL
from tests.stub_config import StubConfig

# No GPU is needed where nothing is asked.
REPLAY = made_options(from_run=Path("run"))


@pytest.mark.parametrize(
    ("given", "others", "shares"),
    [
        ({}, {}, True),
        ({}, {"maxfail": 1}, False),
        ({}, {"dist": "loadfile"}, False),
        ({"until_decided": "all"}, {}, False),
        ({"from_run": Path("run")}, {}, False),
        ({"model": "answers/some.jsonl"}, {}, False),
    ],
)
def test_which_sessions_share_cases(tmp_path, given, others, shares):
    settings = made_options(**{"use_cache": tmp_path, **given})
    config = StubConfig(tmp_path, others={"dist": "load", **others})
    assert may_share(config, settings) == shares


@pytest.mark.parametrize("spec", ["ssh=node", "popen//chdir=there"])
def test_workers_elsewhere_are_refused_and_shards_are_named(spec):
    distribution = Distribution(None, REPLAY, None)
    with pytest.raises(pytest.UsageError, match=r"--tx .*--kb-shard=I/N"):
        distribution.pytest_xdist_setupnodes(None, [XSpec(spec)])


KILL = """
import os, pathlib

def pytest_runtest_call(item):
    if item.name == {name!r} and not pathlib.Path("killed").exists():
        pathlib.Path("killed").touch()
        os._exit(3)
"""


def test_a_killed_worker_leaves_a_red_run_that_names_the_item(
    pytester, mini_suite, report
):
    name = "reliability[unseen-zero-shot]"
    mini_suite()
    pytester.makeconftest(KILL.format(name=name))
    result = pytester.runpytest(*GATE, "-n2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [f"FAILED suites/mini.kb.yaml::{name.replace('[', '?').replace(']', '?')}*"]
    )
    actual = report()
    verdicts = {case["id"].split("::")[1]: case["verdict"] for case in actual["cases"]}
    assert verdicts[name] == "invalid"
    assert len(verdicts) == 9
    assert actual["complete"] is False
    assert actual["exit_status"] == 1


DIES_AT = """
import os

def pytest_runtest_protocol(item):
    # Before anything says that the item has begun.
    if "PYTEST_XDIST_WORKER" in os.environ and "plain" in item.name:
        os._exit(3)
"""


@pytest.mark.parametrize("dist", ["load", "loadfile"])
def test_a_worker_that_dies_at_an_ordinary_test_leaves_a_red_run(
    pytester, mini_suite, report, dist
):
    mini_suite(GATED)
    pytester.makeconftest(DIES_AT)
    pytester.makepyfile(test_plain="def test_plain():\n    assert False")
    result = pytester.runpytest(
        MODEL, "-n2", f"--dist={dist}", "--max-worker-restart=0"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED, result.stdout.str()
    result.stdout.fnmatch_lines(["FAILED test_plain.py::test_plain*"])
    assert report()["cases"]


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
    result.stdout.fnmatch_lines(
        ["FAILED suites/mini.kb.yaml::monitor?P36?*no report arrived*"]
    )


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


ITEM = "head_to_tail[places-head]"
DIE = {
    "exit": "os._exit(0)",
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "os.kill(os.getpid(), signal.SIGSEGV)",
}
MOMENTS = {
    "while collecting": "def pytest_collection_modifyitems(session):\n    die()",
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
        assert (result.ret, actual["summary"]["verdict"], actual["complete"]) == (
            0,
            "pass",
            True,
        ), printed
        lines = (
            (pytester.path / "kbrel-report" / "responses.jsonl")
            .read_bytes()
            .splitlines()
        )
        assert len({json.loads(line)["case"] for line in lines}) == 6
        return
    assert result.ret != pytest.ExitCode.OK, printed
    assert actual["summary"]["verdict"] == "invalid"
    assert not actual["complete"] or actual["problems"]
    assert not (pytester.path / "baselines").exists()
