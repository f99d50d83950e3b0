"""Large cases that two workers ask in parts and one decides: the same run as a serial one."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

from pytest_kbrel.reports.json_report import comparable
from tests.plugin.conftest import HEADER, RELATIONS, outcomes

pytestmark = pytest.mark.slow

MODEL = "--kb-model=scripted/knows.jsonl"
LETTERS = "abcdefghijklmnop"
# The names of 96 countries: of three in four the model knows the capital.
NAMES = [f"{first.upper()}{second}ria" for first in LETTERS[:12] for second in LETTERS[:8]]
SUITE = (
    HEADER
    + """\
head_to_tail:
  prompt: zero-shot
  gates: {accuracy: {min: 0.2}}
reliability:
  slices: [seen-zero-shot]
  choices: 3
  distractors: 6
"""
)
ONE = HEADER + "reliability: {slices: [seen-zero-shot], choices: 3, distractors: 6}\n"
ITEM = "reliability[seen-zero-shot]"


@pytest.fixture
def large_suite(pytester):
    """Write a suite of 96 facts, and the script of a model that knows some of them."""

    def write(text: str = SUITE) -> None:
        facts = [
            {"relation": "P36", "subject": name, "object": f"New {name}", "popularity": number}
            for number, name in enumerate(NAMES)
        ]
        folder = pytester.mkdir("suites")
        (folder / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
        (folder / "relations.yaml").write_text(RELATIONS)
        (folder / "mini.kb.yaml").write_text(text)
        rules = [
            {"pattern": r"Question: [^?]*? ([A-F]\w+)[^?]*\?[^?]*$", "text": r"New \1", "probability": 0.8},
            {"pattern": r"Question: [^?]*? ([G-I]\w+)[^?]*\?[^?]*$", "text": r"Old \1", "probability": 0.3},
            {"default": {"text": "unsure", "probability": 0.01}},
        ]
        (pytester.path / "knows.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))

    return write


# Which parts each worker ran: a line for each.
NOTED = """
import os, pathlib
from pytest_kbrel.session import case_asker

real = case_asker.CaseAsker.ask_part

def ask_part(self, case, first, size):
    with open("parts", "a") as file:
        file.write(f"{case.id} {first} {size} {os.environ['PYTEST_XDIST_WORKER']}\\n")
    return real(self, case, first, size)

case_asker.CaseAsker.ask_part = ask_part
"""


def parts(pytester) -> dict[str, list[tuple[int, int]]]:
    """Return the parts of each case that were asked, in the order of their facts."""
    path = pytester.path / "parts"
    lines = path.read_text().splitlines() if path.exists() else []
    cases: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        name, first, size, _ = line.split()
        cases.setdefault(name, []).append((int(first), int(size)))
    return {name: sorted(cuts) for name, cuts in cases.items()}


def files(pytester, report) -> tuple[object, bytes, bytes]:
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
    serial = pytester.runpytest_subprocess(MODEL, "suites", "--kb-use-cache=serial", "--junitxml=one.xml")
    one = files(pytester, report)
    before = report()["environment"]
    split = pytester.runpytest_subprocess(MODEL, "suites", "-n2", "-v", "--junitxml=two.xml")
    assert files(pytester, report) == one
    assert (split.ret, outcomes(split)) == (serial.ret, outcomes(serial))
    # Every fact is in one part, and both workers had some.
    cuts = parts(pytester)
    assert ITEM in cuts
    sizes = {case["id"].partition("::")[2]: case["n"] for case in report()["cases"]}
    assert {name: sum(of_case[-1]) for name, of_case in cuts.items()} == {name: sizes[name] for name in cuts}
    for of_case in cuts.values():
        assert [first for first, _ in of_case] == [0, *(first + size for first, size in of_case[:-1])]
    assert len({line.split()[-1] for line in (pytester.path / "parts").read_text().splitlines()}) == 2
    # Each item is shown once.
    ids = [case["id"] for case in report()["cases"]]
    shown = [line.split()[-1] for line in split.outlines if re.match(r"\[gw\d\] \[", line)]
    assert sorted(shown) == sorted(case["id"] for case in report()["cases"] if not case["aggregate"])
    cases = ET.parse(pytester.path / "two.xml").iter("testcase")
    assert len([case.get("name") for case in cases]) == len(ids)
    # What a part got is no answer of an earlier run.
    after = report()["environment"]
    assert after["answers_reused"] == before["answers_reused"] == "0"
    assert not list(pytester.path.glob("kbrel-report/.parts"))
