"""What a candidate's run lacks makes no verdict better: a property over logs of other tools, and its edges."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_kbrel.cli import main

Row = dict[str, Any]
# Verdicts that make the exit code 1 are alike: nothing is better than another of them.
RANKS = {"pass": 0, "inconclusive": 1}
RED = 2
# A hundredth of the rows is one: of fewer rows none may be lost.
ROWS = 104


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lm_eval_row(task: str, at: int, metric: str, score: object) -> Row:
    return {
        "doc_id": at,
        "doc": {"question": f"{at}?"},
        "target": "t",
        "filter": "none",
        "resps": [["x"]],
        "filtered_resps": ["x"],
        "metrics": [] if score is None else [metric],
        "prompt_hash": str(at),
        metric: score,
    }


def plain_row(task: str, at: int, metric: str, score: object) -> Row:
    return {"task": task, "id": at, metric: score}


def eee_row(task: str, at: int, metric: str, score: object) -> Row:
    return {
        "evaluation_id": "e",
        "model_id": "m",
        "evaluation_name": task,
        "sample_id": str(at),
        "sample_hash": str(at),
        "evaluation": {"score": score},
    }


FORMS = {"lm_eval": lm_eval_row, "plain": plain_row, "eee": eee_row}


def write(
    form: str, name: str, rows: Sequence[tuple[str, int, object]], metric: str
) -> str:
    """Write the rows of a run, (task, id, score) each, and return its path."""
    shutil.rmtree(name, ignore_errors=True)
    Path(name).mkdir()
    run = Path(name, "run.jsonl")
    run.touch()
    for task, at, score in rows:
        file = Path(name, f"samples_{task}_x.jsonl") if form == "lm_eval" else run
        with file.open("a") as stream:
            stream.write(json.dumps(FORMS[form](task, at, metric, score)) + "\n")
    return name if form == "lm_eval" else str(run)


def ranks(*arguments: str) -> dict[str, int]:
    """Return the rank of each gate and case, and of the exit code; nothing but that where the run is refused."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main(["compare", *arguments, "--exit-code", "--json"])
    found = {"exit": min(code, 1)}
    if code < RED:
        for case in json.loads(out.getvalue())["paired"][0]["cases"]:
            found[case["id"]] = RANKS.get(case["verdict"], RED)
            for gate in case["gates"]:
                name = " ".join((case["id"], gate["metric"], gate["rule"]))
                found[name] = RANKS.get(gate["verdict"], RED)
    return found


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    form=st.sampled_from(sorted(FORMS)),
    metric=st.sampled_from(("score", "quality", "wer")),
    gate=st.sampled_from(("--max-drop=0.1", "--recovery=0.9", "--gates=gates.yaml")),
    epochs=st.sampled_from((1, 2)),
    most=st.sampled_from((1, 4)),
    lost=st.sampled_from((0, 4, 10, 16, 24, 40)),
    gained=st.sampled_from((0, 5)),
    seed=st.integers(0, 999),
    count=st.sampled_from((1, 2, 25, 999)),
    of=st.sampled_from((0.0, 1.0, None)),
    damage=st.sampled_from(("delete", "none", "nan", "twice")),
)
def test_no_damage_to_a_candidate_makes_a_verdict_better(
    form: str,
    metric: str,
    gate: str,
    epochs: int,
    most: int,
    lost: int,
    gained: int,
    seed: int,
    count: int,
    of: float | None,
    damage: str,
) -> None:
    random = Random(seed)
    before, after = [], []
    for task in ("t", "u"):
        for _ in range(epochs):
            old = [random.randint(0, most) / most for _ in range(ROWS)]
            new = [0.0] * lost + [1.0] * gained + old[lost + gained :]
            before += [(task, at, score) for at, score in enumerate(old)]
            after += [(task, at, score) for at, score in enumerate(new)]
    pool = [at for at, row in enumerate(after) if of in (None, row[2])]
    chosen = set(random.sample(pool, min(count, len(pool))))
    damaged: list[tuple[str, int, object]] = []
    for at, (task, id_, score) in enumerate(after):
        if at not in chosen:
            damaged.append((task, id_, score))
        elif damage == "twice":
            damaged += [(task, id_, score)] * 2
        elif damage != "delete":
            damaged.append((task, id_, None if damage == "none" else float("nan")))
    if form == "eee":
        metric = "score"
    Path("gates.yaml").write_text(f"all: {{{metric}: {{min: 0.4, max: 0.6}}}}")
    flags = (gate, f"--metric={metric}") if form == "plain" else (gate,)
    a = write(form, "a", before, metric)
    whole = ranks(a, write(form, "b", after, metric), *flags)
    less = ranks(a, write(form, "c", damaged, metric), *flags)
    assert len(whole) > 1
    for name, rank in whole.items():
        # Of a run that is refused nothing is judged.
        assert less.get(name, RED * less["exit"]) >= rank


def rows_of(*scores: object, task: str = "t") -> list[tuple[str, int, object]]:
    return [(task, at, score) for at, score in enumerate(scores)]


GOOD = [1.0] * 200


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("lost", [None, float("nan"), "no row"])
def test_more_than_one_row_in_a_hundred_without_a_score_is_invalid(
    form: str, lost: object, capsys: pytest.CaptureFixture[str]
) -> None:
    a = write(form, "a", rows_of(*GOOD), "score")
    for count, exit in ((2, 0), (3, 1)):
        left = rows_of(*[lost] * count, *GOOD[count:])
        there = [row for row in left if row[2] != "no row"]
        b = write(form, "b", there, "score")
        capsys.readouterr()
        assert main(["compare", a, b, "--max-drop=0.05", "--exit-code"]) == exit
        assert f"gates: 1 {'invalid' if exit else 'pass'}; {count} rows lost" in (
            capsys.readouterr().out
        )


def test_rows_that_are_lost_are_wrong_in_what_passes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    a = write("plain", "a", rows_of(*GOOD), "acc")
    whole = write("plain", "b", rows_of(*[0.0] * 3, *GOOD[3:]), "acc")
    less = write("plain", "c", rows_of(None, 0.0, 0.0, *GOOD[3:]), "acc")
    results = [
        ranks(a, one, "--max-drop=within:0.043,beyond:0.02") for one in (whole, less)
    ]
    assert results[0] == results[1]
    assert list(results[0].values()) == [0, 1, 1]
    main(["compare", a, less, "--max-drop=within:0.043,beyond:0.02"])
    assert "with 1 lost rows at 0, acc fell by 0.015" in " ".join(
        capsys.readouterr().out.split()
    )
    # No bound is the worst of scores that have none.
    twice = [
        write("plain", name, rows_of(*of), "ppl")
        for name, of in (("d", [2.0] * 200), ("e", [None, *[2.0] * 199]))
    ]
    assert ranks(*twice, "--max-drop=1", "--metric=ppl")["exit"] == 1


def test_a_repeat_that_is_lost_counts_as_lost() -> None:
    a = write("plain", "a", rows_of(*GOOD, *GOOD), "acc")
    rows = [("t", at, 1.0) for at in range(200)] * 2
    both, wrong = write("plain", "a", rows, "acc"), [*rows[:8], *rows[8:]]
    assert a == both
    wrong[:3] = [("t", at, 0.0) for at in range(3)]
    assert (
        ranks(both, write("plain", "b", wrong, "acc"), "--max-drop=0.02")["exit"] == 0
    )
    assert (
        ranks(both, write("plain", "c", wrong[5:], "acc"), "--max-drop=0.02")["exit"]
        == 1
    )
