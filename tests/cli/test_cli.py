from __future__ import annotations

import json

import pytest

from pytest_kbrel.cli import main


@pytest.mark.parametrize("of", ["suite", "report"])
def test_schema_prints_a_json_schema(of, capsys):
    assert main(["schema", of]) == 0
    assert json.loads(capsys.readouterr().out)["$schema"].startswith("https://json-schema.org/")


def test_without_a_command_it_says_what_there_is(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
