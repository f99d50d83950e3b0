"""Several models in one command: a session for each, one comparison."""

import pytest

from pytest_kbrel.plugin.several_models import alternatives
from tests.plugin.conftest import GATED, KNOWS

TWO = f"--kb-model={KNOWS}|scripted/overconfident.jsonl"


def test_each_model_gets_a_session_of_its_own_and_a_page_compares_them(
    pytester, mini_suite, report
):
    mini_suite(GATED.replace("{min: 0.0}", "{min: 0.0}, hallucination: {max: 0.1}"))
    suite = pytester.path / "suites" / "facts.jsonl"
    suite.write_text(suite.read_text().replace('"France"', '"Atlantis"'))
    result = pytester.runpytest_subprocess(TWO, "suites", "--junitxml=out.xml")
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


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--kb-model-args=peft=a|b",), "*several of two settings; allowed: several*"),
        (("--kb-baseline-update=x",), "*--kb-baseline-update: found several models;*"),
    ],
)
def test_what_cannot_be_had_of_several_models_is_refused(pytester, flags, why):
    result = pytester.runpytest_subprocess(TWO, *flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([why])


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
