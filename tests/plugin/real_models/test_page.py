"""The page about real models shows every case, and blocks of none that there is not."""

from tests.plugin.real_models.cases import CASES
from tests.plugin.real_models.page import PAGE, lines_in, names_in, rows_in, table

TEXT = PAGE.read_text(encoding="utf-8")


def test_it_has_a_line_for_every_case_in_their_order():
    rows = rows_in(TEXT)
    as_a_person_says = table({case.id: case.verdicts for case in CASES}).splitlines()[
        2:
    ]
    for case, row, expected in zip(CASES, rows.values(), as_a_person_says, strict=True):
        assert row == expected, case.id


def test_its_blocks_are_those_of_cases():
    names = names_in(TEXT)
    assert len(names) > 4
    assert names <= {case.id for case in CASES}
    assert all(lines_in(TEXT, name) for name in names - {"thinker-qwen3"})


def test_no_two_cases_have_one_name():
    assert len({case.id for case in CASES}) == len(CASES)
