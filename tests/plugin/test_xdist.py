"""Sessions over pytest-xdist workers: their models, and workers that die."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from execnet.xspec import XSpec

from pytest_kbrel.plugin.activation import Distribution, may_share
from tests.made_cases import made_options
from tests.plugin.conftest import (
    GATE,
    GATED,
    INT4,
    MODEL,
    RENAMED,
    SUITE,
    facts_file,
    outcomes,
)
from tests.reported import comparable
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


DIES_AT = """
import os

def pytest_runtest_protocol(item):
    # Before anything says that the item has begun.
    if "PYTEST_XDIST_WORKER" in os.environ and "plain" in item.name:
        os._exit(3)
"""


def test_a_worker_that_dies_at_an_ordinary_test_leaves_a_red_run(
    pytester, mini_suite, report
):
    mini_suite(GATED)
    pytester.makeconftest(DIES_AT)
    pytester.makepyfile(test_plain="def test_plain():\n    assert False")
    result = pytester.runpytest(
        MODEL, "-n2", "--dist=loadfile", "--max-worker-restart=0"
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


# All that cases and tests in Python may come to.
WAIVED = """\
waivers: [{slice: "head_to_tail[places-tail]", owner: A, reason: r, expires: 2999-12-31}]
"""
RICH = SUITE.replace("accuracy: {min: 0.3}", "accuracy: {max: 0.1}") + WAIVED
OWN = """
def test_own(kb_facts, kb_check, kb_model):
    def right(fact):
        return kb_model.ask(f"What is the capital of {fact.subject}?") == fact.object
    kb_check(right, kb_facts("suites/facts.jsonl"), min=0.5, max_drop=0.2)
"""
TESTS = """
def test_bare(kb_model):
    assert kb_model.ask("What is the capital of Norway?") == "Oslo"

def test_broken(kb_model):
    raise OSError("no disk")
"""
LOADS = """
import os
from pytest_kbrel.models import scripted

def load(*args, **kwargs):
    with open(f"loads-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}", "a") as file:
        file.write("x")
    return real(*args, **kwargs)

real, scripted.load = scripted.load, load
"""


@pytest.mark.slow
def test_two_workers_change_nothing(pytester, mini_suite, report, openai_server, judge):
    """Neither verdicts, reports and counts, nor what is asked of models and judges."""
    mini_suite(RICH, facts_file(RENAMED))
    openai_server.say = lambda text: "incorrect" if "Tokyo" in text else "correct"
    pytester.makepyfile(test_own=OWN)
    pytester.runpytest(*GATE, "test_own.py", "--kb-baseline-update=old")
    pytester.makepyfile(test_it=TESTS)
    flags = ("suites", "test_own.py", "test_it.py", "--junitxml=j.xml")
    asking = (INT4, *judge, "--kb-baseline=old", *flags)

    def came_of(result, folder="kbrel-report"):
        files = [
            (pytester.path / folder / name).read_bytes()
            for name in ("responses.jsonl", "outcomes.jsonl.xz")
        ]
        junit = [
            (case.get("name"), [part.tag for part in case], case.findtext("system-out"))
            for case in ElementTree.parse("j.xml").iter("testcase")
        ]
        ended = (result.ret, outcomes(result), sorted(junit))
        return ended, comparable(report(folder)), files

    one = came_of(pytester.runpytest(*asking, "--kb-use-cache=serial"))
    assert {"failed", "passed", "xfailed"} <= {*one[0][1]}
    pytester.makeconftest(LOADS)
    assert came_of(pytester.runpytest_subprocess(*asking, "-n2")) == one
    loads = {path.name: path.read_text() for path in pytester.path.glob("loads-*")}
    assert loads == {"loads-gw0": "x", "loads-gw1": "x"}
    asked = len(openai_server.calls)
    # A recorded run is decided again without a model.
    again = (
        "--kb-from-run=kbrel-report",
        "--kb-output-path=again",
        "--kb-baseline=old",
    )
    result = pytester.runpytest_subprocess(*again, *flags, "-n2")
    assert came_of(result, "again") == one
    assert len(openai_server.calls) == asked > len(RENAMED)


EXPIRED = """\
suite: mini
facts: facts.jsonl
reliability:
  slices: [unseen-zero-shot]
  choices: 2
  unseen: {count: 3, as_of: 2020-01-01, expires: 2021-01-01}
"""


@pytest.mark.slow
def test_what_all_workers_see_is_said_once(pytester, mini_suite, report):
    mini_suite(EXPIRED).with_name("other.kb.yml").write_text(GATED, "utf-8")
    mini_suite("suite: wrong\nfact: typo.jsonl\n", name="wrong")
    kept = pytester.mkdir(".kbrel-cache") / "answers.sqlite"
    kept.write_text("no answers here")
    only = ("-Wignore", "-Wdefault::pytest_kbrel.plugin.collection.KbrelWarning")
    result = pytester.runpytest(*GATE, *only, "-n2")
    # With several workers pytest runs what could be collected.
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    printed = result.stdout.str()
    warnings = [line for line in result.outlines if "KbrelWarning: " in line]
    assert ["other.kb.yml" in line for line in warnings] == [True, False]
    assert "expired on 2021-01-01" in warnings[1]
    assert printed.count("answers are not kept: ") == 1
    assert "wrong.kb.yaml:2: unknown key 'fact'" in printed
    assert "INTERNALERROR" not in printed
    (problem,) = (one for one in report()["problems"] if "be collected" in one)
    assert problem.startswith("suites/wrong.kb.yaml could not be collected: ")


ITEM = "head_to_tail[places-head]"
# How and when.
DEATHS = {
    "while collecting": (
        "os._exit(0)",
        "def pytest_collection_modifyitems(session):\n    die()",
    ),
    "in front of a case": (
        "os.kill(os.getpid(), signal.SIGKILL)",
        f"def pytest_runtest_setup(item):\n    if item.name == {ITEM!r}: die()",
    ),
    "as a case begins": (
        "os.kill(os.getpid(), signal.SIGSEGV)",
        f"def pytest_runtest_call(item):\n    if item.name == {ITEM!r}: die()",
    ),
    "as a case ends": (
        "os._exit(0)",
        f"""\
@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    yield
    if item.name == {ITEM!r}: die()""",
    ),
    "behind a case": (
        "os._exit(3)",
        f"def pytest_runtest_teardown(item):\n    if item.name == {ITEM!r}: die()",
    ),
    "as the session ends": (
        "os.kill(os.getpid(), signal.SIGKILL)",
        "def pytest_sessionfinish(session):\n    die()",
    ),
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
@pytest.mark.parametrize("moment", DEATHS)
def test_a_worker_that_dies(pytester, mini_suite, report, moment):
    how, when = DEATHS[moment]
    mini_suite()
    pytester.makeconftest(CONFTEST.format(how=how, when=when))
    result = pytester.runpytest(MODEL, "suites", "-n2", "--kb-baseline-update=prod")
    assert (pytester.path / "died").exists()
    printed = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in printed
    actual = report()
    # Of nine cases none is missing, whoever decided it.
    assert len(actual["cases"]) == 9
    if moment in UNHARMED:
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
    assert result.ret == actual["exit_status"] == pytest.ExitCode.TESTS_FAILED, printed
    assert f"FAILED suites/mini.kb.yaml::{ITEM}" in printed
    assert actual["summary"]["verdict"] == "invalid"
    assert not actual["complete"] or actual["problems"]
    assert not (pytester.path / "baselines").exists()
