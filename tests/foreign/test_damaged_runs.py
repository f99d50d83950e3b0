"""Files of other tools that are cut, mixed or made to harm: refused with their line, or read as they are."""

from __future__ import annotations

import csv
import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.cli import main
from pytest_kbrel.foreign import Wanted, read_run

SAMPLES = "samples_t_2026-11-01T10-00-00.1.jsonl"
ROWS = 30


def row(at: int, **more: Any) -> str:
    return (
        json.dumps(
            {
                "doc_id": at,
                "filtered_resps": ["x"],
                "metrics": ["acc"],
                "acc": 1.0,
                **more,
            }
        )
        + "\n"
    )


GOOD = "".join(map(row, range(ROWS)))


def lm_eval(folder: Path, text: str | bytes) -> str:
    folder.mkdir()
    (folder / SAMPLES).write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(folder)


def compare(tmp_path: Path, text: str | bytes, *more: str) -> int:
    good, other = lm_eval(tmp_path / "good", GOOD), lm_eval(tmp_path / "other", text)
    return main(
        ["compare", good, other, "--max-drop=0.1", "--exit-code", "--json", *more]
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            GOOD[:-20],
            f":{ROWS}: is no JSON at character 53: Expecting value, and no line ends there: the file",
        ),
        (GOOD + "{,}\n" + GOOD, ":31: is no JSON at character 2"),
        (
            GOOD + row(31).replace("1.0", "1e400"),
            ":31: found 1e400; allowed: finite numbers",
        ),
        (
            GOOD + row(31).replace("1.0", "1" * 5000),
            ":31: found 1111111111",
        ),
        (
            GOOD + row(31, acc=1e300),
            ":31: acc is 1e+300; allowed: from -1e+12 to 1e+12",
        ),
        (GOOD.encode() + b"\xff\xfe\n", ":31: 'utf-8' codec can't decode byte 0xff"),
        (
            GOOD + '{"doc_id":31,"x":' + "[" * 500 + "]" * 500 + "}\n",
            ":31: nested more than 100 levels deep",
        ),
        (
            GOOD + '{"id": 1, "score": 1}\n',
            ":31: found no doc_id; allowed: a row of lm_eval --log_samples",
        ),
        (GOOD + "[1]\n", ":31: found list; allowed: an object a line"),
        (
            GOOD + row(31).replace("{", '{"acc": 0.0, '),
            ":31: key 'acc' stands twice; allowed: each key once",
        ),
        (
            GOOD + row(31, doc={"a": 1}).replace('"a": 1', '"a": 1, "a": 2'),
            ":31: key 'a' stands twice; allowed: each key once",
        ),
        (
            gzip.compress(GOOD.encode()),
            ":1: is packed with gzip; allowed: the file unpacked",
        ),
    ],
)
def test_a_damaged_row_is_named_with_its_file_and_line(
    text: str | bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(tmp_path, text) == 2
    out, err = capsys.readouterr()
    assert list(json.loads(out)) == ["error"]
    assert f"{SAMPLES}{says}" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "verdict", "says"),
    [
        (GOOD + GOOD, "pass", "30 ids have several rows, of which the mean counts"),
        (
            "".join(row(at, acc=float("nan")) for at in range(ROWS)),
            "invalid",
            "30 have no score in the candidate alone",
        ),
        (
            "".join(row(at, acc="1.0") for at in range(ROWS)),
            "not comparable",
            "no metric that is a number",
        ),
        (
            "".join(row(at, doc_hash="\ud800" * 99) for at in range(ROWS)),
            "not comparable",
            "asked otherwise",
        ),
    ],
)
def test_what_is_odd_and_readable_is_said_in_one_document(
    text: str,
    verdict: str,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = compare(tmp_path, text)
    out, err = capsys.readouterr()
    (case,) = json.loads(out)["paired"][0]["cases"]
    assert (case["verdict"], status, err) == (verdict, int(verdict != "pass"), "")
    assert says in case["obstacle"]


def test_text_of_a_run_cannot_write_commands_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        row(at, acc=float(at > 2), doc={"question": "\x1b[31mred"}, target="::error::x")
        for at in range(ROWS)
    ]
    good, other = (
        lm_eval(tmp_path / "good", GOOD),
        lm_eval(tmp_path / "other", "".join(rows)),
    )
    main(["compare", good, other, "--max-drop=0.1"])
    out = capsys.readouterr().out
    assert "red" in out
    assert "\x1b" not in out
    assert "::error::" not in out


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (
            lambda path: path.mkdir(),
            "found no run in it; allowed: lm_eval's samples_*.jsonl or their folder",
        ),
        (lambda path: path.write_bytes(gzip.compress(b"x")), "found no run in it"),
        (lambda path: None, "which is no file here"),
    ],
)
def test_what_is_no_run_is_said_with_what_is_allowed(
    write: Callable[[Path], object],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(tmp_path / "other")
    assert (
        main(["compare", lm_eval(tmp_path / "good", GOOD), str(tmp_path / "other")])
        == 2
    )
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            b'id,score\n1,1\n2,"1\n3,1\n',
            ":4: cannot be read as CSV: unexpected end of data",
        ),
        (b"id,score\n1,inf\n", ":2: score is 'inf'; allowed: a number, true or false"),
        (b"id,score\n1,1\n2,1e300\n", ":3: score is 1e+300; allowed"),
        (b"id,score\n1,1\n\xe4,1\n", ":3: cannot be read as CSV: 'utf-8' codec"),
        (b"id,id,score\n1,1,1\n", ":1: found the column 'id' twice; allowed: once"),
        (b"", ": found no scored row"),
    ],
)
def test_a_damaged_table_is_named_with_its_line(
    text: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text)
    # Other readers of this process may have raised it.
    before = csv.field_size_limit(131_072)
    try:
        assert main(["compare", str(path), str(path), "--max-drop=1"]) == 2
    finally:
        csv.field_size_limit(before)
    assert f"{path}{says}" in capsys.readouterr().err


def test_a_row_is_forgotten_but_for_what_is_compared_or_shown(tmp_path: Path) -> None:
    more = {
        "arguments": {"gen_args_0": {"arg_0": "shot " * 500}},
        "resps": [["because " * 250]],
    }
    text = "".join(
        row(at, target=f"t{at}" * 99, doc_hash=f"{at:064}", **more)
        for at in range(1000)
    )
    run = lm_eval(tmp_path / "run", text)
    read_run(Path(lm_eval(tmp_path / "good", GOOD)), Wanted())
    tracemalloc.start()
    (case,) = read_run(Path(run), Wanted(cluster="doc_id")).cases.values()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(case.tables["acc"].rows) == 1000
    # The file has 5.1 million characters.
    assert most < 2_000_000
