"""Sessions with MONITOR over a server: refused without probabilities, and told by what they are given."""

from __future__ import annotations

import pytest

from pytest_kbrel.cli import main
from tests.models.openai import scoring_server
from tests.models.openai.scoring_server import ROUTES
from tests.plugin.conftest import HEADER, ONE

MONITOR = (
    HEADER + "monitor:\n  negatives: 2\n  gates:\n    anchor_prob: {recovery: 0.5}\n"
)
VLLM, STEPS, *_ = ROUTES


@pytest.fixture
def scoring(openai_server):
    """Return a function that makes the loopback server score in a dialect, and gives a run's arguments."""

    def serve(routes):
        openai_server.routes = {"/tokenize": scoring_server.tokenize, **routes}
        args = f"base_url={openai_server.base_url},endpoint=completions,max_retries=0"
        return "--kb-model=openai/judge", f"--kb-model-args={args}", "suites"

    return serve


def test_without_log_probabilities_monitor_is_refused_before_anything_is_asked(
    pytester, mini_suite, scoring, openai_server
):
    mini_suite(MONITOR)
    result = pytester.runpytest(*scoring({"completions": scoring_server.writer}))
    assert result.ret == 4
    told = result.stderr.str()
    assert (
        "MONITOR needs token probabilities, and openai/judge gives none: tried were"
        in told
    )
    for way in ROUTES:
        assert way in told
    assert "no such path" in told
    assert '-k "not monitor"' in told
    # The probe has a question of its own.
    assert not any("China" in str(call.body) for call in openai_server.calls)
    assert not (pytester.path / "kbrel-report").exists()


def test_without_log_probabilities_other_cases_are_asked_and_nothing_is_probed(
    pytester, mini_suite, scoring, openai_server
):
    mini_suite(ONE)
    result = pytester.runpytest(*scoring({"completions": scoring_server.writer}))
    assert result.ret == 0
    assert all(
        isinstance(call.body["prompt"], str)
        for call in openai_server.calls_to("completions")
    )
    assert not openai_server.calls_to("/tokenize")


def test_the_way_is_told_in_every_report_and_as_a_difference(
    pytester, mini_suite, scoring, report, capsys
):
    mini_suite(MONITOR)
    told = [
        f"probabilities by {way}, token ids by the server's /tokenize"
        for way in (VLLM, STEPS)
    ]
    for way, folder in ((VLLM, "one"), (STEPS, "two")):
        result = pytester.runpytest(
            *scoring(ROUTES[way]),
            f"--kb-output-path={folder}",
            "--kb-use-cache=off",
            "--kb-limit=3",
        )
        assert f"the server gives probabilities by {way}" in " ".join(
            result.stdout.str().split()
        )
    for folder, words in zip(("one", "two"), told, strict=True):
        written = report(folder)
        assert words in written["model"]["backend_version"]
        assert words in written["environment"]["model_notes"]
        assert words.replace("'", "&#39;") in (
            pytester.path / folder / "report.html"
        ).read_text("utf-8")
    capsys.readouterr()
    assert main(["compare", "one", "two", "-v"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{VLLM}" in shown
    assert f"{STEPS}" in shown
