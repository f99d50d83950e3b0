"""Python tests that use kb_check, kb_model and the other fixtures."""

import json
import re
from pathlib import Path

import jsonschema
import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from pytest_kbrel.reports.json_report import schema
from tests.openai_server import Fault
from tests.plugin.conftest import GATE, INT4, KNOWS, MODEL, ONE

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
    pytester, report, openai_server, gate
):
    openai_server.inject(*[Fault()] * 6, *[DENIED] * 40)
    result = pytester.runpytest(*gate)
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


def test_what_was_not_asked_is_not_recorded(pytester, mini_suite):
    mini_suite(ONE)
    pytester.runpytest(*GATE, "--kb-output-path=run")
    pytester.makepyfile("def test_it(kb_model):\n    kb_model.ask('Who?')\n")
    result = pytester.runpytest("--kb-from-run=run")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*kb_model.ask('Who?') got no answer: not recorded"])


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
        "relation,subject,object\nP36,Peru,Lima\n", "utf-8"
    )
    (pytester.path / "wrong.csv").write_text(
        "relation,subject,objct\nP36,Peru,Lima\n", "utf-8"
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


OWN = """
def test_brief(kb_facts, kb_check, kb_model):
    def right(fact):
        return kb_model.ask(f"What is the capital of {fact.subject}?") == fact.object
    kb_check(right, kb_facts("suites/facts.jsonl"), min=0.5, max_drop=0.2)
"""


def test_the_model_answers_and_says_how_probable_a_text_is(pytester, mini_suite):
    mini_suite()
    pytester.makepyfile(
        test_it="""
        def test_it(kb_model):
            assert kb_model.ask("What is the capital of Norway?") == "Oslo"
            assert kb_model.ask("Where is the", lead="capital of Norway?") == "Oslo"
            sure = kb_model.probability("What is the capital of China?", " Beijing")
            assert sure == 0.9
            # Of two tokens it is the product.
            sure = kb_model.probability("What is the capital of India?", " New Delhi")
            assert abs(sure - 0.89**2) < 1e-9
        """
    )
    pytester.runpytest(MODEL, "test_it.py").assert_outcomes(passed=1)


def test_a_failed_request_is_named_and_is_no_failed_assertion(
    pytester, report, openai_server, gate
):
    openai_server.inject(*[Fault(status=400, message="too long")] * 9)
    pytester.makepyfile(
        test_it="def test_it(kb_model):\n    kb_model.ask('Where is Lima?')\n"
    )
    result = pytester.runpytest(*gate)
    result.stdout.fnmatch_lines(["*kb_model.ask('Where is Lima?') got no answer: *"])
    (case,) = report()["cases"]
    assert case["verdict"] == "invalid"


def test_a_failed_assertion_is_a_failed_case_with_what_it_says(
    pytester, mini_suite, report
):
    mini_suite()
    pytester.makepyfile(
        test_it="""
        def test_bare(kb_model):
            assert kb_model.ask("What is the capital of Norway?") == "Bergen"

        def test_broken(kb_model):
            raise OSError("no disk")
        """
    )
    result = pytester.runpytest(MODEL, "test_it.py")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["FAILED *test_bare", "*assert 'Oslo' == 'Bergen'"])
    verdicts = {case["slice"]: case["verdict"] for case in report()["cases"]}
    assert verdicts == {"test_bare": "fail", "test_broken": "invalid"}


def test_a_metric_of_ones_own_has_interval_gates_and_place_in_the_reports(
    pytester, mini_suite, cases, responses
):
    mini_suite()
    pytester.makepyfile(test_it=OWN)
    flags = ("test_it.py", "--junitxml=j.xml")
    pytester.runpytest(MODEL, *flags).assert_outcomes(passed=1)
    case = cases()["test_brief[right]"]
    figure = case["metrics"]["right"]
    assert (case["probe"], case["n"], figure["value"]) == ("test", 12, 1.0)
    # Wilson's interval of 12 of 12.
    assert figure["low"] == pytest.approx(0.7575, abs=1e-4)
    assert [gate["rule"] for gate in case["gates"]] == ["min", "max_drop"]
    assert "kb_right=1.0000" in (pytester.path / "j.xml").read_text()
    assert {line["case"] for line in responses()} == {"test_it.py::test_brief[right]"}
    assert len(responses()) == 12


def test_a_metric_of_ones_own_is_blessed_and_compared_fact_by_fact(
    pytester, mini_suite, cases
):
    mini_suite()
    pytester.makepyfile(test_it=OWN)
    bless = "--kb-baseline-update=own"
    assert pytester.runpytest(MODEL, "test_it.py", bless).ret == 0
    (pytester.path / "none.jsonl").write_text(
        '{"default": {"text": "none"}}\n', "utf-8"
    )
    flags = ("test_it.py", "--kb-baseline=own")
    result = pytester.runpytest("--kb-model=scripted/none.jsonl", *flags)
    result.assert_outcomes(failed=1)
    case = cases()["test_brief[right]"]
    assert len(case["lost"]) == 12
    assert [gate["verdict"] for gate in case["gates"]] == ["fail", "fail"]
    assert case["metrics"]["right"]["delta"] == -1.0
    pytester.runpytest(MODEL, *flags).assert_outcomes(passed=1)
    # Facts that the test has lost are no pass.
    pytester.makepyfile(test_it=OWN.replace('.jsonl")', '.jsonl")[:6]'))
    pytester.runpytest(MODEL, *flags).assert_outcomes(failed=1)
    assert cases()["test_brief[right]"]["verdict"] == "not comparable"


def test_a_metric_of_ones_own_is_compared_with_a_baseline_model(
    pytester, mini_suite, cases
):
    mini_suite()
    pytester.makepyfile(test_it=OWN)
    base = f"--kb-baseline-model={KNOWS}"
    pytester.runpytest(INT4, base, "test_it.py").assert_outcomes(passed=1)
    case = cases()["test_brief[right]"]
    assert [change["new_answer"] for change in case["lost"]] == ["Bergen"]


def test_numbers_of_any_size_are_compared(pytester, mini_suite, cases):
    mini_suite()
    pytester.makepyfile(
        test_it="""
        def test_it(kb_facts, kb_check, kb_model):
            size = lambda fact: 1e6 * kb_model.probability(
                f"What is the capital of {fact.subject}?", f" {fact.object}")
            kb_check(size, kb_facts("suites/facts.jsonl"), name="size", max_drop=1e3)
        """
    )
    assert pytester.runpytest(MODEL, "test_it.py", "--kb-baseline-update=own").ret == 0
    # All its probabilities are lower by 0.03.
    assert pytester.runpytest(INT4, "test_it.py", "--kb-baseline=own").ret == 1
    figure = cases()["test_it[size]"]["metrics"]["size"]
    assert figure["baseline"] > figure["value"] > 1e5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("lambda fact: 1, facts", "*found '<lambda>' as the name*name=...*"),
        ("lambda fact: 1, facts, name='churn'", "*found 'churn' as the name*"),
        ("lambda fact: 1, (), name='x'", "*found no facts*"),
        ("lambda fact: 1, facts * 2, name='x'", "*facts with one id*"),
        ("lambda fact: 'a', facts, name='x'", "*x: found 'a' for fact 'P36:China'*"),
        ("lambda fact: float('nan'), facts, name='x'", "*found nan for fact*"),
        ("lambda fact: 1, facts, name='x', mn=1", "*unknown rule 'mn'*'min'?"),
    ],
)
def test_what_is_no_metric_is_refused(pytester, mini_suite, report, call, message):
    mini_suite()
    pytester.makepyfile(
        test_it=f"""
        def test_it(kb_facts, kb_check):
            facts = kb_facts("suites/facts.jsonl")
            kb_check({call})
        """
    )
    result = pytester.runpytest(MODEL, "test_it.py")
    result.stdout.fnmatch_lines([message])
    (case,) = report()["cases"]
    assert case["verdict"] == "invalid"


def test_a_name_stands_once_in_a_test(pytester, mini_suite):
    mini_suite()
    pytester.makepyfile(
        test_it="""
        def test_it(kb_facts, kb_check):
            for _ in range(2):
                kb_check(lambda fact: 1, kb_facts("suites/facts.jsonl"), name="x")
        """
    )
    result = pytester.runpytest(MODEL, "test_it.py")
    result.stdout.fnmatch_lines(["*test_it[[]x] stands twice*another name*"])


def test_a_recorded_run_answers_python_tests(pytester, mini_suite, cases):
    mini_suite()
    asks = 'def test_ask(kb_model):\n    assert kb_model.ask("Who?") == "unsure"\n'
    pytester.makepyfile(test_it=OWN + asks)
    for number in (1, 2):
        flags = (f"--kb-shard={number}/2", f"--kb-output-path=run{number}")
        pytester.runpytest(MODEL, "test_it.py", *flags).assert_outcomes(passed=2)
    pytester.runpytest("test_it.py", "--kb-from-run", "run1", "run2").assert_outcomes(
        passed=2
    )
    assert cases()["test_brief[right]"]["n"] == 12


def test_the_example_of_the_documentation_runs(pytester, mini_suite):
    page = (Path(__file__).parents[2] / "docs" / "suites.md").read_text("utf-8")
    (table,) = re.findall(r"```csv\n(.*?)```", page, re.DOTALL)
    (tests,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    mini_suite()
    (pytester.path / "questions.csv").write_text(table, "utf-8")
    pytester.makepyfile(test_it=tests)
    rule = {"default": {"text": "Lima", "probability": 0.5}}
    (pytester.path / "lima.jsonl").write_text(json.dumps(rule), "utf-8")
    result = pytester.runpytest("--kb-model=scripted/lima.jsonl", "test_it.py")
    result.assert_outcomes(passed=2)
