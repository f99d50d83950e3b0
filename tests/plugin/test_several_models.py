"""Several models in one command: a session for each, one comparison."""

import os
import re
import signal
import subprocess

import pytest

from pytest_kbrel.plugin.several_models import alternatives
from tests.plugin.conftest import GATED, KNOWS, facts_file, start, wait_until

UPDATE = "--kb-baseline-update=prod"
TWO = f"--kb-model={KNOWS}|scripted/overconfident.jsonl"


def test_each_model_gets_a_session_of_its_own_and_a_page_compares_them(
    pytester, mini_suite, report
):
    mini_suite(GATED.replace("{min: 0.0}", "{min: 0.0}, hallucination: {max: 0.1}"))
    suite = pytester.path / "suites" / "facts.jsonl"
    suite.write_text(suite.read_text().replace('"France"', '"Atlantis"'))
    result = pytester.runpytest_subprocess(TWO, "--junitxml=out.xml", "--", "suites")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.outlines[-2:] == [
        "knows.jsonl: passed",
        "overconfident.jsonl: failed",
    ]
    for name in ("knows.jsonl", "overconfident.jsonl"):
        assert report(f"kbrel-report/{name}")["model"]["spec"] == f"scripted/{name}"
        assert (pytester.path / f"out-{name}.xml").is_file()
    page = (pytester.path / "kbrel-report" / "compare.html").read_text()
    assert "overconfident.jsonl" in page
    # Each model has failures of its own.
    result = pytester.runpytest_subprocess(TWO, "--lf", "suites")
    result.stdout.fnmatch_lines(["*= 5 passed in*", "*= 1 failed in*"])
    # The reports that are there now say nothing of a plan.
    result = pytester.runpytest_subprocess(TWO, "suites", "--kb-plan")
    assert result.outlines[-2:] == [
        "knows.jsonl: no report, exit code 0",
        "overconfident.jsonl: no report, exit code 0",
    ]


def test_the_page_compares_with_the_baseline_which_is_asked_once(pytester, mini_suite):
    mini_suite(GATED.replace("0.0", "0.95"))
    pytester.runpytest_subprocess(f"--kb-model={KNOWS}", "suites", UPDATE)
    page = pytester.path / "kbrel-report" / "compare.html"
    base = pytester.path / "int4.jsonl"
    base.write_text(base.read_text().replace("Norway", "China"))
    for flag, where in (
        ("--kb-baseline=prod", "prod"),
        # This one fails at the first case, which is no candidate's fault.
        ("--kb-baseline-model=scripted/int4.jsonl", "kbrel-report/baseline"),
    ):
        result = pytester.runpytest_subprocess(TWO, "suites", flag, "-x")
        assert result.ret == pytest.ExitCode.OK
        assert f"All against {where}, fact" in re.sub(r"<[^>]*>", "", page.read_text())
    assert str(result.stdout).count("24 of 24 answers reused") == 2


def test_a_model_that_cannot_be_read_keeps_no_other_from_its_session(
    pytester, mini_suite
):
    mini_suite(GATED.replace("0.0", "1.0"), facts_file({"China": "Dadu"}))
    models = "scripted/nope.jsonl|scripted/int4.jsonl|.."
    # With -n, -x ends a session as an interruption does.
    result = pytester.runpytest_subprocess(
        f"--kb-model={models}", "suites", "-x", "-n2"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.outlines[-3:] == [
        "nope.jsonl: no report, exit code 4",
        "int4.jsonl: failed",
        f"{pytester.path.parent.name}: no report, exit code 4",
    ]


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
def test_an_interrupted_session_ends_by_itself(pytester, mini_suite, report):
    mini_suite(GATED)
    pytester.makepyfile(
        **{
            "suites/test_slow": """
        import pathlib, time

        def test_slow():
            pathlib.Path("begun").touch()
            time.sleep(60)
        """
        }
    )
    session = start(pytester, TWO, "suites", stdout=subprocess.PIPE)
    assert wait_until((pytester.path / "begun").is_file)
    os.killpg(session.pid, signal.SIGINT)
    output, _ = session.communicate()
    assert session.returncode == pytest.ExitCode.INTERRUPTED
    assert b"Traceback" not in output
    assert b"(2 of 2)" not in output
    assert report("kbrel-report/knows.jsonl")["summary"]["verdict"] == "invalid"


def test_what_cannot_be_had_of_several_models_is_refused(pytester, monkeypatch):
    result = pytester.runpytest_subprocess(TWO, "--kb-model-args=peft=a|b")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*several of two settings; allowed: several*"])
    monkeypatch.setenv("KB_BASELINE_UPDATE", "x")
    result = pytester.runpytest_subprocess(TWO)
    result.stderr.fnmatch_lines(["*KB_BASELINE_UPDATE: found several models;*"])


def test_alternatives_are_those_of_an_argument_or_of_the_model():
    args = "dtype=float32,peft=./a/one| b/one,think_end_token=<|end|>"
    assert list(alternatives("./base", args)) == [
        ("1-one", "./base", "dtype=float32,peft=./a/one,think_end_token=<|end|>"),
        ("2-one", "./base", "dtype=float32,peft=b/one,think_end_token=<|end|>"),
    ]
    assert list(alternatives("x:int4|y", "batch_size=1")) == [
        ("x-int4", "x:int4", "batch_size=1"),
        ("y", "y", "batch_size=1"),
    ]
    with pytest.raises(ValueError, match="none empty"):
        list(alternatives("a|", ""))
