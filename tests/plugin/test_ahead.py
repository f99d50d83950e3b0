"""Cases that two workers ask together and one decides: the same run as a serial one."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation import model_pool
from pytest_kbrel.models.base import responses_of
from pytest_kbrel.models.scripted import ScriptedModel
from pytest_kbrel.session.case_asker import CaseAsker
from tests.plugin.conftest import HEADER, RELATIONS, one_line, outcomes
from tests.reported import comparable

pytestmark = pytest.mark.slow

MODEL = "--kb-model=scripted/knows.jsonl"
LETTERS = "abcdefghijklmnop"
# The names of 96 countries: of three in four the model knows the capital.
NAMES = [
    f"{first.upper()}{second}ria" for first in LETTERS[:12] for second in LETTERS[:8]
]
SUITE = (
    HEADER
    + """\
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.2}}
reliability:
  slices: [known-zero-shot]
  choices: 3
  distractors: 6
"""
)
ONE = HEADER + "reliability: {slices: [known-zero-shot], choices: 3, distractors: 6}\n"
ITEM = "reliability[known-zero-shot]"


@pytest.fixture
def large_suite(pytester):
    """Write a suite of 96 facts, and the script of a model that knows some of them."""

    def write(text=SUITE):
        facts = [
            {
                "relation": "P36",
                "subject": name,
                "object": f"New {name}",
                "popularity": number,
            }
            for number, name in enumerate(NAMES)
        ]
        folder = pytester.mkdir("suites")
        (folder / "facts.jsonl").write_text(
            "".join(json.dumps(fact) + "\n" for fact in facts)
        )
        (folder / "relations.yaml").write_text(RELATIONS)
        (folder / "mini.kb.yaml").write_text(text)
        rules = [
            {
                "pattern": r"Question: [^?]*? ([A-F]\w+)[^?]*\?[^?]*$",
                "text": r"New \1",
                "probability": 0.8,
            },
            {
                "pattern": r"Question: [^?]*? ([G-I]\w+)[^?]*\?[^?]*$",
                "text": r"Old \1",
                "probability": 0.3,
            },
            {"default": {"text": "unsure", "probability": 0.01}},
        ]
        (pytester.path / "knows.jsonl").write_text(
            "".join(json.dumps(rule) + "\n" for rule in rules)
        )

    return write


# Which units each worker asked: a line for each.
NOTED = """
import contextlib, os, time
from pytest_kbrel.session import units

@contextlib.contextmanager
def noting(store, case, unit):
    with real(store, case, unit) as is_mine:
        if is_mine:
            time.sleep(0.05)
            worker = os.environ["PYTEST_XDIST_WORKER"]
            with open("units", "a") as file:
                file.write(f"{case.partition('::')[2]} {unit.first} {unit.size} {worker}\\n")
        yield is_mine

def pytest_configure(config):
    global real
    if hasattr(config, "workerinput"):
        real, units.claim = units.claim, noting
"""


def units(pytester):
    """Return the units of each case that were asked, in the order of their facts."""
    path = pytester.path / "units"
    lines = path.read_text().splitlines() if path.exists() else []
    cases = {}
    for line in lines:
        name, first, size, _ = line.split()
        cases.setdefault(name, []).append((int(first), int(size)))
    return {name: sorted(cuts) for name, cuts in cases.items()}


def files(pytester, report):
    """Return the report without what two equal runs may differ in, the responses and the outcomes."""
    folder = pytester.path / "kbrel-report"
    return (
        comparable(report()),
        (folder / "responses.jsonl").read_bytes(),
        (folder / "outcomes.jsonl.xz").read_bytes(),
    )


def test_the_run_is_the_serial_one(pytester, large_suite, report):
    large_suite()
    pytester.makeconftest(NOTED)
    flags = (MODEL, "suites", "-v")
    serial = pytester.runpytest(*flags, "--kb-use-cache=serial")
    one = files(pytester, report)
    split = pytester.runpytest(*flags, "-n2", "--junitxml=two.xml")
    assert files(pytester, report) == one
    assert (split.ret, outcomes(split)) == (serial.ret, outcomes(serial))
    # Every fact is in one unit, and both workers had some.
    cuts = units(pytester)
    assert len(cuts[ITEM]) > 2
    cases = report()["cases"]
    sizes = {case["id"].partition("::")[2]: case["n"] for case in cases}
    for name, of_case in cuts.items():
        ends = [first + size for first, size in of_case]
        assert [first for first, _ in of_case] == [0, *ends[:-1]]
        assert ends[-1] == sizes[name]
    lines = (pytester.path / "units").read_text().splitlines()
    assert len({line.split()[-1] for line in lines}) == 2
    # Each item is shown once.
    shown = [
        line.split()[-1] for line in split.outlines if re.match(r"\[gw\d\] \[", line)
    ]
    assert sorted(shown) == [case["id"] for case in cases if not case["aggregate"]]
    assert len(list(ET.parse(pytester.path / "two.xml").iter("testcase"))) == len(cases)
    # What a unit got is no answer of an earlier run.
    assert report()["environment"]["answers_reused"] == "0"
    assert not list(pytester.path.glob("kbrel-report/.parts"))


@pytest.mark.parametrize("broken", [False, True])
def test_cases_in_shared_calls_are_those_in_calls_of_their_own(
    pytester, large_suite, report, monkeypatch, broken
):
    large_suite()
    calls, prepare = [], CaseAsker._prepare

    def asked(model, requests):
        calls.append(len(requests))
        return responses_of(model, requests)

    def prepared(asker, case):
        if broken and case.slice.endswith("torso"):
            raise KbrelError("no examples")
        return prepare(asker, case)

    monkeypatch.setattr(model_pool, "responses_of", asked)
    monkeypatch.setattr(CaseAsker, "_prepare", prepared)
    runs = []
    for name in ("own", "shared"):
        monkeypatch.setattr(ScriptedModel, "pools_cases", name == "shared")
        result = pytester.runpytest(MODEL, "suites", f"--kb-use-cache={name}")
        runs.append((outcomes(result), files(pytester, report)))
        calls.append(0)
    assert runs[0] == runs[1]
    own, shared = calls.index(0), len(calls) - calls.index(0) - 2
    # Of three cases of a probe the first is asked by itself, and an error of one leaves each to itself.
    assert shared == own - (not broken)


# Notes what the model is asked, and kills a worker that has just stored some answers of a unit.
KILLED = """
import os, pathlib, signal
from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.models.scripted import ScriptedModel
from pytest_kbrel.session.case_asker import CaseAsker

claimed = []

def noting(method):
    def noted(self, requests):
        with open("put", "a") as file:
            file.writelines(f"{request!r}\\n" for request in requests)
        return method(self, requests)
    return noted

claim, put = CaseAsker._claim, Store.put

def claiming(self, *arguments):
    claimed.append(True)
    claim(self, *arguments)
    claimed.clear()

def killing(self, answers, *arguments, **more):
    put(self, answers, *arguments, **more)
    if claimed:
        if ONCE:
            try:
                os.close(os.open("died", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return
        os.kill(os.getpid(), signal.SIGKILL)

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        ScriptedModel.generate = noting(ScriptedModel.generate)
        ScriptedModel.score = noting(ScriptedModel.score)
        CaseAsker._claim, Store.put = claiming, killing
"""


def test_what_a_killed_worker_was_told_is_not_put_to_the_model_again(
    pytester, large_suite, report
):
    large_suite(ONE)
    assert pytester.runpytest(MODEL, "suites", "--kb-use-cache=serial").ret == 0
    one = files(pytester, report)
    pytester.makeconftest(f"ONCE = True\n{KILLED}")
    split = pytester.runpytest(MODEL, "suites", "-n2", "--junitxml=two.xml")
    assert (pytester.path / "died").exists()
    assert len(list(ET.parse(pytester.path / "two.xml").iter("testcase"))) == 1
    assert split.ret == 0, split.stdout.str()
    split.stdout.fnmatch_lines(["replacing crashed worker gw?"])
    assert files(pytester, report) == one
    lines = (pytester.path / "put").read_text().splitlines()
    assert len(lines) == len(set(lines))


def test_a_case_fails_at_whose_units_workers_die(pytester, large_suite, report):
    large_suite(ONE)
    pytester.makeconftest(f"ONCE = False\n{KILLED}")
    flags = (MODEL, "suites", "-n2", "--max-worker-restart=40")
    result = pytester.runpytest(*flags)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "2 workers died while they asked facts 1 to " in one_line(result)
    assert outcomes(result)["failed"] == 1
    verdicts = {
        case["id"].partition("::")[2]: case["verdict"] for case in report()["cases"]
    }
    assert verdicts[ITEM] == "invalid"


PLAIN = """
import pytest

@pytest.fixture(scope="module")
def costly():
    with open("costly", "a") as file:
        file.write("x")

@pytest.mark.parametrize("number", range(8))
def test_plain(number, costly):
    assert number != 5
"""


def test_beside_ordinary_tests_and_at_the_first_failure(pytester, large_suite, cases):
    large_suite(ONE)
    pytester.makeconftest(NOTED)
    pytester.makepyfile(test_plain=PLAIN)
    result = pytester.runpytest(MODEL, "-n2")
    assert outcomes(result) == {"passed": 8, "failed": 1}
    assert cases()[ITEM]["verdict"] == "pass"
    assert list(units(pytester)) == [ITEM]
    # Once for each worker, and once more where the item came in between.
    assert len((pytester.path / "costly").read_text()) <= 4
    (pytester.path / "units").unlink()
    assert pytester.runpytest(MODEL, "-n2", "-x", "--kb-use-cache=another").ret != 0
    assert units(pytester) == {}


ORDINARY = """
import pytest

def expect_ordinary(item):
    assert item.function.__name__ in ("reliability", "check_slice", "test_beside")
    assert (item.cls, item.originalname, item.fixturenames) is not None
    assert item.get_closest_marker("mine").args == (item.name,)

def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.mine(item.name))

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    expect_ordinary(item)
    yield

@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    expect_ordinary(item)
    return (yield)

def pytest_runtest_teardown(item, nextitem):
    expect_ordinary(item)
    if nextitem is not None:
        expect_ordinary(nextitem)
"""


def test_hooks_that_expect_ordinary_items_see_no_other(pytester, large_suite):
    large_suite(ONE)
    pytester.makeconftest(ORDINARY)
    (pytester.path / "test_beside.py").write_text("def test_beside():\n    pass\n")
    pytester.makefile(".ini", pytest="[pytest]\n")
    result = pytester.runpytest(MODEL, "suites", "test_beside.py", "-n2", "-Wignore")
    assert "INTERNALERROR" not in result.stdout.str()
    assert outcomes(result) == {"passed": 2}
