"""What of two reports may differ, which reports are read, and which files belong to one."""

import hashlib
import json
from dataclasses import replace

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import GateResult
from pytest_kbrel.reports.json_report import (
    check_file,
    read_report,
    report_dict,
    write_json,
)


@pytest.mark.parametrize(
    ("counted", "ps", "note"),
    [
        (0, (), ""),
    ],
)
def test_comparisons_are_counted_as_they_were_planned_and_made(
    counted, ps, note, small_run
):
    plain = GateResult(metric="m", rule="max_drop", bound=0, verdict="pass")
    gates = (plain, *(replace(plain, p=p) for p in ps))
    run = replace(
        small_run,
        comparisons=counted,
        cases=(replace(small_run.cases[0], gates=gates),),
    )
    assert report_dict(run)["comparisons"] == {
        "counted": counted,
        "made": len(ps),
        "note": note,
    }


# Terminals obey some of these characters, and others mislead readers.
ESCAPED = (
    "\x7f\x80\x85\x9b\x9f\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\udfff\ud800"
)
PLAIN = "~ ÿ\xa0\u200d\u2010\u2027\u202f\u2065\u206a東\ud7ff\ue000"


def test_characters_that_terminals_obey_are_escaped_and_others_left(
    empty_run, tmp_path
):
    path = tmp_path / "report.json"
    write_json(replace(empty_run, recorded=ESCAPED + PLAIN), path)
    text = path.read_text(encoding="utf-8")
    assert not set(text) & set(ESCAPED)
    assert PLAIN in text
    assert "".join(f"\\u{ord(char):04x}" for char in ESCAPED) in text
    assert read_report(path)["recorded"] == ESCAPED + PLAIN
    assert text.endswith("}\n")


@pytest.mark.parametrize("version", [0, False, "1", 1.0])
def test_a_version_is_a_number_from_one(version, small_run, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(
        json.dumps({**report_dict(small_run), "schema_version": version}),
        encoding="utf-8",
    )
    with pytest.raises(
        KbrelError, match=f"schema_version is {version!r}, needed is a number from 1$"
    ):
        read_report(path)


NEEDED = (
    *(
        "schema_version",
        "kbrel_version",
        "created",
        "model",
        "environment",
        "settings",
        "cases",
    ),
    *("aggregates", "correlations", "summary", "exit_status", "complete", "problems"),
)


@pytest.mark.parametrize("key", NEEDED[1:])
def test_a_report_that_lacks_a_part_is_no_whole_one(key, small_run, tmp_path):
    report = report_dict(small_run)
    del report[key]
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    with pytest.raises(KbrelError, match=f": is no whole report: {key} missing$"):
        read_report(path)


def test_older_reports_lack_what_was_added_later(small_run, tmp_path):
    report = {
        key: content for key, content in report_dict(small_run).items() if key in NEEDED
    }
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    assert read_report(path) == report


def test_a_file_belongs_to_the_report_that_names_its_digest(tmp_path):
    path = tmp_path / "responses.jsonl"
    path.write_bytes(b"one\n")
    good = hashlib.sha256(b"one\n").hexdigest()
    for report in (
        {"files": {path.name: good}},
        {"files": {"other": "0"}},
        {"files": None},
        {"files": []},
        {},
    ):
        check_file(report, path)
    with pytest.raises(KbrelError) as caught:
        check_file({"files": {path.name: "0" * 64}}, path)
    assert str(caught.value) == (
        f"{path}: is not the file that {tmp_path / 'report.json'} was written with (sha256 {good[:12]}, "
        "not 000000000000); allowed: a report folder as one run wrote it"
    )
    # What names no digest is none.
    with pytest.raises(KbrelError, match="is not the file"):
        check_file({"files": {path.name: ""}}, path)
    with pytest.raises(KbrelError, match="cannot be read"):
        check_file({"files": {path.name: good}}, tmp_path / "nowhere" / path.name)
    check_file({}, tmp_path / "nowhere" / path.name)
