"""Checks before a run: refused settings, unused flags, the session header."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.registry import read_spec
from pytest_kbrel.plugin.activation import Planner
from pytest_kbrel.plugin.activation import start as begin
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.preflight import check, unused_flags
from pytest_kbrel.records import Fact
from pytest_kbrel.reports import REPORT_FILES
from tests.made_cases import made_case, made_options, made_suite
from tests.stub_config import StubConfig

REPORTS = (
    "report.json",
    "report.html",
    "summary.md",
    "responses.jsonl",
    "outcomes.jsonl.xz",
)


def checked(
    folder: Path,
    *,
    line: tuple[str, ...] = (),
    typed: dict[str, str] | None = None,
    **settings: Any,
) -> Any:
    config = cast(pytest.Config, StubConfig(folder, line=line, **(typed or {})))
    return check(config, made_options(output_path=folder / "out", **settings))


def test_the_reports_of_a_run_are_these_five() -> None:
    assert REPORT_FILES == REPORTS


def test_settings_with_which_a_run_can_be(tmp_path: Path) -> None:
    for settings in (
        {},
        {"baseline_model": "reference:pruned"},
        {"baseline_update": "next", "baseline_reason": "why"},
        {"attribute": 1},
        {"prices": (1.0, 1.0), "plan": True},
    ):
        assert checked(tmp_path, **settings) is None
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "./nowhere"}, "nowhere"),
        ({"baseline_model": "./nowhere"}, "^--kb-baseline-model: .*nowhere"),
        (
            {"baseline_model": "reference", "baseline": "prod"},
            "found both, reference and prod; allowed: one",
        ),
        ({"judge": "oracle"}, "--kb-judge: found 'oracle'"),
        (
            {"model": "openai/m", "model_args": "base_url=http://x/v1", "attribute": 1},
            "the backend openai has none",
        ),
        (
            {"model": "openai/m", "model_args": "base_url=http://x/v1", "top_k": 5},
            r"--kb-top-k: found 5 with openai/m, .*; allowed: models that do \(hf/..., vllm/...\), or 0",
        ),
        (
            {"baseline_model": "openai/m,base_url=http://x/v1", "top_k": 5},
            "--kb-top-k: found 5 with openai/m",
        ),
        ({"baseline_update": "next", "limit": 3}, "blesses complete runs only"),
        ({"baseline_update": "next", "limit": 0.5}, "blesses complete runs only"),
        ({"baseline": "prod"}, "prod"),
        ({"baseline_update": "here/file"}, "here/file"),
    ],
)
def test_settings_with_which_no_run_can_be(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").touch()
    if "baseline_update" in settings and "limit" not in settings:
        settings = settings | {"baseline_update": str(tmp_path / "here" / "file")}
    with pytest.raises((pytest.UsageError, KbrelError), match=message):
        checked(tmp_path, **settings)


@pytest.mark.parametrize(
    ("line", "settings", "message"),
    [
        (
            ("--kb-prices=1,1",),
            {},
            "^--kb-prices: found without --kb-plan or max_cost in .*; allowed: with it",
        ),
        (("--kb-prices=1,1",), {"plan": True}, ""),
        (
            ("--kb-baseline-reason=x",),
            {},
            "^--kb-baseline-reason: found without --kb-baseline-update; allowed:",
        ),
        (("--kb-baseline-reason", "x"), {"baseline_update": "next"}, ""),
        # In ini file or environment they may be there for other runs.
        ((), {"prices": (1.0, 1.0), "baseline_reason": "x"}, ""),
        (
            ("--kb-from-run=",),
            {},
            r"^--kb-from-run: found nothing \(an unset variable\?\)",
        ),
    ],
)
def test_what_is_typed_and_would_be_ignored(
    tmp_path: Path, line: tuple[str, ...], settings: dict[str, Any], message: str
) -> None:
    if not message:
        checked(tmp_path, line=line, **settings)
        return
    with pytest.raises(pytest.UsageError, match=message):
        checked(tmp_path, line=line, **settings)


def test_an_unset_record_beside_a_typed_model_is_none(tmp_path: Path) -> None:
    checked(
        tmp_path,
        line=("--kb-from-run=", "--kb-model=reference"),
        typed={"model": "reference"},
    )


def test_reports_go_to_a_folder_that_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for output in (tmp_path / "file", tmp_path / "file" / "deep" / "er"):
        with pytest.raises(
            pytest.UsageError,
            match=r"--kb-output-path: .*/file is a file; allowed: a folder",
        ):
            check(
                cast(pytest.Config, StubConfig(tmp_path)),
                made_options(output_path=output),
            )


@pytest.mark.parametrize("name", REPORTS)
def test_no_folder_stands_where_a_report_goes(tmp_path: Path, name: str) -> None:
    (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(
        pytest.UsageError, match=rf"{name} is a folder, and a report goes there"
    ):
        checked(tmp_path)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with all reports of an older run, and a file of somebody else's."""
    folder = tmp_path / "kbrel-report"
    folder.mkdir()
    for name in (*REPORTS, "notes.md"):
        (folder / name).write_text("old")
    return folder


def test_a_run_that_is_refused_leaves_no_report_of_an_older_one(old: Path) -> None:
    config = StubConfig(old.parent, model="./nowhere")
    with pytest.raises(pytest.UsageError, match="nowhere"):
        begin(cast(pytest.Config, config))
    assert {path.name for path in old.iterdir()} == {"notes.md", "previous"}
    assert {path.name for path in (old / "previous").iterdir()} == set(REPORTS)


def test_a_run_that_has_cases_to_run_takes_all_older_reports_away(old: Path) -> None:
    options = made_options(output_path=old)
    recorder = Recorder(cast(pytest.Config, StubConfig(old.parent)), options, None)
    recorder.expect(["tests/test_own.py::test_x"])
    assert len(list(old.iterdir())) == 6
    # That suite is not there; the reports go all the same, and the run will say so.
    recorder.expect(["gone.kb.yaml::monitor[a]"])
    assert {path.name for path in old.iterdir()} - {".parts"} == {
        "notes.md",
        "previous",
    }


@pytest.mark.parametrize(
    ("settings", "header"),
    [
        ({}, "model reference"),
        ({"judge": "openai/j"}, "model reference, judge openai/j"),
        ({"baseline": "prod"}, "model reference, baseline prod"),
        ({"baseline_model": "other"}, "model reference, baseline model other"),
    ],
)
def test_the_header_names_model_judge_and_baseline(
    tmp_path: Path, settings: dict[str, str], header: str
) -> None:
    config = cast(pytest.Config, StubConfig(tmp_path))
    options = made_options(output_path=tmp_path / "out", **settings)
    who, *others = Recorder(config, options, None).pytest_report_header()
    assert who == f"kbrel: {header}"
    assert [line.partition(" (")[0] for line in others] == [
        f"kbrel: loading {name}"
        for name in ("reference", settings.get("baseline_model"))
        if name
    ]
    again = replace(options, from_run=tmp_path / "deep" / "run")
    assert Recorder(config, again, None).pytest_report_header() == [
        f"kbrel: deciding again over deep/run ({header}); no model is loaded, reports go to out"
    ]


def test_the_header_names_flags_without_effect(tmp_path: Path) -> None:
    options = made_options(output_path=tmp_path / "out", model_args="batch_size=8")
    lines = Recorder(
        cast(pytest.Config, StubConfig(tmp_path)), options, None
    ).pytest_report_header()
    assert lines[0] == "kbrel: model reference"
    assert lines[1].startswith("kbrel: loading reference (")
    assert lines[2].startswith(
        "kbrel: model-args: batch_size=8 is not used: it counts sequences"
    )
    assert len(lines) == 3
    plan = Planner(
        cast(pytest.Config, StubConfig(tmp_path)), options, None
    ).pytest_report_header()
    assert plan == ["kbrel: plan for model reference; nothing is run", lines[2]]


MONITOR, ANSWERS = "mini.kb.yaml::monitor[a]", "mini.kb.yaml::head_to_tail[a]"
FACT = Fact(id="f", relation="P36", subject="France", object="Paris")
EXPLAINS = (
    "--kb-attribute=2 is not used: it explains MONITOR cases, and none is selected"
)
JUDGES = "--kb-judge=openai/j is not used: no case is selected whose answers it judges"


def unused(
    typed: dict[str, str], expected: set[str], judge: str = "openai/j"
) -> tuple[str, ...]:
    answers = replace(made_case("head_to_tail[a]"), facts=(FACT,), judge=judge)
    suite = made_suite(made_case("monitor[a]"), answers)
    config = cast(pytest.Config, StubConfig(Path(), **typed))
    options = made_options(
        attribute=int(typed.get("attribute", 0)),
        judge=cast(Any, typed.get("judge", "openai/j")),
    )
    return unused_flags(config, options, [suite], expected)


@pytest.mark.parametrize(
    ("typed", "expected", "messages"),
    [
        ({"attribute": "2", "judge": "openai/j"}, {MONITOR, ANSWERS}, ()),
        ({"attribute": "2"}, {ANSWERS}, (EXPLAINS,)),
        ({"judge": "openai/j"}, {MONITOR}, (JUDGES,)),
        ({"attribute": "0", "judge": "rules"}, set(), ()),
        # Not typed, they are for other suites.
        ({}, set(), ()),
    ],
)
def test_flags_that_no_selected_case_needs_are_reported(
    typed: dict[str, str], expected: set[str], messages: tuple[str, ...]
) -> None:
    assert unused(typed, expected) == messages


def test_a_judge_that_no_case_has_is_reported() -> None:
    assert unused({"judge": "openai/j"}, {ANSWERS}, judge="rules") == (JUDGES,)


def test_unused_flags_are_in_the_report_and_below_the_collected_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = made_suite(made_case("head_to_tail[a]"))
    monkeypatch.setattr(
        "pytest_kbrel.plugin.worker.suites_of", lambda config, nodeids, options: [suite]
    )
    config = cast(pytest.Config, StubConfig(tmp_path, attribute="2"))
    recorder = Recorder(
        config, made_options(output_path=tmp_path / "out", attribute=2), None
    )
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
