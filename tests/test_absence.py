"""What is missing never makes a verdict better: any part of a recorded run is taken away, and it is decided again.

A run of a model that has lost facts is recorded, whole and in shards. Responses are deleted, emptied, failed,
made no number or doubled, facts and slices leave the suite, cases the report: no gate, case, figure over
several cases, run or exit code gets better than it was.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.baselines import write_baseline
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import Run, Shard
from pytest_kbrel.reports import sha256_of
from pytest_kbrel.reports.view import View
from pytest_kbrel.session import run_builder
from pytest_kbrel.session.case_asker import CaseAsker
from pytest_kbrel.session.merge import merge
from pytest_kbrel.session.run_builder import (
    SessionResults,
    build_run,
    dump_responses,
    write_reports,
)
from pytest_kbrel.session.suite_changes import sharded_run
from pytest_kbrel.store.run_store import RunStore
from pytest_kbrel.suites import load_suite
from tests.made_cases import made_options

SUITE = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates:
    accuracy_base: {min: 0.3, max_drop: 0.1}
    monitor: {max: 0.7, max_drop: 0.2}
    anchor_prob: {recovery: 0.9}
  overall: {gates: {monitor: {max: 0.8}}}
"""
HEAD_TO_TAIL = """\
head_to_tail:
  prompt: zero-shot
  gates:
    accuracy: {min: 0.3, max_drop: 0.2}
    hallucination: {max: 0.2, max_drop: 0.1}
    flips: {max: 0.3}
  overall: {gates: {hallucination: {max: 0.2}}}
"""
RELIABILITY = """\
reliability:
  slices: [known-zero-shot, unseen-zero-shot]
  choices: 3
  distractors: 6
  unseen: {count: 8, as_of: 2026-11-01, expires: 2090-01-01}
  gates:
    cr: {min: 0.3, max_drop: 0.2}
    ncr: {min: 0.7, max_drop: 0.3}
    c_correct: {min: 0.99}
    c_wrong: {max: 0.6}
    ur: {min: 0.5, max_drop: 0.2}
    iur: {min: 0.2}
    flips: {max: 0.3}
  overall: {gates: {nccr: {min: 0.6}}}
"""
POOLED = "overall: {gates: {as_expected: {max_drop: 0.1, min: 0.9}}}\n"
WHOLE = SUITE + HEAD_TO_TAIL + RELIABILITY + POOLED
RELATIONS = (
    "P36:\n  label: capital\n  domain: places\n  frames:\n"
    "    - What is the capital of [X]?\n    - Which city is the capital of [X]?\n"
)
TOWNS = {f"Land{n:02}x": f"Town{n}" for n in range(20)}
# So many of the first ones the candidate has lost.
LOST = 6
PATH = "mini.kb.yaml"
# What a reader may take for a success: a pass, or that nothing is shown to be wrong. All else is red.
RANKS = {"pass": 2, "inconclusive": 1}
SHARDS = ("1", "2")


def script(lost: int, otherwise: str) -> str:
    """Return a model that knows all capitals but the first ones, of which it invents others."""
    rules: list[dict[str, Any]] = []
    for n, (land, town) in enumerate(TOWNS.items()):
        pattern, text = (
            rf"capital of {land}\?[^?]*$",
            town if n >= lost else f"New {land}",
        )
        odds = round(0.9 - 0.01 * n, 2)
        rules.append({"pattern": rf"^{town}\. .*{pattern}", "probability": odds + 0.05})
        rules.append({"pattern": pattern, "text": text, "probability": odds})
    rules.append({"pattern": r"Question: [^?]*? ([A-Z]\w+)[^?]*\?", "text": otherwise})
    rules.append({"default": {"text": "unsure", "probability": 0.01}})
    return "".join(json.dumps(rule) + "\n" for rule in rules)


def write_suite(root: Path, text: str = WHOLE, left_out: Sequence[str] = ()) -> None:
    lines = [
        {"relation": "P36", "subject": land, "object": town, "popularity": 1}
        for land, town in TOWNS.items()
        if land not in left_out
    ]
    facts = "".join(json.dumps(line) + "\n" for line in lines)
    (root / "facts.jsonl").write_text(facts, encoding="utf-8")
    (root / "relations.yaml").write_text(RELATIONS, encoding="utf-8")
    (root / PATH).write_text(text, encoding="utf-8")


def record(root: Path, model: str, shard: Shard | None = None) -> Run:
    """Ask a model all cases of the suite, and write the run below the root."""
    output = root / (model if shard is None else f"shards/{shard.index}")
    options = made_options(
        model=f"scripted/{root}/{model}.jsonl", output_path=output, shard=shard
    )
    suites = [load_suite(root / PATH, nodeid_path=PATH)]
    results = SessionResults(suites=suites, shard=sharded_run(options, suites, root))
    asker = CaseAsker(options, root=root, store=RunStore(), suites=lambda: suites)
    for case in suites[0].cases:
        results.expected[f"{PATH}::{case.id}"] = None
        results.add(f"{PATH}::{case.id}", asker.ask_case(case))
    results.add_news(asker.pool.news())
    run = build_run(options, results)
    assert not [*dump_responses(run.cases, asker.store, output)]
    asker.close()
    return write_reports(run, output)


@pytest.fixture(scope="module", name="root")
def recorded_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A blessed run, and that of a candidate, whole (``bad``) and in ``shards``."""
    root = tmp_path_factory.mktemp("absence")
    write_suite(root)
    (root / "good.jsonl").write_text(script(0, "unsure"), encoding="utf-8")
    (root / "bad.jsonl").write_text(script(LOST, r"New \1"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        # The page takes as long as all else, and decides nothing.
        patch.setattr(run_builder, "page_of", lambda *_: "")
        patch.chdir(root)
        write_baseline(root / "prod", record(root, "good"))
        record(root, "bad")
        for index in (1, 2):
            record(root, "bad", Shard(index=index, count=2))
        yield root


def levels(root: Path, *folders: str) -> dict[object, int]:
    """Decide recorded runs, and return how good each verdict is; a refusal is none."""
    shutil.rmtree(root / "out", ignore_errors=True)
    runs = [root / folder for folder in folders]
    try:
        run, _ = merge(runs, root / "out", root=root, baseline="./prod")
    except KbrelError:
        return {"exit": -1}
    found: dict[object, int] = {
        "exit": -run.exit_status,
        "run": RANKS.get(View(run).verdict, 0),
    }
    for case in run.cases:
        found[case.id] = RANKS.get(case.verdict, 0)
        for gate in case.gates:
            found[case.id, gate.metric, gate.rule] = RANKS.get(gate.verdict, 0)
    return found


def no_better(now: Mapping[object, int], before: Mapping[object, int]) -> None:
    better = {name: (before[name], of) for name, of in now.items() if of > before[name]}
    assert not better


@pytest.fixture(scope="module")
def before(root: Path) -> Mapping[object, int]:
    found = levels(root, "bad")
    # There is something to gain at every level.
    assert found["exit"] == -1
    assert {0, 1, 2} <= set(found.values())
    assert levels(root, "shards") == found
    return found


def changed(line: bytes, how: str) -> list[bytes]:
    """Return the lines in place of one: those of a response that is missing in one of the ways."""
    data = json.loads(line)
    response = data["response"]
    if how == "delete":
        return []
    if how == "double":
        return [line, line]
    if how == "error" or (how == "blank" and "text" not in response):
        data["response"] = {"kind": "failed", "error": "gone"}
    elif how == "blank":
        response["text"] = " "
    elif "probabilities" in response:
        response["probabilities"] = [float("nan") for _ in response["probabilities"]]
    else:
        response["text"] = None
    again = json.dumps(data, separators=(",", ":")).encode() + b"\n"
    # A failure beside the answer is one of a repeated request.
    return [line, again] if how == "error twice" else [again]


def damage(folder: Path, how: str, chosen: set[int]) -> None:
    """Change these lines of the responses, as if that had happened before they were recorded."""
    path = folder / "responses.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [
        part
        for number, line in enumerate(lines)
        for part in (changed(line, how) if number % len(lines) in chosen else [line])
    ]
    path.write_bytes(b"".join(kept))
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    report["files"]["responses.jsonl"] = sha256_of(path)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")


def answers(root: Path) -> list[tuple[int, str, str]]:
    """Return the number of each response with its case and whether it is wrong."""
    with (root / "bad/responses.jsonl").open("rb") as stream:
        lines = [json.loads(line) for line in stream]
    return [
        (number, of["case"], str("New " in of["response"].get("text", "")))
        for number, of in enumerate(lines)
    ]


# A blank answer is what a model may give: it is the way that most often looks like a merit.
HOW = ("blank", "blank", "delete", "error", "nan", "double")


@settings(max_examples=22)
@given(data=st.data())
def test_missing_responses_make_no_verdict_better(
    root: Path, before: Mapping[object, int], data: st.DataObject
) -> None:
    how = data.draw(st.sampled_from(HOW))
    recorded = answers(root)
    groups = sorted({of[at] for of in recorded for at in (1, 2)})
    # All, those of one case, or those that are wrong: what a filter would lose.
    group = data.draw(st.sampled_from(["", *groups]))
    numbers = [number for number, *of in recorded if not group or group in of]
    share = data.draw(st.sampled_from([1, 2, 5, 20]))
    first = data.draw(st.integers(0, share - 1))
    chosen = set(numbers[first::share])
    shutil.rmtree(root / "less", ignore_errors=True)
    shutil.copytree(root / "bad", root / "less")
    damage(root / "less", how, chosen)
    no_better(levels(root, "less"), before)


@settings(max_examples=6)
@given(data=st.data())
def test_facts_and_slices_that_leave_the_suite_make_no_verdict_better(
    root: Path, before: Mapping[object, int], data: st.DataObject
) -> None:
    lost, slices = (
        sorted(TOWNS)[:LOST],
        [WHOLE.replace(RELIABILITY, ""), SUITE + POOLED],
    )
    some = st.sets(st.sampled_from(sorted(TOWNS)), min_size=1, max_size=10)
    text, gone = data.draw(
        st.one_of(
            st.tuples(st.sampled_from(slices), st.just(())),
            st.tuples(st.just(WHOLE), st.one_of(st.just(lost), some)),
        )
    )
    try:
        write_suite(root, text, sorted(gone))
        no_better(levels(root, "bad"), before)
    finally:
        write_suite(root)


@settings(max_examples=8)
@given(data=st.data())
def test_missing_cases_and_shards_make_no_verdict_better(
    root: Path, before: Mapping[object, int], data: st.DataObject
) -> None:
    shutil.rmtree(root / "less", ignore_errors=True)
    shutil.copytree(root / "shards", root / "less")
    shard = data.draw(st.sampled_from(SHARDS))
    how = data.draw(st.sampled_from(["cases", "cases", "shard", "twice", *HOW[1:]]))
    if how == "shard":
        shutil.rmtree(root / "less" / shard)
    elif how == "twice":
        shutil.copytree(root / "less" / shard, root / "less/again")
    elif how == "cases":
        only = data.draw(st.integers(0, 4))
        for folder in SHARDS:
            path = root / "less" / folder / "report.json"
            report = json.loads(path.read_text(encoding="utf-8"))
            report["cases"] = report["cases"][only : only + 1]
            path.write_text(json.dumps(report), encoding="utf-8")
    else:
        damage(root / "less" / shard, how, set(range(0, 60, 2)))
    no_better(levels(root, "less"), before)


def test_a_report_without_a_case_is_refused(root: Path) -> None:
    shutil.copytree(root / "bad", root / "bare")
    path = root / "bare/report.json"
    report = json.loads(path.read_text(encoding="utf-8")) | {"cases": []}
    path.write_text(json.dumps(report), encoding="utf-8")
    with pytest.raises(KbrelError, match="its report has no case"):
        merge([root / "bare"], root / "out", root=root)
