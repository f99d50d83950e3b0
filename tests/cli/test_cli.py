from __future__ import annotations

import json

import pytest

from pytest_kbrel.cli import main


def test_without_a_command_the_list_of_commands_is_printed(capsys):
    assert main([]) == 0
    assert "compare" in capsys.readouterr().out


@pytest.mark.parametrize("of", ["suite", "report"])
def test_schema_prints_a_json_schema(of, capsys):
    assert main(["schema", of]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith(
        "https://json-schema.org/"
    )


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (["labels", "run", "--number", "0"], "found '0'; allowed: a whole number"),
    ],
)
def test_a_wrong_call_is_one_json_document_too(call, found, capsys):
    for arguments in (call, [*call, "--json"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 2
        out, err = capsys.readouterr()
        assert found in err
        assert err.startswith("usage: kbrel")
        if arguments is call:
            assert not out
        else:
            (only,) = json.loads(out).items()
            assert only[0] == "error"
            assert found in only[1]


@pytest.mark.parametrize(
    "call",
    [
        ("comment", "run"),
        ("compare", "run", "reference"),
        ("export", "run", "--format=csv", "--output=out.csv"),
        ("labels", "run", "--output=out.jsonl"),
        ("merge", "run", "--output=out"),
        ("report", "run"),
    ],
)
def test_a_report_that_the_next_run_moved_is_found_by_its_error(
    call, tmp_path, monkeypatch, capsys
):
    (tmp_path / "run" / "previous").mkdir(parents=True)
    (tmp_path / "run" / "previous" / "report.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert main(call) == 2
    assert "the one before: run/previous/report.json" in capsys.readouterr().err
