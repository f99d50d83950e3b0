"""Recorded responses of a session, exported as Parquet."""

from __future__ import annotations

import pytest

from pytest_kbrel.cli import main
from tests.plugin.conftest import GATE, ONE


def test_the_responses_of_a_run_are_exported(pytester, mini_suite, responses, capsys):
    pq = pytest.importorskip("pyarrow.parquet")
    mini_suite(ONE)
    pytester.runpytest(*GATE)
    assert (
        main(["export", "kbrel-report", "--format=parquet", "--output=r.parquet"]) == 0
    )
    rows = pq.read_table(pytester.path / "r.parquet").to_pylist()
    assert [(row["case"], row["fact"], row["prompt"], row["text"]) for row in rows] == [
        (one["case"], one["fact"], one["request"]["prompt"], one["response"]["text"])
        for one in responses()
    ]
    with (pytester.path / "kbrel-report" / "responses.jsonl").open("a") as stream:
        stream.write("{}")
    assert (
        main(["export", "kbrel-report", "--format=parquet", "--output=s.parquet"]) == 2
    )
    assert "responses.jsonl: is not the file" in capsys.readouterr().err
    assert not (pytester.path / "s.parquet").exists()
