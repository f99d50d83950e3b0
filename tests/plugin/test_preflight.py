"""Checks before a run: refused settings, unused flags, the session header."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.plugin.activation import start as begin
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.preflight import check, unused_flags
from pytest_kbrel.records import Fact
from tests.made_cases import made_case, made_options, made_suite
from tests.stub_config import StubConfig

REPORTS = (
    "report.json",
    "report.html",
    "summary.md",
    "responses.jsonl",
    "outcomes.jsonl.xz",
)


def checked(folder, *, line=(), typed=None, **settings):
    config = StubConfig(folder, line=line, **(typed or {}))
    return check(config, made_options(output_path=folder / "out", **settings))


def test_settings_with_which_a_run_can_be(tmp_path):
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
        ({"baseline_model": "./nowhere"}, "^--kb-baseline-model: .*nowhere"),
        (
            {"baseline_model": "reference", "baseline": "prod"},
            "found both, reference and prod; allowed: one",
        ),
        (
            {"model": "openai/m", "model_args": "base_url=http://x/v1", "attribute": 1},
            "the backend openai has none",
        ),
        (
            {"model": "openai/m", "model_args": "base_url=http://x/v1", "top_k": 5},
            r"--kb-top-k: found 5 with openai/m, .*; allowed: models that do \(hf/..., vllm/...\), or 0",
        ),
        ({"baseline_update": "next", "limit": 3}, "blesses complete runs only"),
        ({"baseline": "prod"}, "prod"),
        ({"baseline_update": "here/file"}, "here/file"),
    ],
)
def test_settings_with_which_no_run_can_be(tmp_path, settings, message):
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
        (("--kb-baseline-reason", "x"), {"baseline_update": "next"}, ""),
        ((), {"prices": (1.0, 1.0), "baseline_reason": "x"}, ""),
        (
            ("--kb-from-run=",),
            {},
            r"^--kb-from-run: found nothing \(an unset variable\?\)",
        ),
    ],
)
def test_what_is_typed_and_would_be_ignored(tmp_path, line, settings, message):
    if not message:
        checked(tmp_path, line=line, **settings)
        return
    with pytest.raises(pytest.UsageError, match=message):
        checked(tmp_path, line=line, **settings)


def test_reports_go_to_a_folder_that_can_be_written(tmp_path):
    (tmp_path / "file").touch()
    for output in (tmp_path / "file", tmp_path / "file" / "deep" / "er"):
        with pytest.raises(
            pytest.UsageError,
            match=r"--kb-output-path: .*/file is a file; allowed: a folder",
        ):
            check(StubConfig(tmp_path), made_options(output_path=output))


@pytest.mark.parametrize("name", REPORTS)
def test_no_folder_stands_where_a_report_goes(tmp_path, name):
    (tmp_path / "out" / name).mkdir(parents=True)
    with pytest.raises(
        pytest.UsageError, match=rf"{name} is a folder, and a report goes there"
    ):
        checked(tmp_path)


@pytest.fixture
def old(tmp_path):
    """A folder with all reports of an older run, and a file of somebody else's."""
    folder = tmp_path / "kbrel-report"
    folder.mkdir()
    for name in (*REPORTS, "notes.md"):
        (folder / name).write_text("old")
    return folder


def test_a_run_that_is_refused_leaves_no_report_of_an_older_one(old):
    config = StubConfig(old.parent, model="./nowhere")
    with pytest.raises(pytest.UsageError, match="nowhere"):
        begin(config)
    assert {path.name for path in old.iterdir()} == {"notes.md", "previous"}
    assert {path.name for path in (old / "previous").iterdir()} == set(REPORTS)


def test_a_run_that_has_cases_to_run_takes_all_older_reports_away(old):
    options = made_options(output_path=old)
    recorder = Recorder(StubConfig(old.parent), options, None)
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
        ({"judge": "openai/j"}, "model reference, judge openai/j"),
        ({"baseline_model": "other"}, "model reference, baseline model other"),
    ],
)
def test_the_header_names_model_judge_and_baseline(tmp_path, settings, header):
    config = StubConfig(tmp_path)
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


MONITOR, ANSWERS = "mini.kb.yaml::monitor[a]", "mini.kb.yaml::head_to_tail[a]"
FACT = Fact(id="f", relation="P36", subject="France", object="Paris")
EXPLAINS = (
    "--kb-attribute=2 is not used: it explains MONITOR cases, and none is selected"
)
JUDGES = "--kb-judge=openai/j is not used: no case is selected whose answers it judges"


def unused(typed, expected, judge="openai/j"):
    answers = replace(made_case("head_to_tail[a]"), facts=(FACT,), judge=judge)
    suite = made_suite(made_case("monitor[a]"), answers)
    config = StubConfig(Path(), **typed)
    options = made_options(
        attribute=int(typed.get("attribute", 0)), judge=typed.get("judge", "openai/j")
    )
    return unused_flags(config, options, [suite], expected)


@pytest.mark.parametrize(
    ("typed", "expected", "messages"),
    [
        ({"attribute": "2", "judge": "openai/j"}, {MONITOR, ANSWERS}, ()),
        ({"attribute": "2"}, {ANSWERS}, (EXPLAINS,)),
        ({"judge": "openai/j"}, {MONITOR}, (JUDGES,)),
    ],
)
def test_flags_that_no_selected_case_needs_are_reported(typed, expected, messages):
    assert unused(typed, expected) == messages


def test_unused_flags_are_in_the_report_and_below_the_collected_items(
    tmp_path, monkeypatch
):
    suite = made_suite(made_case("head_to_tail[a]"))
    monkeypatch.setattr(
        "pytest_kbrel.plugin.worker.suites_of", lambda config, nodeids, options: [suite]
    )
    config = StubConfig(tmp_path, attribute="2")
    recorder = Recorder(
        config, made_options(output_path=tmp_path / "out", attribute=2), None
    )
    assert recorder.pytest_report_collectionfinish() == []
    recorder.expect([ANSWERS])
    assert recorder.pytest_report_collectionfinish() == [f"kbrel: {EXPLAINS}"]
    assert list(recorder._results.notes) == [EXPLAINS]
