from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.printing import cells, fit, format_table, pad
from pytest_kbrel.reports.formatting import one_line


@given(st.text(max_size=30), st.integers(1, 40))
def test_fitting_and_padding_count_terminal_columns(text: str, width: int) -> None:
    fitted = fit(one_line(text), width)
    assert cells(fitted) <= width
    assert cells(pad(fitted, width)) == width


def test_wide_characters_take_two_columns() -> None:
    assert cells("東京") == 4
    assert cells("e\u0301") == 1
    assert fit("東京都", 4) == "東…"
    assert (fit("東京", 4), fit("abcd", 4), fit("abcde", 4), fit("ab", 1)) == ("東京", "abcd", "abc…", "…")
    # Full width takes two columns too; what joins or combines takes none.
    assert (cells("Ａ"), cells("ｱ"), cells("a\u200db\u200c"), cells("")) == (2, 1, 2, 0)
    assert (pad("東", 4), pad("東", 4, right=True), pad("abc", 2)) == ("東  ", "  東", "abc")


def test_a_table_is_as_wide_as_its_cells_and_aligned_by_column() -> None:
    rows = [["slice", "n", "verdict"], ["東京", "12", "pass"], ["a", "1234", "fail"]]
    assert format_table(rows) == ["slice     n  verdict", "東京     12     pass", "a      1234     fail"]
    assert format_table(rows, left=(0, 2))[1:] == ["東京     12  pass", "a      1234  fail"]
    assert format_table([["a", "b"], ["c", ""]], left=range(2)) == ["a  b", "c"]


def test_the_first_columns_of_a_table_may_have_a_least_width() -> None:
    assert format_table([["a", "b", "c"]], least=(3, 2), gap=" ") == ["a    b c"]
    assert format_table([["long", "b"]], least=(2,), gap=" ") == ["long b"]
    assert format_table([["a"]], least=(2, 3)) == ["a"]


def test_the_rows_of_a_table_are_equally_long() -> None:
    with pytest.raises(ValueError, match="shorter"):
        format_table([["a", "b"], ["c"]])
