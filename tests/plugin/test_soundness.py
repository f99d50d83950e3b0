"""Runs that are incomplete or unsound: never green, never blessed."""

import json
import xml.etree.ElementTree as ET

import jsonschema
import pytest

from pytest_kbrel.reports.json_report import schema
from tests.plugin.conftest import GATE, GATED, MODEL, ONE


@pytest.fixture
def verdict(report):
    return lambda: (
        report()["summary"]["verdict"],
        report()["exit_status"],
        report()["complete"],
    )


def test_a_case_whose_teardown_fails_is_invalid_and_not_blessed(
    pytester, mini_suite, verdict
):
    mini_suite(GATED)
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def around(request):
            yield
            if "tail]" in request.node.name:
                raise RuntimeError("teardown breaks")
        """
    )
    result = pytester.runpytest(*GATE, "--kb-baseline-update=i")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert verdict() == ("invalid", 1, False)
    assert not (pytester.path / "baselines").exists()


def test_an_item_that_passes_without_a_measurement_fails(pytester, mini_suite, verdict):
    mini_suite(GATED)
    pytester.makeconftest("def pytest_pyfunc_call(pyfuncitem): return True")
    result = pytester.runpytest(*GATE, "-k", "tail]")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert verdict() == ("invalid", 1, False)
    result.stdout.fnmatch_lines(["*ended without a measurement*"])


def test_xfail_waives_gates_and_no_missing_measurement(
    pytester, mini_suite, monkeypatch
):
    mini_suite(GATED.replace("min: 0.0", "min: 1.0"))
    pytester.makeconftest(
        """
        import os
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.xfail(reason="known"))

        @pytest.fixture
        def kb_check(kb_check):
            if os.environ.get("BROKEN"):
                pytest.fail("it breaks before it has measured anything")
            return kb_check
        """
    )
    assert pytester.runpytest(*GATE, "-k", "tail]").ret == pytest.ExitCode.OK
    monkeypatch.setenv("BROKEN", "1")
    assert pytester.runpytest(*GATE, "-k", "tail]").ret == pytest.ExitCode.TESTS_FAILED


class TestOtherPeoplesRuns:
    @pytest.fixture(autouse=True)
    def _project(self, pytester, mini_suite):
        mini_suite(GATED)
        pytester.makeini("[pytest]\nkb_model = reference\n")
        folder = pytester.mkdir("tests")
        (folder / "test_other.py").write_text("def test_other(): pass", "utf-8")

    def test_they_leave_the_last_report_alone(self, pytester, report):
        pytester.runpytest("suites", "-k", "tail]")
        before = report()
        for arguments in (
            ("tests",),
            ("--fixtures", "-q"),
            ("--markers",),
            ("suites", "--setup-plan"),
        ):
            assert pytester.runpytest(*arguments).ret == 0
        assert report() == before

    def test_they_do_not_need_the_model_to_be_there(self, pytester):
        pytester.makeini("[pytest]\nkb_model = ./gone\n")
        pytester.runpytest("tests").assert_outcomes(passed=1)
        assert pytester.runpytest("suites").ret == pytest.ExitCode.USAGE_ERROR


class TestOutput:
    def test_a_file_in_its_place_is_a_usage_error(self, pytester, mini_suite):
        mini_suite(GATED)
        pytester.path.joinpath("afile").write_text("x")
        pytester.path.joinpath("odir", "report.json").mkdir(parents=True)
        for where in ("afile", "afile/below", "odir"):
            result = pytester.runpytest(*GATE, f"--kb-output-path={where}")
            assert result.ret == pytest.ExitCode.USAGE_ERROR
            result.stderr.fnmatch_lines(["ERROR: --kb-output-path: *"])

    def test_a_refused_baseline_stands_in_the_report(
        self, pytester, mini_suite, verdict, report
    ):
        mini_suite(GATED)
        pytester.makeconftest(
            """
            import pytest

            def pytest_collection_modifyitems(items):
                items[0].add_marker(pytest.mark.skip)
            """
        )
        pytester.runpytest(*GATE, "--kb-baseline-update=prod")
        assert verdict() == ("invalid", 1, False)
        assert "complete" in report()["problems"][0]


def test_a_suite_that_is_edited_while_it_runs_does_not_cost_the_results(
    pytester, mini_suite, verdict
):
    path = mini_suite(GATED)
    pytester.makeconftest(
        f"""
        import pathlib

        def pytest_runtest_teardown(item):
            pathlib.Path({json.dumps(str(path))}).write_text("broken: [")
        """
    )
    assert pytester.runpytest(*GATE).ret == 0
    assert verdict() == ("pass", 0, True)


def test_a_skipped_member_leaves_its_aggregate_out(pytester, mini_suite, report):
    mini_suite(OVERALL.replace("max: 0.0", "min: 0.0"))
    pytester.makeconftest(
        "def pytest_collection_modifyitems(items):\n    items[0].add_marker('skip')\n"
    )
    assert pytester.runpytest(*GATE).ret == 0
    assert not [case for case in report()["cases"] if case["aggregate"]]


def test_the_ini_key_names_what_a_bare_flag_blesses_and_blesses_nothing_alone(
    pytester, mini_suite
):
    mini_suite(GATED)
    pytester.makeini("[pytest]\nkb_baseline_update = prod\n")
    pytester.runpytest(*GATE)
    assert not (pytester.path / "baselines").exists()
    assert pytester.runpytest(*GATE, "--kb-baseline-update").ret == 0
    assert (pytester.path / "baselines/prod/baseline.json").is_file()


STOPS = [
    pytest.param(("-x",), id="serial"),
    pytest.param(("--maxfail=1", "-n1"), id="n1", marks=pytest.mark.slow),
]
FAILING = ONE + "  gates: {accuracy: {max: 0.0}}\n"


OVERALL = (
    FAILING
    + """\
  overall:
    gates: {gap: {max: 1.0}}
overall:
  gates: {as_expected: {min: 0.1}}
"""
)


@pytest.mark.parametrize("stop", STOPS)
def test_cases_behind_the_last_failure_are_not_run(pytester, mini_suite, report, stop):
    mini_suite(OVERALL)
    result = pytester.runpytest(MODEL, "suites", "--junitxml=junit.xml", *stop)
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)
    actual = report()
    jsonschema.validate(actual, schema())
    verdicts = [case["verdict"] for case in actual["cases"]]
    assert set(verdicts) == {"fail", "not run"}
    not_run, summary = verdicts.count("not run"), actual["summary"]
    assert (summary["verdict"], summary["not run"]) == ("fail", not_run)
    assert not actual["complete"]
    # Nor are figures over cases that were not run.
    assert {one["verdict"] for one in actual["cases"] if one["aggregate"]} == {
        "not run"
    }
    page = (pytester.path / "kbrel-report" / "report.html").read_text()
    assert f"{not_run} cases not run: the session stopped before them" in page
    suite = ET.parse(pytester.path / "junit.xml").getroot().find("testsuite")
    properties = {one.get("name"): one.get("value") for one in suite.find("properties")}
    assert properties["kb_not_run"] == str(not_run)
    assert int(suite.get("tests")) == len(verdicts) - not_run


def test_a_session_that_only_stopped_is_no_pass(pytester, mini_suite, report):
    mini_suite(FAILING.replace("{max: 0.0}", "{min: 0.0}"))
    pytester.makeconftest(
        "def pytest_runtest_teardown(item):\n    item.session.shouldstop = 'that is enough'\n"
    )
    pytester.runpytest(MODEL, "suites")
    actual = report()["summary"]
    # Two slices, and the two figures over all of them.
    assert (actual["pass"], actual["not run"]) == (1, 4)
    assert actual["verdict"] == "invalid"
