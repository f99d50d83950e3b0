"""What workers keep while a session runs, and how it is joined."""

from dataclasses import replace

import pytest

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.records import Failed, ScoreRequest
from pytest_kbrel.reports.responses import to_line
from pytest_kbrel.reports.spools import append_exchanges, join_spools
from tests.reported import read_responses
from tests.reports.test_responses import ASKED, FAILED, GENERATED, exchange


def test_a_spool_is_on_disk_after_each_append(tmp_path):
    path = tmp_path / "parts" / "gw0.jsonl"
    append_exchanges(path, [GENERATED])
    assert list(read_responses(path)) == [GENERATED]
    append_exchanges(path, [FAILED])
    assert list(read_responses(path)) == [GENERATED, FAILED]


@pytest.fixture
def spool(tmp_path):
    def write(name, exchanges):
        path = tmp_path / f"{name}.jsonl"
        append_exchanges(path, exchanges)
        return path

    return write


def test_two_workers_join_to_what_one_would_have_written(spool, tmp_path):
    order = ["b", "a", "c", "d"]
    whole = [exchange(case, f"{case}{at}") for case in order for at in range(5)]
    serial = spool("main", whole)
    parts = [
        spool(
            "gw1",
            [item for item in whole if item.case in ("d", "b")][::-1][:5] + whole[:5],
        ),
        spool("gw0", [item for item in whole if item.case in ("a", "c")]),
    ]
    # The first worker had case d last to first; a case keeps the order in which its exchanges were made.
    expected = whole[:15] + whole[15:][::-1]
    torn, _ = join_spools(parts, tmp_path / "responses.jsonl", order)
    assert torn == []
    assert list(read_responses(tmp_path / "responses.jsonl")) == expected
    join_spools([serial], tmp_path / "serial.jsonl", order)
    assert (tmp_path / "serial.jsonl").read_bytes() == serial.read_bytes()


def test_cases_that_alternate_in_a_spool_are_gathered(spool, tmp_path):
    made = [exchange("ab"[at % 2], f"f{at}") for at in range(6)]
    join_spools([spool("gw0", made)], tmp_path / "out.jsonl", ["b", "a"])
    assert [item.ask.fact_id for item in read_responses(tmp_path / "out.jsonl")] == [
        "f1", "f3", "f5", "f0", "f2", "f4",
    ]  # fmt: skip


def test_cases_nobody_expected_come_last_by_name(spool, tmp_path):
    made = [exchange(case, "f") for case in ("z", "y", "known")]
    join_spools([spool("gw0", made)], tmp_path / "out.jsonl", ["known"])
    assert [item.case for item in read_responses(tmp_path / "out.jsonl")] == [
        "known",
        "y",
        "z",
    ]


def test_a_torn_last_line_costs_itself_only_and_is_reported(spool, tmp_path):
    whole = spool("gw0", [exchange("a", "f0")])
    torn = spool("gw1", [exchange("b", "f1")])
    with torn.open("ab") as stream:
        stream.write(to_line(exchange("b", "f2"))[:-20])
    only_torn = tmp_path / "gw2.jsonl"
    only_torn.write_bytes(b'{"case": "')
    spools = [whole, torn, only_torn]
    assert join_spools(spools, tmp_path / "out.jsonl", ["a", "b"])[0] == spools[1:]
    assert [item.ask.fact_id for item in read_responses(tmp_path / "out.jsonl")] == [
        "f0",
        "f1",
    ]


def test_a_line_broken_in_the_middle_is_fatal_and_writes_nothing(spool, tmp_path):
    path = spool("gw0", [exchange("a", "f0"), exchange("a", "f1")])
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + first[:30] + b"\n" + second)
    with pytest.raises(ResponseError, match=r"gw0\.jsonl:2:"):
        join_spools([path], tmp_path / "out.jsonl", ["a"])
    assert not (tmp_path / "out.jsonl").exists()


def test_a_case_that_ran_again_is_kept_once_with_its_last_answer(spool, tmp_path):
    again = [
        exchange("a", "f0", probability=0.1),
        exchange("a", "f1"),
        exchange("a", "f0", probability=0.9),
    ]
    join_spools([spool("gw0", again)], tmp_path / "out.jsonl", ["a"])
    assert [item.response for item in read_responses(tmp_path / "out.jsonl")] == [
        again[2].response,
        again[1].response,
    ]


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, case="b"),
        replace(ASKED, ask=replace(ASKED.ask, to="openai/judge")),
        replace(
            ASKED,
            ask=replace(
                ASKED.ask, request=ScoreRequest(prompt="f0? ", continuation=" yes")
            ),
        ),
    ],
)
def test_what_was_asked_otherwise_is_another_exchange(other, spool, tmp_path):
    again = replace(ASKED, response=Failed(error="again"))
    join_spools(
        [spool("gw0", [ASKED, other]), spool("gw1", [again])],
        tmp_path / "o.jsonl",
        ["a"],
    )
    assert sorted(map(to_line, read_responses(tmp_path / "o.jsonl"))) == sorted(
        map(to_line, [again, other])
    )


def test_the_lines_of_each_case_are_counted_but_for_the_baselines_own(spool, tmp_path):
    base = replace(ASKED, ask=replace(ASKED.ask, to="baseline"))
    judged = replace(ASKED, ask=replace(ASKED.ask, to="openai/judge"))
    only = replace(base, case="c")
    made = [ASKED, ASKED, base, judged, exchange("b", "f0"), only]
    _, counts = join_spools([spool("gw0", made)], tmp_path / "o.jsonl", [])
    assert counts == {"a": 3, "b": 1, "c": 0}
    assert len(list(read_responses(tmp_path / "o.jsonl"))) == 5


def test_an_idle_workers_missing_spool_is_no_error(tmp_path):
    assert join_spools([tmp_path / "gw9.jsonl"], tmp_path / "out.jsonl", [])[0] == []
    assert (tmp_path / "out.jsonl").read_bytes() == b""
