"""What a candidate's run lacks makes no verdict better: a property over logs of other tools, and its edges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.foreign.conftest import Compare, samples, write

# Verdicts that make the exit code 1 are alike: nothing is better than another of them.
RANKS = {"pass": 0, "inconclusive": 1}
RED = 2
# A hundredth of the rows is one: of fewer rows none may be lost.
ROWS = 104
GOOD = [1.0] * 200
# A task, an id and a score.
Row = tuple[str, int, object]


def write_run(name: str, rows: Sequence[Row], metric: str = "acc") -> str:
    written = ({"task": task, "id": at, metric: of} for task, at, of in rows)
    return write(f"{name}.jsonl", written)


def ranks(compare: Compare, *arguments: str) -> dict[str, int]:
    """Return the rank of each gate, and of the exit code; nothing but that where the run is refused."""
    done = compare(*arguments)
    found = {"exit": min(done.code, 1)}
    for name, case in done.cases.items() if done.document else ():
        for gate in case["gates"]:
            key = f"{name} {gate['metric']} {gate['rule']}"
            found[key] = RANKS.get(gate["verdict"], RED)
    return found


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), seed=st.integers(0, 999))
def test_no_damage_to_a_candidate_makes_a_verdict_better(
    data: st.DataObject, seed: int, compare: Compare
) -> None:
    def one(*values: Any) -> Any:
        return data.draw(st.sampled_from(values))

    metric, most, epochs = one("score", "quality", "wer"), one(1, 4), one(1, 2)
    gate = one("--max-drop=0.1", "--recovery=0.9", "--gates=gates.yaml")
    lost, gained, count = one(0, 4, 10, 16, 24, 40), one(0, 5), one(1, 2, 25, 999)
    of, damage = one(0.0, 1.0, None), one("delete", "none", "nan", "twice")
    random = Random(seed)
    before: list[Row] = []
    after: list[Row] = []
    for task in ("t", "u"):
        for _ in range(epochs):
            old = [random.randint(0, most) / most for _ in range(ROWS)]
            new = [0.0] * lost + [1.0] * gained + old[lost + gained :]
            before += [(task, at, score) for at, score in enumerate(old)]
            after += [(task, at, score) for at, score in enumerate(new)]
    pool = [at for at, row in enumerate(after) if of in (None, row[2])]
    chosen = set(random.sample(pool, min(count, len(pool))))
    damaged: list[Row] = []
    for at, row in enumerate(after):
        if at not in chosen:
            damaged.append(row)
        elif damage == "twice":
            damaged += [row] * 2
        elif damage != "delete":
            damaged.append((*row[:2], None if damage == "none" else float("nan")))
    Path("gates.yaml").write_text(f"all: {{{metric}: {{min: 0.4, max: 0.6}}}}")
    flags = gate, f"--metric={metric}"
    a = write_run("a", before, metric)
    whole = ranks(compare, a, write_run("b", after, metric), *flags)
    less = ranks(compare, a, write_run("c", damaged, metric), *flags)
    assert len(whole) > 1
    for name, rank in whole.items():
        # Of a run that is refused nothing is judged.
        assert less.get(name, RED * less["exit"]) >= rank


def rows_of(*scores: object) -> list[Row]:
    return [("t", at, score) for at, score in enumerate(scores)]


@pytest.mark.parametrize("lost", [None, float("nan"), "no row"])
def test_more_than_one_row_in_a_hundred_without_a_score_is_invalid(
    lost: object, compare: Compare
) -> None:
    a, b = write_run("a", rows_of(*GOOD)), samples("c", GOOD)
    for count, verdict in ((2, "pass"), (3, "invalid")):
        scores = [*[lost] * count, *GOOD[count:]]
        there = [row for row in rows_of(*scores) if row[2] != "no row"]
        done = compare(a, write_run("b", there), "--max-drop=0.05")
        assert (done.gates, done.code) == ({"t acc": verdict}, int(count == 3))
        assert f"{count} rows without a sure acc in the candidate count" in done.out
        assert f"{count} lost, 0 gained" in done.out
        if lost != "no row":
            done = compare(b, samples("d", scores), "--max-drop=0.05")
            assert done.gates == {"t exact_match": verdict}


def test_rows_that_are_lost_are_wrong_in_what_passes(compare: Compare) -> None:
    a = write_run("a", rows_of(*GOOD))
    flag = "--max-drop=within:0.043,beyond:0.02"
    whole = write_run("b", rows_of(*[0.0] * 3, *GOOD[3:]))
    less = write_run("c", rows_of(None, 0.0, 0.0, *GOOD[3:]))
    for b in (whole, less):
        assert ranks(compare, a, b, flag) == {"exit": 0, "t acc max_drop": 1}
    assert "with 1 lost rows at 0, acc fell by 0.015" in compare(a, less, flag).out
    # No bound is the worst of scores that have none.
    d = write_run("d", rows_of(*[2.0] * 200), "ppl")
    e = write_run("e", rows_of(None, *[2.0] * 199), "ppl")
    assert compare(d, e, "--max-drop=1", "--metric=ppl").gates == {"t ppl": "invalid"}


def test_a_repeat_that_is_lost_counts_as_lost(compare: Compare) -> None:
    rows = rows_of(*GOOD) * 2
    both, wrong = write_run("a", rows), [*rows]
    wrong[:3] = [("t", at, 0.0) for at in range(3)]
    for b, code in ((wrong, 0), (wrong[5:], 1)):
        run = write_run("b", b)
        done = compare(both, run, "--max-drop=0.02")
        assert done.code == code
    assert "200 rows of a.jsonl have several of acc, of which the mean" in done.out


def test_a_row_without_a_score_in_both_is_left_out(compare: Compare) -> None:
    a = samples("a", [None, *GOOD])
    b = samples("b", [*GOOD, None])
    done = compare(a, a, "--max-drop=0.05")
    assert done.cases["t"]["unmatched"]["unasked"] == []
    done = compare(a, b, "--max-drop=0.05")
    assert done.cases["t"]["unmatched"]["added"] == ["t/0"]
