"""What every reader says of a file made to exhaust it: the file, the line, what was found and allowed."""

from __future__ import annotations

import gzip
import json
import lzma
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_kbrel.baselines.format import load_tables, read_compressed, read_meta
from pytest_kbrel.baselines.reading import read_published
from pytest_kbrel.errors import KbrelError, ModelError, StoreError
from pytest_kbrel.facts.files import read_relations
from pytest_kbrel.facts.question_set import Columns, Dump, Rules, build_question_set
from pytest_kbrel.facts.readers import FORMATS, Relations, read, read_own_facts
from pytest_kbrel.models.arguments import parse_chat_args
from pytest_kbrel.models.base import check_size
from pytest_kbrel.models.cache.store import FILE, Store
from pytest_kbrel.models.checkpoint.files import (
    digest_of_tensors,
    read_config,
    weight_files,
)
from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.scripted import read_script
from pytest_kbrel.records import Failed, Generated, GenerateRequest
from pytest_kbrel.reports.json_report import read_report
from pytest_kbrel.store.run_store import RunStore
from pytest_kbrel.untrusted import LINE, MIB
from tests.store.test_run_store import WHAT, loaded, said

DEEP = "[" * 100_000 + "]" * 100_000
LEVELS = "nested more than 100 levels deep; allowed: at most 100"
FACT = '{"relation": "P36", "subject": "Peru", "object": "Lima"}\n'


def facts_of(form: str) -> Callable[[Path], object]:
    def result(path: Path) -> object:
        for row in read(FORMATS[form], [path], Relations()):
            if row.error is not None:
                raise row.error
        return None

    return result


def responses(path: Path) -> object:
    return RunStore().load([path], lambda *_: "")


def xz(path: Path) -> object:
    return load_tables(read_compressed(path, 10))


# By what it reads: (name of its file, what stands before the deep part, the line, the reader).
JSON_READERS: dict[str, tuple[str, str, str, Callable[[Path], object]]] = {
    "facts": ("f.jsonl", FACT, ":2", read_own_facts),
    "facts to import": ("f.jsonl", FACT, ":2", facts_of("jsonl")),
    "questions": ("q.json", "[", ":1", facts_of("qa")),
    "a list in a table": (
        "f.csv",
        "relation,subject,object,aliases\nP1,a,b,",
        ":2",
        facts_of("csv"),
    ),
    "a list in a public table": (
        "q.tsv",
        "id\tsubj\tprop\tobj\ts_pop\tquestion\tpossible_answers\n1\ta\tp\tb\t5\tWhat?\t",
        ":2",
        facts_of("popqa"),
    ),
    "a script": ("s.jsonl", '{"prompt": "x", "text": "y"}\n', ":2", read_script),
    "responses": ("responses.jsonl", "", ":1", responses),
    "a report": ("report.json", "", "", read_report),
    "a baseline": ("baseline.json", "", "", lambda path: read_meta(path.parent)),
    "a checkpoint": ("config.json", "", "", lambda path: read_config(path.parent)),
    "shards": (
        "model.safetensors.index.json",
        "",
        "",
        lambda path: weight_files(path.parent),
    ),
}


@pytest.mark.parametrize("name", JSON_READERS)
def test_json_of_100_000_levels_is_an_error_with_its_place(
    tmp_path: Path, name: str
) -> None:
    file, before, line, reader = JSON_READERS[name]
    path = tmp_path / file
    path.write_text(before + DEEP, "utf-8")
    with pytest.raises(KbrelError) as caught:
        reader(path)
    assert str(caught.value).startswith(f"{path}{line}: ")
    assert LEVELS.split(";")[0] in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 500


def test_figures_of_a_paper_of_100_000_levels(tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "x.json").write_text(DEEP)
    with pytest.raises(KbrelError, match=f"x.json: cannot be read: {LEVELS}"):
        read_published("published/x", [tmp_path])


def test_outcomes_of_100_000_levels(tmp_path: Path) -> None:
    path = tmp_path / "o.xz"
    path.write_bytes(lzma.compress(DEEP.encode() + b"\n"))
    with pytest.raises(ValueError, match=LEVELS):
        xz(path)


def test_a_tensor_file_whose_header_has_100_000_levels(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(DEEP).to_bytes(8, "little") + DEEP.encode())
    with pytest.raises(ModelError, match=r"no safetensors file: .*100 levels"):
        digest_of_tensors([path])


def test_arguments_of_100_000_levels() -> None:
    deep = '{"a": ' * 100_000 + "1" + "}" * 100_000
    with pytest.raises(ModelError, match=LEVELS):
        parse_chat_args({"chat_template_args": deep})
    with pytest.raises(ModelError, match="device_map: no JSON: maximum recursion"):
        parse_spec("reference", f"device_map={deep}")


# By what it reads: (name of the file, its beginning, the line of the long part, the reader). Zeros follow.
LONG_LINES: dict[str, tuple[str, bytes, str, Callable[[Path], object]]] = {
    "facts": ("f.jsonl", FACT.encode(), ":2", read_own_facts),
    "a table": ("f.csv", b"relation,subject,object\nP1,a,b\n", ":3", facts_of("csv")),
    "a public table": ("q.tsv", b"", ":1", facts_of("popqa")),
    "a script": ("s.jsonl", b"", ":1", read_script),
    "responses": (
        "responses.jsonl",
        b"",
        ":1",
        responses,
    ),
}


@pytest.mark.parametrize("name", LONG_LINES)
def test_a_line_of_a_gigabyte_is_an_error_with_its_place(
    tmp_path: Path, name: str
) -> None:
    file, before, line, reader = LONG_LINES[name]
    path = tmp_path / file
    path.write_bytes(before)
    with path.open("r+b") as stream:
        stream.truncate(1024 * MIB)
    with pytest.raises(KbrelError) as caught:
        reader(path)
    assert str(caught.value).startswith(f"{path}{line}: ")
    assert "16 MiB; allowed: at most 16 MiB" in str(caught.value)


DOCUMENTS: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "a report": ("report.json", "64 MiB", read_report),
    "questions": ("q.json", "512 MiB", facts_of("qa")),
    "a baseline": ("baseline.json", "64 MiB", lambda path: read_meta(path.parent)),
    "a checkpoint": ("config.json", "64 MiB", lambda path: read_config(path.parent)),
    "relations": ("relations.yaml", "16 MiB", read_relations),
    "a script": ("s.yaml", "16 MiB", read_script),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_a_gigabyte_is_an_error(tmp_path: Path, name: str) -> None:
    file, most, reader = DOCUMENTS[name]
    path = tmp_path / file
    path.touch()
    with path.open("r+b") as stream:
        stream.truncate(1024 * MIB)
    with pytest.raises(KbrelError) as caught:
        reader(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert f"found more than {most}; allowed: at most {most}" in str(caught.value)


def test_outcomes_are_bounded_by_the_number_of_their_facts(tmp_path: Path) -> None:
    path = tmp_path / "o.xz"
    path.write_bytes(lzma.compress(bytes(3 * MIB), preset=0))
    assert len(read_compressed(path, 64)) == 3 * MIB
    with pytest.raises(
        ValueError, match="it unpacks to more than 1 MiB; allowed: at most 1 MiB"
    ):
        read_compressed(path, 10)
    with pytest.raises(
        ValueError,
        match="found a number of about 400 digits as the number of its facts",
    ):
        read_compressed(path, 10**400)


def test_a_packed_dump_whose_first_line_has_no_end(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    path = tmp_path / "d.csv.gz"
    path.write_bytes(gzip.compress(bytes(4 * MIB), 1))
    with pytest.raises(
        KbrelError,
        match=r"d.csv.gz:1: the line of column .*: found a line of more than 1 MiB",
    ):
        build_question_set(
            Dump(path=path, format="csv", quotes=True),
            Columns(),
            (),
            tmp_path / "out",
            rules=Rules(),
        )


def test_a_parquet_file_of_a_few_bytes_that_stands_for_many(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "f.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT 'P1' AS relation, 's' || n AS subject, repeat('x', 17 << 20) AS object "
            f"FROM range(7) t(n)) TO '{path}'"
        )
    assert path.stat().st_size < MIB
    with pytest.raises(
        KbrelError, match=r"f.parquet:1: found a row of more than 16 MiB; allowed"
    ):
        facts_of("parquet")(path)


def test_an_answer_far_longer_than_its_tokens_is_a_failure_of_its_fact(
    tmp_path: Path,
) -> None:
    usual, long = (said("a", "x" * length).response for length in (14_000, 14_001))
    assert check_size(WHAT, long) == Failed(
        error="an answer of 14,001 characters to a question for 4 tokens; allowed: at most 14,000"
    )
    assert check_size(WHAT, usual) is usual


def test_a_recorded_line_of_another_size_than_its_index_knows_is_refused(
    tmp_path: Path,
) -> None:
    long = said("a", "x" * LINE)
    with pytest.raises(
        KbrelError, match=r"responses.jsonl:1: is no recorded response: .*16 MiB a line"
    ):
        loaded(tmp_path, long)


def test_a_kept_answer_longer_than_any_is_an_error_of_the_store(tmp_path: Path) -> None:
    Store(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as file:
        file.execute("INSERT INTO models (digest, described) VALUES ('m', '{}')")
        file.execute(
            "INSERT INTO answers VALUES (?, 1, 0, ?, x'00', NULL, 0)",
            (b"k", "x" * (LINE + 1)),
        )
    store = Store(tmp_path)
    with pytest.raises(
        StoreError,
        match="kept answers cannot be read or written: string or blob too big",
    ):
        store.get([b"k".hex()], "m")
    store.close()


def test_a_kept_answer_of_100_000_levels_is_an_error_of_the_store(
    tmp_path: Path,
) -> None:
    from pytest_kbrel.models.cache.store import _checksum

    store = Store(tmp_path)
    with pytest.raises(StoreError, match=f"is broken: {LEVELS}"):
        store.decode(b"k", DEEP, _checksum(b"k", DEEP))
    store.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "a: [" + "1, " * 300_000 + "1]\n",
            ":1: found more than 300,000 values; allowed: at most 300,000",
        ),
        (
            "? " + "-k" * 50_000 + "\n: {label: x, domain: y}\n",
            ":1: a relation's id must be",
        ),
        ("P1:\n  label: x\n  ? " + "k" * 100_000 + "\n  : 1\n", ":3: unknown key 'kkk"),
    ],
)
def test_a_yaml_file_that_unfolds_to_far_more(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "relations.yaml"
    path.write_text(text)
    with pytest.raises(KbrelError) as caught:
        read_relations(path)
    assert words in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 300


def test_a_billion_laughs_are_one_value(tmp_path: Path) -> None:
    path = tmp_path / "relations.yaml"
    laughs = "a0: &a0 [lol]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40)
    )
    path.write_text(laughs)
    with pytest.raises(
        KbrelError,
        match=r"relations.yaml:1: relation a0 must be a mapping, found a list",
    ):
        read_relations(path)


@pytest.mark.parametrize(
    ("file", "form", "text", "line"),
    [
        ("f.csv", "csv", "relation,subject,object\nP1,a,b\nP1,c\0,d\n", 3),
        ("f.csv", "csv", "relation,subject\0,object\nP1,a,b\n", 1),
        ("f.csv", "csv", 'relation,subject,object\nP1,a,"b\n\0"\n', 2),
        (
            "q.tsv",
            "popqa",
            "id\tsubj\tprop\tobj\ts_pop\tquestion\tpossible_answers\n1\ta\0\tp\tb\t5\tWhat?\t[]\n",
            2,
        ),
        ("f.jsonl", "jsonl", FACT + FACT.replace("Lima", "Li\\u0000ma"), 2),
        ("f.jsonl", "jsonl", FACT + FACT.replace("Lima", "Li\0ma"), 2),
    ],
)
def test_a_nul_in_facts_is_an_error_with_its_line(
    tmp_path: Path, file: str, form: str, text: str, line: int
) -> None:
    path = tmp_path / file
    path.write_text(text, "utf-8")
    with pytest.raises(KbrelError, match=r"NUL|control character|x00") as caught:
        facts_of(form)(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_the_rows_behind_a_nul_are_read(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("relation,subject,object\nP1,a\0,b\nP1,c,d\n")
    rows = list(read(FORMATS["csv"], [path], Relations()))
    assert [row.fact and row.fact.object for row in rows] == [None, "d"]
    assert "f.csv:2: 'subject' must be text of one line without NUL" in str(
        rows[0].error
    )


@pytest.mark.parametrize("device", ["meta", "meta:0"])
def test_a_device_that_computes_nothing_is_refused(device: str) -> None:
    said_of_it = f"reference: found device '{device}', which holds no numbers and computes none; allowed: auto"
    with pytest.raises(ModelError, match=said_of_it):
        parse_spec("reference", device=device)
    with pytest.raises(ModelError, match=said_of_it):
        parse_spec("reference", f"device={device}")


def test_json_lines_are_still_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_bytes(json.dumps({"case": 1}).encode() + b"\n")
    with pytest.raises(
        KbrelError, match=r"responses.jsonl:1: .*'case' must be a string, found 1"
    ):
        responses(path)


def test_an_answer_within_its_size_is_itself() -> None:
    asked = GenerateRequest(prompt="p", max_new_tokens=1)
    given = Generated(
        text="x" * 11_001,
        token_ids=(),
        finish="stop",
        prompt_tokens=1,
        prompt_digest="",
    )
    assert isinstance(check_size(asked, given), Failed)
