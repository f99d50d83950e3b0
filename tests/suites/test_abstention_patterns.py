from __future__ import annotations

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.suites.parse import read_uninformative


def test_patterns_are_read_by_kind_in_the_files_order(tmp_path):
    path = tmp_path / "more.yaml"
    path.write_text(
        "unsure:\n  - 'beyond my (data|training)'\n  - no comment\nnone:\n  - '^-+$'\n", encoding="utf-8"
    )
    assert read_uninformative(path) == (
        ("unsure", "beyond my (data|training)"),
        ("unsure", "no comment"),
        ("none", "^-+$"),
    )


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("unsur:\n  - x\n", 1, "did you mean 'unsure'?"),
        ("none:\n  - x\nunsure:\n  - '(x'\n", 4, "not a regular expression: '(x'"),
        ("none:\n  - 'x*'\n", 2, "matches every answer"),
        ("none: x\n", 1, "'none' must be a list of regular expressions"),
        ("none: []\n", 1, "at least one item"),
        ("none:\n  - 5\n", 2, "put it in quotes if text is meant"),
        ("- none\n", 1, "must be a mapping"),
        ("{}\n", 1, "no patterns"),
        ("", 1, "the file is empty"),
    ],
)
def test_what_is_no_list_of_patterns_is_refused_with_its_line(tmp_path, text, line, said):
    path = tmp_path / "more.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        read_uninformative(path)
    assert f"more.yaml:{line}: " in str(caught.value)
    assert said in str(caught.value)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(SuiteError, match=r"none\.yaml: cannot be read"):
        read_uninformative(tmp_path / "none.yaml")
