"""Suites that pytest would not collect: other endings, and paths that lead nowhere."""

from tests.plugin.conftest import GATED, MODEL

ENDING = "the name of a suite ends in .kb.yaml; rename it to"


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


def test_one_in_a_folder_is_warned_of_once(pytester, mini_suite):
    mini_suite(GATED).with_name("other.kb.yml").write_text(GATED, "utf-8")
    result = pytester.runpytest("suites", MODEL)
    assert result.ret == 0
    lines = [line for line in result.outlines if "KbrelWarning" in line]
    assert [line.partition("Warning: ")[2] for line in lines] == [
        f"suites/other.kb.yml is not collected: {ENDING} other.kb.yaml"
    ]
