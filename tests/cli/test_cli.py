from __future__ import annotations

import json

import pytest

from pytest_kbrel.cli import main


def test_init_copies_suites_and_baselines_and_overwrites_nothing(tmp_path, capsys):
    assert main(["init", str(tmp_path)]) == 0
    assert (tmp_path / "suites/world.kb.yaml").is_file()
    assert (tmp_path / "baselines/reference/baseline.json").is_file()
    capsys.readouterr()
    assert main(["init", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("of", ["suite", "report"])
def test_schema_prints_a_json_schema(of, capsys):
    assert main(["schema", of]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")


def test_without_a_command_it_says_what_there_is(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
