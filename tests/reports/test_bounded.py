"""Text of parts that keeps to a length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.reports.bounded import Part, bounded_text, total_size

ROWS = tuple(f"row {at}" for at in range(100))
parts = st.builds(
    Part,
    st.integers(0, 3),
    st.text("ab", max_size=30),
    st.lists(st.text("xy\n", max_size=40), max_size=30),
    end=st.sampled_from((None, "", "end")),
    noun=st.just("case"),
    share=st.floats(0, 1),
)


@given(st.lists(parts, max_size=6), st.integers(0, 800))
def test_no_text_is_longer_than_its_limit(given_parts, limit):
    text = bounded_text(given_parts, limit)
    assert len(text) <= limit
    if total_size(given_parts) <= limit:
        assert "more case" not in text


def test_a_text_that_fits_is_whole():
    made = [
        Part(1, "first", ROWS[:2], "end"),
        Part(0, "", ROWS[2:3], ""),
        Part(2, "last"),
    ]
    assert (
        bounded_text(made, total_size(made))
        == "first\nrow 0\nrow 1\nend\nrow 2\n\nlast\n"
    )
    assert bounded_text([], 0) == ""


@pytest.mark.parametrize(("limit", "shown"), [(100, 10), (400, 53)])
def test_rows_at_the_end_are_left_out_and_counted(limit, shown):
    text = bounded_text(
        [Part(0, "head", ROWS, noun="case", where=" in the report")], limit
    )
    lines = text.split("\n")
    assert lines[: shown + 1] == ["head", *ROWS[:shown]]
    assert lines[shown + 1 :] == ["", f"and {100 - shown} more cases in the report", ""]


def test_a_lower_rank_gets_its_share_first_and_then_the_rest():
    made = [Part(1, "one", ROWS, share=0.5), Part(0, "two", ROWS[:3], share=0.5)]
    text = bounded_text(made, 300)
    assert text.endswith("two\nrow 0\nrow 1\nrow 2\n")
    # The first part has more than its half, since the second needs little.
    assert text.index("and ") > 150


def test_a_part_whose_head_does_not_fit_is_left_out():
    made = [Part(0, "a" * 20), Part(1, "b" * 50), Part(2, "c" * 20)]
    assert bounded_text(made, 60) == "a" * 20 + "\n" + "c" * 20 + "\n"
