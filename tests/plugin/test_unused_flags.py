"""Flags that were typed and have no effect on the cases that are to run: said before anything is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_kbrel.models.registry import read_spec
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.preflight import unused_flags
from pytest_kbrel.records import Fact
from tests.made_cases import made_case, made_options, made_suite
from tests.stub_config import StubConfig

MONITOR, ANSWERS = "mini.kb.yaml::monitor[a]", "mini.kb.yaml::head_to_tail[a]"
FACT = Fact(id="f", relation="P36", subject="France", object="Paris")
EXPLAINS = "--kb-attribute=2 is not used: it explains MONITOR cases, and none is selected"
JUDGES = "--kb-judge=openai/j is not used: no case is selected whose answers it judges"


def unused(typed: dict[str, str], expected: set[str], judge: str = "openai/j") -> tuple[str, ...]:
    answers = replace(made_case("head_to_tail[a]"), facts=(FACT,), judge=judge)
    suite = made_suite(made_case("monitor[a]"), answers)
    config = cast(pytest.Config, StubConfig(Path(), **typed))
    options = made_options(
        attribute=int(typed.get("attribute", 0)), judge=cast(Any, typed.get("judge", "openai/j"))
    )
    return unused_flags(config, options, [suite], expected)


@pytest.mark.parametrize(
    ("typed", "expected", "told"),
    [
        ({"attribute": "2", "judge": "openai/j"}, {MONITOR, ANSWERS}, ()),
        ({"attribute": "2"}, {ANSWERS}, (EXPLAINS,)),
        ({"judge": "openai/j"}, {MONITOR}, (JUDGES,)),
        ({"attribute": "0", "judge": "rules"}, set(), ()),
        # Not typed, they are for other suites.
        ({}, set(), ()),
    ],
)
def test_what_no_selected_case_needs_is_told(
    typed: dict[str, str], expected: set[str], told: tuple[str, ...]
) -> None:
    assert unused(typed, expected) == told


def test_a_judge_that_no_case_has_is_told() -> None:
    assert unused({"judge": "openai/j"}, {ANSWERS}, judge="rules") == (JUDGES,)


def test_they_stand_in_the_report_and_below_what_was_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = made_suite(made_case("head_to_tail[a]"))
    monkeypatch.setattr("pytest_kbrel.plugin.worker.suites_of", lambda config, nodeids, options: [suite])
    config = cast(pytest.Config, StubConfig(tmp_path, attribute="2"))
    recorder = Recorder(config, made_options(output_path=tmp_path / "out", attribute=2), None)
    assert recorder.pytest_report_collectionfinish() == []
    recorder.expect([ANSWERS])
    assert recorder.pytest_report_collectionfinish() == [f"kbrel: {EXPLAINS}"]
    assert list(recorder._results.notes) == [EXPLAINS]


def test_a_server_has_a_chat_template_of_its_own() -> None:
    spec = read_spec("openai/m", "base_url=http://x/v1", chat_template=True)
    assert cast(Any, spec).notes == (
        "--kb-apply-chat-template is not used: the server wraps messages in its own chat template",
    )
    assert cast(Any, read_spec("openai/m", "base_url=http://x/v1")).notes == ()
