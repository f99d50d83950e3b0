"""Files of other tools: as they made them (made/README.md), cut, mixed, or made to harm."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign import Wanted, format_of, read_run
from tests.foreign.conftest import DATE, Compare, samples

MADE = Path(__file__).with_name("made")
ROWS = 30
DROP = "--max-drop=0.1"


def row(at: int, **more: Any) -> str:
    content = {"doc_id": at, "filtered_resps": ["x"], "metrics": ["acc"], "acc": 1.0}
    return json.dumps(content | more) + "\n"


GOOD = "".join(map(row, range(ROWS)))


def lm_eval(folder: str, text: str | bytes) -> str:
    Path(folder).mkdir()
    path = Path(folder, f"samples_t_{DATE}.jsonl")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def values(case: dict[str, Any]) -> dict[str, tuple[float, float, int]]:
    """Return the baseline's value, the candidate's and the number of rows of each figure."""
    return {
        name: (
            round(of["baseline"], 4),
            round(of["baseline"] + of["delta"], 4),
            of["paired"],
        )
        for name, of in case["figures"].items()
    }


def test_a_group_of_lm_eval_is_one_case_with_the_value_that_it_prints(
    compare: Compare,
) -> None:
    runs = MADE / "lm_eval" / "a", MADE / "lm_eval" / "b"
    flags = (DROP, "--metric=acc")
    cases = compare(*runs, *flags, "--pool=made_all", "--cluster=task").cases
    assert values(cases["made_all"]) == {"acc": (0.75, 0.5417, 72)}
    assert cases["made_all"]["figures"]["acc"]["clusters"] == pytest.approx(3)
    assert cases["made_all"]["lost"][0]["fact_id"] == "made_all/made_biology/1"
    cases = compare(*runs, *flags, "--pool=made_science").cases
    assert {name: case["figures"]["acc"]["paired"] for name, case in cases.items()} == {
        "made_science": 48,
        "made_history": 24,
    }
    for pools, says in (
        (("made",), "names no such group; allowed here: made_all, made_science"),
        (("made_all", "made_science"), "made_biology is in made_all as well"),
    ):
        with pytest.raises(KbrelError, match=says):
            read_run(runs[0], Wanted(pool=pools))
    (eee,) = (MADE / "eee" / "a").glob("*.json")
    with pytest.raises(KbrelError, match="has no groups; allowed: a run of lm_eval"):
        read_run(eee, Wanted(pool=("g",)))


def test_instances_that_are_not_those_of_their_aggregate_are_refused(
    tmp_path: Path,
) -> None:
    run = Path(shutil.copytree(MADE / "eee" / "b", tmp_path / "b"))
    (aggregate,), (instances,) = run.glob("*.json"), run.glob("*_samples.jsonl")
    for path in (aggregate, instances):
        assert format_of(path) == "every_eval_ever"
        assert read_run(path, Wanted()).cases
    lines = instances.read_text().splitlines(keepends=True)
    instances.write_text("".join(lines[1:]))
    for path in (aggregate, instances):
        with pytest.raises(KbrelError, match=r"its sha256 is .*; allowed: 8e61ccafcf"):
            read_run(path, Wanted())
    aggregate.write_text(aggregate.read_text().replace('"sha256"', '"crc"'))
    with pytest.raises(KbrelError, match=r"json: .*crc"):
        read_run(aggregate, Wanted())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            GOOD[:-20],
            f":{ROWS}: is no JSON at character 53: Expecting value, and no li",
        ),
        (GOOD + "{,}\n" + GOOD, ":31: is no JSON at character 2"),
        (GOOD + row(31).replace("1.0", "1e400"), ":31: found 1e400; allowed: finite"),
        (GOOD + row(31, acc=1e300), ":31: acc is 1e+300; allowed: from -1e+12 to 1e+1"),
        (GOOD + '{"id": 1}\n', ":31: found no doc_id; allowed: a row of lm_eval"),
        (GOOD + "[1]\n", ":31: found list; allowed: an object a line"),
        (GOOD + row(31).replace("{", '{"acc": 0.0, '), ":31: key 'acc' stands twice"),
        (
            gzip.compress(GOOD.encode()),
            ":1: is packed with gzip; allowed: the file unp",
        ),
    ],
)
def test_a_damaged_row_is_named_with_its_file_and_line(
    text: str | bytes, says: str, compare: Compare
) -> None:
    done = compare(lm_eval("good", GOOD), lm_eval("other", text), DROP)
    assert (done.code, done.out, f"_{DATE}.jsonl{says}" in done.err) == (2, "", True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'id,score\n1,1\n2,"1\n3,1\n', ":4: cannot be read as CSV: unexpected end of"),
        (b"id,score\n1,inf\n", ":2: score is 'inf'; allowed: a number, true or false"),
        (b"id,score\n1,1\n\xe4,1\n", ":3: 'utf-8' codec"),
        (b"id,score\n1,1\n2\n", ":3: found more or fewer cells; allowed: 2 a row"),
        (b"id,id,score\n1,1,1\n", ":1: found the column 'id' twice; allowed: once"),
        (b"name,score\na,1\n", ":2: found no id (id, sample_id"),
        (b"id,points\na,1\n", ":2: found no score (score, correct"),
        (b"", ": found no scored row"),
    ],
)
def test_a_damaged_table_is_named_with_its_line(
    text: bytes, says: str, compare: Compare
) -> None:
    Path("a.csv").write_bytes(text)
    # Other readers of this process may have raised it.
    before = csv.field_size_limit(131_072)
    try:
        done = compare("a.csv", "a.csv", DROP)
    finally:
        csv.field_size_limit(before)
    assert (done.code, f"a.csv{says}" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"acc": float("nan")}, "invalid"),
        ({"acc": "1.0"}, "not run"),
        ({"doc_hash": "\ud800" * 99}, "not comparable"),
    ],
)
def test_what_is_odd_and_readable_is_no_pass(
    change: dict[str, Any], verdict: str, compare: Compare
) -> None:
    other = lm_eval("other", "".join(row(at, **change) for at in range(ROWS)))
    done = compare(lm_eval("good", GOOD), other, DROP)
    assert (done.gates, done.code, done.err) == ({"t acc": verdict}, 1, "")


def test_text_of_a_run_cannot_write_commands_to_the_terminal(compare: Compare) -> None:
    doc = {"question": "\x1b[31mred"}
    runs = [
        samples(name, [score] * ROWS, doc=doc, target="::error::x")
        for name, score in (("a", 1), ("b", 0))
    ]
    out = compare(*runs, DROP).out
    assert "red" in out
    assert not {"\x1b", "::error::"} & {*out, *out.split()}


def test_a_row_is_forgotten_but_for_what_is_compared_or_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = {
        "arguments": {"gen_args_0": {"arg_0": "shot " * 500}},
        "resps": [["because " * 250]],
    }
    text = "".join(
        row(at, target=f"t{at}" * 99, doc_hash=f"{at:064}", **more)
        for at in range(1000)
    )
    run = lm_eval("run", text)
    read_run(Path(lm_eval("good", GOOD)), Wanted())
    tracemalloc.start()
    (case,) = read_run(Path(run), Wanted(cluster="doc_id")).cases.values()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(case["acc"].table.rows) == 1000
    # The file has 5.1 million characters.
    assert most < 2_000_000


def test_the_package_that_reads_logs_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "inspect_ai.log", None)
    (tmp_path / "a.eval").write_bytes(b"PK\x03\x04")
    with pytest.raises(KbrelError, match=r'pip install "pytest-kbrel\[inspect\]"'):
        read_run(tmp_path / "a.eval", Wanted())


@pytest.mark.filterwarnings("default")
def test_inspect_has_tasks_epochs_scorers_and_a_sample_that_failed(
    compare: Compare,
) -> None:
    logs = pytest.importorskip("inspect_ai.log", exc_type=ImportError)
    a, b = MADE / "inspect" / "a", MADE / "inspect" / "b"
    cases = compare(a, b, DROP, "--cluster=unit").cases
    assert [*cases] == ["biology", "physics"]
    # In the second epoch both runs have all right.
    assert values(cases["biology"])["match"] == (0.8571, 0.5, 7)
    names = ("match", "lengths/letters", "lengths/capital")
    assert set(cases["biology"]["figures"]) == {*names}
    assert "have several of match" in cases["biology"]["obstacle"]
    assert "1 rows of" in cases["biology"]["obstacle"]
    # What ended in an error counts as lost, and two models are not one run.
    for path in sorted(a.glob("*.eval")):
        for folder in ("errors", "models", "asked"):
            log = logs.read_eval_log(str(path))
            log.eval.model += (folder == "models" and path.name) or ""
            for sample in log.samples or []:
                if folder == "errors" and sample.epoch == 1:
                    sample.scores = {}
                if folder == "asked":
                    sample.target = f"{sample.target} or so"
            Path(folder).mkdir(exist_ok=True)
            name = path.name if folder == "errors" else f"{path.stem}.json"
            logs.write_eval_log(log, str(Path(folder, name)))
    assert {*compare(a, "errors", DROP).gates.values()} == {"invalid"}
    assert {*compare(a, "asked", DROP).gates.values()} == {"not comparable"}
    assert "found 2 models: mockllm" in compare(a, "models", DROP).err
