"""The page about real models shows blocks of no case that there is not."""

from tests.plugin.real_models.cases import CASES
from tests.plugin.real_models.page import PAGE, lines_in, names_in

TEXT = PAGE.read_text(encoding="utf-8")


def test_its_blocks_are_those_of_cases():
    names = names_in(TEXT)
    assert len(names) > 3
    assert names <= {case.id for case in CASES}
    assert all(lines_in(TEXT, name) for name in names - {"thinker-qwen3"})


def test_no_two_cases_have_one_name():
    assert len({case.id for case in CASES}) == len(CASES)
