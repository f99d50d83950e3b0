"""Recorded shards that are not those of one run are named, each, and never joined in silence."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import KbrelError, ModelError, ResponseError
from pytest_kbrel.evaluation.recorded_run import read_runs
from pytest_kbrel.records import Exchange, Shard
from pytest_kbrel.reports import sha256_of
from pytest_kbrel.reports.phrases import INTERRUPTED
from pytest_kbrel.serialization import to_wire
from tests.evaluation.test_recorded_pool import (
    CASE,
    ask,
    exchange,
    recorded,
    replay_pool,
)
from tests.made_cases import RECORDED_MODEL

COUNT = 4
# A case whose worker died.
UNENDED = {
    "id": CASE,
    "verdict": "invalid",
    "settings": {},
    "errors": ["worker 'gw0' crashed"],
}
JUDGE = replace(RECORDED_MODEL, spec="openai/j", weights_digest="")


def shard(
    index: int, count: int = COUNT, by: str = "fact", **more: Any
) -> dict[str, Any]:
    return {
        "index": index,
        "count": count,
        "by": by,
        "commit": "",
        "suites": {"mini.kb.yaml": "d"},
    } | more


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Record a run in four shards, ``1`` to ``4`` in the working folder."""
    monkeypatch.chdir(tmp_path)
    for index in range(1, COUNT + 1):
        recorded(tmp_path / str(index), of_shard(index), shard=shard(index))
    return tmp_path


def of_shard(index: int) -> Exchange:
    """Return the exchange with the question of this number, of a fact in the shard."""
    own = Shard(index=index, count=COUNT)
    fact = next(fact for fact in map("f{}".format, range(99)) if own.has(fact))
    asked = exchange(index)
    return replace(asked, ask=replace(asked.ask, fact_id=fact))


def problems(folder: Path, *names: str) -> list[str]:
    with pytest.raises(KbrelError) as refused:
        read_runs([folder / name for name in names or "1234"])
    return str(refused.value).splitlines()


def test_missing_and_doubled_shards_are_named(shards: Path) -> None:
    assert [line.partition(";")[0] for line in problems(shards, "1", "3")] == [
        "of 4 shards, missing: 2, 4"
    ]
    assert problems(shards, *"123")[0].startswith("of 4 shards, missing: 4; ")
    for index in (1, 9_000):
        more = exchange(index), {"shard": shard(index, 10_000)}
        recorded(shards / "many" / str(index), more[0], **more[1])
    (missing,) = problems(shards, "many")
    assert missing.startswith("of 10000 shards, missing: 2-8999, 9001-10000; ")
    shutil.copytree(shards / "2", shards / "copy")
    assert problems(shards, *"1234", "copy")[0].startswith(
        "copy: is shard 2/4, as 2 is"
    )
    assert [
        line.partition(";")[0]
        for line in problems(shards, *"1234", "2", "../" + shards.name + "/3")
    ] == [
        "2: is given twice",
        "3: is given twice",
    ]
    assert problems(shards, ".", "2")[1].startswith("2: is given twice")


@pytest.mark.parametrize(("index", "count"), [(0, 4), (5, 4), (1, 10**9)])
def test_a_shard_that_no_flag_can_name_is_refused(
    shards: Path, index: int, count: int
) -> None:
    recorded(shards / "1", exchange(1), shard=shard(index, count))
    (refused,) = problems(shards, "1")
    assert (
        f"is shard {index}/{count}; allowed: I/N with I from 1 to N, N a whole"
        in refused
    )


@pytest.mark.parametrize("by", ["fact", "case"])
def test_a_line_of_another_shard_overrules_nothing(tmp_path: Path, by: str) -> None:
    whole = [exchange(number, text="right") for number in range(8)]
    named = CASE if by == "case" else "f0"
    own = next(i for i in (1, 2) if Shard(index=i, count=2, by=by).has(named))
    foreign = exchange(0, text="of another shard")
    for index in (1, 2):
        of = Shard(index=index, count=2, by=by)
        mine = [
            one for one in whole if of.has(CASE if by == "case" else one.ask.fact_id)
        ]
        lines = mine if index == own else [*mine, foreign]
        recorded(tmp_path / str(index), *lines, shard=shard(index, 2, by))
    pool = replay_pool(tmp_path / "1", joined=(tmp_path / "2",))
    with pytest.raises(ResponseError, match=r"f0 of mini.* which another shard than"):
        pool.ask([ask(0)], "", CASE)


def test_each_damaged_shard_is_named(shards: Path) -> None:
    for name in "23":
        with (shards / name / "responses.jsonl").open("ab") as stream:
            stream.write(b"{}\n")
    first, second, missing = problems(shards)
    assert "2/responses.jsonl: is not the file" in first
    assert "3/responses.jsonl: is not the file" in second
    assert missing.startswith(
        "of 4 shards, missing: 2-3, unless it is among those above"
    )


def test_a_shard_without_facts_has_no_responses(tmp_path: Path) -> None:
    for index in (1, 2):
        recorded(tmp_path / str(index), shard=shard(index, 2))
    responses = tmp_path / "2" / "responses.jsonl"
    responses.write_bytes(b"")
    report = tmp_path / "2" / "report.json"
    content = json.loads(report.read_text(encoding="utf-8"))
    report.write_text(
        json.dumps(content | {"files": {responses.name: sha256_of(responses)}}),
        encoding="utf-8",
    )
    assert len(read_runs([tmp_path]).parts) == 2


def test_a_case_that_a_shard_did_not_end_is_undecided_with_the_reason(
    shards: Path,
) -> None:
    recorded(shards / "3", of_shard(3), shard=shard(3), cases=[UNENDED])
    pool = replay_pool(shards)
    assert pool.ask([ask(3), ask(1)], "", CASE)
    why = "not decided, since the recorded run did not end this case: 3: worker 'gw0' crashed"
    with pytest.raises(ModelError, match=why):
        pool.ask([ask(3), ask(9)], "", CASE)
    pool.close()


def test_a_whole_run_among_shards_is_named(shards: Path) -> None:
    recorded(shards / "1")
    assert problems(shards)[0].startswith("1: is no shard but a whole run")


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ({"shard": shard(3, 5)}, "3: is shard 3/5 by fact, and 1 is shard 1/4 by fact"),
        (
            {"shard": shard(3, suites={"mini.kb.yaml": "e"})},
            "in suite mini.kb.yaml (its file or its facts)",
        ),
        ({"shard": shard(3, commit="abc")}, "in the commit (abc and none)"),
        ({"settings": {"seed": "7"}}, "in --kb-seed ('7' and '')"),
        ({"kbrel_version": "99"}, "in the version of pytest-kbrel (99 and"),
        (
            {"model": to_wire(replace(RECORDED_MODEL, weights_digest="x"))},
            "in the model (weights)",
        ),
        (
            {"base": to_wire(RECORDED_MODEL)},
            "in the baseline model: only one of them has one",
        ),
        ({"cases": []}, "in the cases that were selected"),
        (
            {"cases": [{"id": CASE, "verdict": "not run"}]},
            "3: shard 3/4 stopped before all its cases",
        ),
        (
            {
                "cases": [{**UNENDED, "errors": ["interrupted in this case"]}],
                "problems": [INTERRUPTED],
            },
            "3: shard 3/4 stopped before all its cases",
        ),
        ({"shard": shard(5)}, "is shard 5/4"),
    ],
)
def test_a_shard_of_another_run_is_named_with_what_differs(
    shards: Path, report: dict[str, Any], words: str
) -> None:
    recorded(shards / "3", exchange(3), **({"shard": shard(3)} | report))
    assert words in problems(shards)[0]


def test_each_machine_may_have_a_device_a_path_and_a_server_of_its_own(
    shards: Path,
) -> None:
    other = replace(RECORDED_MODEL, spec="/data/theirs", device="cuda:0")
    recorded(
        shards / "3",
        exchange(3),
        shard=shard(3),
        model=to_wire(other),
        settings={"model": "/data/theirs"},
    )
    assert len(read_runs([shards]).parts) == COUNT
    for name in "1234":
        served = replace(JUDGE, device=f"http://node{name}:8000")
        recorded(
            shards / name,
            exchange(int(name)),
            shard=shard(int(name)),
            helpers=[to_wire(served)],
        )
    assert [helper.spec for helper in read_runs([shards]).helpers] == ["openai/j"]
