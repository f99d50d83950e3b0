"""Suites that pytest would not collect: other endings, and paths that lead nowhere."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import GATED, MODEL, ONE

ENDING = "the name of a suite ends in .kb.yaml; rename it to"


@pytest.mark.parametrize("model", [(), (MODEL,), ("--co",)])
@pytest.mark.parametrize("name", ["w.kb.yml", "w.yaml"])
def test_a_suite_with_another_ending_is_refused(pytester, mini_suite, name, model):
    mini_suite(ONE).rename(pytester.path / "suites" / name)
    result = pytester.runpytest(f"suites/{name}", *model)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: suites/{name}: {ENDING} w.kb.yaml"])


def test_another_ending_is_refused_where_the_file_is_not_there(pytester, mini_suite):
    mini_suite(ONE)
    result = pytester.runpytest("suites/mini.kb.yml::head_to_tail", MODEL)
    result.stderr.fnmatch_lines(
        [f"ERROR: suites/mini.kb.yml::head_to_tail: {ENDING} mini.kb.yaml"]
    )


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            "head_to_tail[places-haed]",
            "no case *; did you mean 'head_to_tail[[]places-head]'?",
        ),
        (
            "reliability[overall]",
            "* is decided when all its slices have run, and cannot be selected",
        ),
    ],
)
def test_a_case_that_a_suite_does_not_have_is_named_with_the_nearest(
    pytester, mini_suite, case, words
):
    mini_suite()
    result = pytester.runpytest(f"suites/mini.kb.yaml::{case}", MODEL)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: suites/mini.kb.yaml: {words}"])


def test_yaml_files_of_other_plugins_are_left_to_them(pytester, mini_suite):
    mini_suite()
    pytester.makeconftest(
        """
        import pytest

        class One(pytest.File):
            def collect(self):
                yield Item.from_parent(self, name="one")

        class Item(pytest.Item):
            def runtest(self):
                pass

        def pytest_collect_file(file_path, parent):
            if file_path.suffix == ".yaml":
                return One.from_parent(parent, path=file_path)
        """
    )
    pytester.makefile(".yaml", other="suite: theirs")
    pytester.runpytest("other.yaml", MODEL).assert_outcomes(passed=1)


def test_one_in_a_folder_is_warned_of_once(pytester, mini_suite, distribution_args):
    mini_suite(GATED).with_name("other.kb.yml").write_text(GATED, encoding="utf-8")
    result = pytester.runpytest("suites", MODEL, *distribution_args)
    assert result.ret == 0
    lines = [line for line in result.outlines if "KbrelWarning" in line]
    assert [line.partition("Warning: ")[2] for line in lines] == [
        f"suites/other.kb.yml is not collected: {ENDING} other.kb.yaml"
    ]
