"""Pages of docs/reference: they are those of the code."""

from __future__ import annotations

import pytest

from tests import reference_pages


@pytest.mark.parametrize("name", reference_pages.PAGES)
def test_a_page_of_the_reference_is_that_of_the_code(name: str) -> None:
    page = (reference_pages.FOLDER / name).read_text(encoding="utf-8")
    assert page == reference_pages.PAGES[name](), (
        "write it: python -m tests.reference_pages --write"
    )


def test_every_argument_of_the_command_says_what_it_means() -> None:
    silent = [
        line
        for line in reference_pages.commands().splitlines()
        if line.startswith("| `") and line.rpartition("` |")[2].strip(" |") == ""
    ]
    assert silent == []


def test_there_is_a_page_for_each_file() -> None:
    assert {
        path.name for path in reference_pages.FOLDER.iterdir()
    } == reference_pages.PAGES.keys()
