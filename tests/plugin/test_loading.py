"""How long the checkpoint took to load, and how it computes its answers, is told in every output."""

from __future__ import annotations

import re

import pytest

from tests.plugin.conftest import one_line

MODEL = "--kb-model=reference"
ENGINE = "batches of up to [0-9]+ tokens, scored in packed rows, written in a loop of packed rows"


@pytest.mark.slow
def test_loading_is_told_from_every_process(pytester, mini_suite, report, plugin_args):
    mini_suite()
    result = pytester.runpytest(MODEL, "--kb-limit=3", "-k", "P36 or places-head", *plugin_args)
    told = report()["environment"]
    seconds = float(told["model_load_seconds"])
    assert 0 < seconds < 600
    # What was asked: MONITOR scores, both write.
    assert re.fullmatch(ENGINE, told["engine"])
    slowest = " by the slowest worker" if plugin_args else ""
    line = f"model loaded in {told['model_load_seconds']} s{slowest}; {told['engine']}"
    assert line in one_line(result)
    for name in ("summary.md", "report.html"):
        text = (pytester.path / "kbrel-report" / name).read_text(encoding="utf-8")
        assert f"model loaded in {told['model_load_seconds']} s{slowest}" in text


def test_nothing_is_tried_for_the_report(pytester, mini_suite, report):
    mini_suite()
    asked = (MODEL, "--kb-limit=3", "-k", "P36", "suites")
    pytester.runpytest(*asked)
    pytester.runpytest(*asked)
    told = report()["environment"]
    assert told["answers_reused"] == told["answers_asked"]
    assert "model_load_seconds" in told
    assert "engine" not in told


def test_a_served_model_loads_nothing_here(pytester, mini_suite, report, openai_server):
    mini_suite()
    pytester.runpytest(
        "--kb-model=openai/some",
        f"--kb-model-args=base_url={openai_server.base_url}",
        "-k",
        "places-head",
        "suites",
    )
    assert not {"model_load_seconds", "engine"} & {*report()["environment"]}
