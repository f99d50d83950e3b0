"""Python tests that use kb_check, kb_model and the other fixtures."""

import jsonschema
import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.reports.json_report import schema
from tests.openai_server import Fault
from tests.plugin.conftest import GATE, MODEL, ONE

TESTS = """
import os
import pytest
from pytest_kbrel.records import Case, HeadToTailSettings, Relation

@pytest.mark.parametrize("part", range(3))
def test_capitals(kb_facts, kb_check, part):
    if part == 1 and os.environ.get("CRASH"):
        os._exit(3)
    relation = Relation(id="P36", label="capital", domain="places", frames=("Capital of [X]?",))
    kb_check(Case(
        id=f"capitals{part}", suite="test_it.py", probe="head_to_tail", slice="all", gates=(),
        facts=kb_facts("suites/facts.jsonl")[4 * part : 4 * part + 4], relations=(relation,),
        settings=HeadToTailSettings(),
    ))

def test_other():
    assert not os.environ.get("OTHER")
"""
DENIED = Fault(status=401, message="denied")


@pytest.fixture
def gate(pytester, mini_suite, openai_server, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    mini_suite()
    pytester.makepyfile(test_it=TESTS)
    openai_server.say = lambda text: f"city {len(text)}"
    return (
        "--kb-model=openai/judge",
        f"--kb-model-args=base_url={openai_server.base_url},max_concurrent=1,max_retries=0",
        "test_it.py",
    )


def test_a_test_that_came_to_no_result_is_an_invalid_case(
    pytester, report, openai_server, gate, plugin_args
):
    openai_server.inject(*[Fault()] * 6, *[DENIED] * 40)
    result = pytester.runpytest(*gate, *plugin_args)
    assert result.ret == 1
    actual = report()
    jsonschema.validate(actual, schema())
    assert (actual["summary"]["verdict"], actual["complete"]) == ("invalid", False)
    assert len(actual["cases"]) == 3
    invalid = [case for case in actual["cases"] if case["verdict"] == "invalid"]
    assert all("refuses the key" in case["errors"][0] for case in invalid)
    # They may have been about any probe, or none.
    assert {(case["suite"], case["probe"]) for case in invalid} == {
        ("test_it.py", "test")
    }
    page = (pytester.path / "kbrel-report" / "report.html").read_text()
    assert ">Tests in Python</h3>" in page
    assert "MONITOR" not in page


@pytest.mark.slow
def test_a_test_at_which_its_worker_died_is_an_invalid_case(
    pytester, report, gate, monkeypatch
):
    monkeypatch.setenv("CRASH", "1")
    assert pytester.runpytest_subprocess(*gate, "-n2").ret == 1
    actual = report()
    verdicts = {case["id"]: case["verdict"] for case in actual["cases"]}
    assert verdicts["test_it.py::test_capitals[1]"] == "invalid"
    assert actual["complete"] is False


def test_tests_of_others_that_fail_say_nothing_about_the_model(
    pytester, report, gate, monkeypatch
):
    monkeypatch.setenv("OTHER", "1")
    assert pytester.runpytest(*gate).ret == 1
    assert report()["summary"]["verdict"] == "pass"
    assert len(report()["cases"]) == 3


def test_python_tests_use_the_fixtures(pytester, mini_suite, report):
    mini_suite()
    pytester.makepyfile(
        """
        from pytest_kbrel.records import Case, Gate, HeadToTailSettings, Relation

        def test_capitals(kb_facts, kb_check, kb_model, kb_baseline):
            facts = kb_facts("suites/facts.jsonl")
            frames = ("What is the capital of [X]?",)
            relation = Relation(id="P36", label="capital", domain="places", frames=frames)
            case = Case(
                id="capitals", suite="test_it.py", probe="head_to_tail", slice="all", facts=facts,
                relations=(relation,), settings=HeadToTailSettings(),
                gates=(Gate(metric="accuracy", rule="min", bound=0.0),),
            )
            assert kb_check(case).n == 12
            assert kb_model.describe().architecture
            assert kb_baseline is None
        """
    )
    result = pytester.runpytest(MODEL)
    assert result.ret == 0
    assert report()["summary"]["verdict"] == "pass"


@pytest.mark.parametrize(
    ("probe", "settings", "message"),
    [
        (
            "monitor",
            "HeadToTailSettings",
            "*MonitorSettings; found HeadToTailSettings*",
        ),
        ("monitor", "MonitorSettings", "*at least one of `negatives`*"),
    ],
)
def test_a_case_made_by_hand_that_cannot_be_asked_says_why(
    pytester, mini_suite, probe, settings, message
):
    mini_suite()
    pytester.makepyfile(
        f"""
        from pytest_kbrel.records import Case, HeadToTailSettings, MonitorSettings, Relation

        def test_it(kb_facts, kb_check):
            relation = Relation(id="P36", label="capital", domain="places", frames=("Capital of [X]?",))
            kb_check(Case(
                id="capitals", suite="test_it.py", probe={probe!r}, slice="all", gates=(),
                facts=kb_facts("suites/facts.jsonl"), relations=(relation,), settings={settings}(),
            ))
        """
    )
    result = pytester.runpytest(MODEL, "--ignore=suites")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([message])
    assert "Traceback" not in result.stdout.str()


def test_a_python_test_gets_no_model(pytester, mini_suite):
    mini_suite(ONE)
    pytester.runpytest(*GATE, "--kb-output-path=run")
    pytester.makepyfile("def test_it(kb_model):\n    pass\n")
    result = pytester.runpytest("--kb-from-run=run")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*no model is loaded where a recorded run is decided again*"]
    )


def test_a_python_test_goes_on_after_a_waived_case(pytester, mini_suite, report):
    waiver = 'waivers: [{slice: "head_to_tail[places-head]", owner: A, reason: r, expires: 2999-12-31}]\n'
    mini_suite(ONE + waiver)
    pytester.makepyfile(
        test_all="""
        import pathlib
        from dataclasses import replace
        from pytest_kbrel.records import Gate
        from pytest_kbrel.suites import load_suite

        def test_all(kb_check):
            head, torso, _ = load_suite(pathlib.Path("suites/mini.kb.yaml"), nodeid_path="test_all.py").cases
            gates = (Gate(metric="accuracy", rule="max", bound=0.0),)
            assert kb_check(replace(head, gates=gates)).waived
            kb_check(torso)
        """
    )
    result = pytester.runpytest(MODEL, "test_all.py")
    result.assert_outcomes(passed=1)
    assert [case["verdict"] for case in report()["cases"]] == ["fail", "pass"]
    assert report()["summary"]["verdict"] == "pass"


def test_facts_are_read_by_their_files_ending(pytester):
    (pytester.path / "facts.csv").write_text(
        "relation,subject,object\nP36,Peru,Lima\n", encoding="utf-8"
    )
    (pytester.path / "wrong.csv").write_text(
        "relation,subject,objct\nP36,Peru,Lima\n", encoding="utf-8"
    )
    pytester.makepyfile(
        """
        import pytest

        def test_table(kb_facts):
            assert [fact.id for fact in kb_facts("facts.csv")] == ["P36:Peru:Lima"]

        @pytest.mark.parametrize("name", ["wrong.csv", "fact.csv", "fcats.jsonl"])
        def test_none(kb_facts, name):
            kb_facts(name)
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*wrong.csv:1: unknown column 'objct'*did you mean 'object'?",
            "*fact.csv: cannot be read: No such file or directory; did you mean 'facts.csv'?",
            "*fcats.jsonl: cannot be read: No such file or directory; did you mean 'facts.csv'?",
        ]
    )
