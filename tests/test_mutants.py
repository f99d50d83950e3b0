"""What `make mutants` changes, and the table of its figures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
MODULE = '''\
from functools import lru_cache


class Sums:
    """Adds."""

    def __init__(self, first: int = 1) -> None:
        self.first = first

    @property
    def twice(self) -> int:
        """Return two times the first."""
        return 2 * self.first


@lru_cache(maxsize=None)
def pairs(left: list[int], right: list[int]) -> list[tuple[int, int]]:
    if not left:
        raise ValueError("nothing")
    return [
        (one, other)
        for one, other in zip(left, right, strict=True)
    ]
'''


@pytest.fixture
def tools(monkeypatch):
    """Import modules from beside the benchmarks, for this test alone."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    yield __import__
    for name in set(sys.modules) - before:
        if name.startswith("mutants"):
            del sys.modules[name]


@pytest.fixture
def mutants(tools, tmp_path):
    pytest.importorskip("mutmut")
    path = tmp_path / "sums.py"
    path.write_text(MODULE, encoding="utf-8")
    return tools("mutants_made").mutants_of(path, "sums")


def records(*statuses: str) -> dict[str, dict[str, str]]:
    return {
        f"stats.a:{at}": {"module": "stats", "status": status}
        for at, status in enumerate(statuses)
    }


def test_a_share_is_not_rounded_up(tools, monkeypatch):
    table = tools("mutants_table")
    statuses = ["killed"] * 898 + ["timeout"] + ["survived"] * 100 + ["not covered"]
    monkeypatch.setattr(
        table, "read", lambda folder: records(*statuses) if folder == "stats" else {}
    )
    assert table.table()[2:] == [
        "| `stats/` | 1,000 | 898 | 1 | 100 | 1 | 89.9 % |",
        "| all | 1,000 | 898 | 1 | 100 | 1 | 89.9 % |",
    ]


def test_a_survivor_is_shown_by_what_changed(tools, monkeypatch):
    table = tools("mutants_table")
    one = {
        "line": 3,
        "status": "survived",
        "before": "def a():\n    return 1\n",
        "after": "def a():\n    return 2\n",
    }
    monkeypatch.setattr(
        table,
        "read",
        lambda folder: {"pytest_kbrel.stats.a:1": one, "pytest_kbrel.stats.ab:1": one},
    )
    assert list(table.survivors("stats.a")) == [
        "# stats.a:1, line 3: survived",
        " def a():",
        "-    return 1",
        "+    return 2",
        "",
    ]


def test_functions_with_decorators_are_changed_too(mutants):
    assert {mutant.function for mutant in mutants} == {
        "Sums.__init__",
        "Sums.twice",
        "pairs",
    }
    assert any("return 3 * self.first" in mutant.after for mutant in mutants)


def test_what_no_test_can_notice_is_left_as_it_is(mutants):
    assert all(
        "strict=True" in mutant.after
        for mutant in mutants
        if mutant.function == "pairs"
    )
    assert all(
        "Return two times the first." in mutant.after
        for mutant in mutants
        if "twice" in mutant.name
    )


def test_a_change_matters_where_a_line_of_its_statement_runs(mutants):
    lines = {
        mutant.lines
        for mutant in mutants
        if "zip" in mutant.before and "zip(None" in mutant.after
    }
    assert lines == {(20, 23)}
    lines = {mutant.lines for mutant in mutants if "if left" in mutant.after}
    assert lines == {(18, 18)}


def test_every_change_is_of_one_place_and_can_be_run(tools, mutants):
    made = tools("mutants_made")
    space: dict[str, object] = {}
    exec(compile(MODULE, "sums.py", "exec"), space)
    for mutant in mutants:
        assert mutant.before in MODULE
        assert mutant.after != mutant.before
        assert made.body_of(mutant, mutant.before, space) != made.body_of(
            mutant, mutant.after, space
        )
    assert {
        made.body_of(m, m.after, space)[1]
        for m in mutants
        if m.function == "Sums.__init__"
    } == {
        (1,),
        (2,),
    }
