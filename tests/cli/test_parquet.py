"""Recorded responses as Parquet: each exchange is a row, read again as it was, in groups of bounded size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli import parquet
from pytest_kbrel.cli.parquet import write_parquet
from pytest_kbrel.errors import KbrelError, MissingExtraError
from pytest_kbrel.records import (
    Ask,
    Exchange,
    Failed,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
)


def exchange(at: int = 0, response: Any = None, **request: Any) -> Exchange:
    asked = request or {"prompt": "Q", "max_new_tokens": 8}
    kind = ScoreRequest if "continuation" in asked else GenerateRequest
    answered = response or Generated(
        text="é\ud800",
        token_ids=(at, 2),
        finish="stop",
        prompt_tokens=3,
        prompt_digest="d",
        probability=0.5,
    )
    return Exchange(
        case="s.kb.yaml::c",
        ask=Ask(fact_id=f"f{at}", role="ask", request=kind(**asked)),
        response=answered,
    )


SCORED = Scored(
    probabilities=(0.25, 0.5), token_ids=(7, 8), prompt_tokens=4, prompt_digest="e"
)


def test_each_kind_of_exchange_is_a_row(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "r.parquet"
    exchanges = [
        exchange(1),
        exchange(2, SCORED, prompt="P", continuation=" C"),
        exchange(3, Failed(error="out of reach")),
    ]
    assert write_parquet(exchanges, path, force=False) == 3
    generated, scored, failed = pq.read_table(path).to_pylist()
    assert (generated["kind"], generated["text"], generated["token_ids"]) == (
        "generate",
        "é\ufffd",
        [1, 2],
    )
    assert (
        generated["probability"],
        generated["continuation"],
        generated["error"],
    ) == (0.5, None, None)
    assert (scored["kind"], scored["continuation"], scored["probabilities"]) == (
        "score",
        " C",
        [0.25, 0.5],
    )
    assert (scored["text"], scored["fact"], scored["prompt_digest"]) == (
        None,
        "f2",
        "e",
    )
    assert (failed["error"], failed["prompt_tokens"]) == ("out of reach", None)
    assert list(generated) == list(parquet.COLUMNS)
    with pytest.raises(FileExistsError, match="exists already"):
        write_parquet(exchanges, path, force=False)
    assert write_parquet([], path, force=True) == 0
    assert pq.read_table(path).num_rows == 0


def test_a_number_that_is_too_large_is_no_traceback(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    large = Scored(
        probabilities=(0.5,), token_ids=(2**70,), prompt_tokens=1, prompt_digest="d"
    )
    with pytest.raises(
        KbrelError,
        match=r"from s\.kb\.yaml::c f0 ask to .* allowed: numbers of 64 bits",
    ):
        write_parquet(
            [exchange(), exchange(1, large)], tmp_path / "r.parquet", force=False
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"), [("GROUP_ROWS", 10), ("GROUP_CHARACTERS", 400)]
)
def test_rows_are_written_in_groups(
    name: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(parquet, name, value)
    write_parquet(map(exchange, range(25)), tmp_path / "r.parquet", force=False)
    file = pq.ParquetFile(tmp_path / "r.parquet")
    sizes = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    assert sum(sizes) == 25
    assert max(sizes) <= 15
    assert [row["fact"] for row in file.read().to_pylist()] == [
        f"f{at}" for at in range(25)
    ]


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pytest-kbrel\[parquet\]"):
        write_parquet([], tmp_path / "r.parquet", force=False)
