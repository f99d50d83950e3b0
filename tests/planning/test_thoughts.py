"""Plans of models that think: what is not counted is said, and what no run could do is refused."""

from __future__ import annotations

import pytest

from pytest_kbrel.models.registry import read_spec
from pytest_kbrel.planning.plan import PlannedModel
from tests.plugin.real_models.checkpoints import make_checkpoint
from tests.plugin.real_models.world import write_suite

URL = "base_url=http://localhost:1/v1"
NOT_COUNTED = "  thoughts are not counted: at most 64 tokens before each answer, if it thinks"


@pytest.mark.parametrize(
    ("text", "args", "thoughts"),
    [
        ("openai/some", URL, 2048),
        ("openai/some", f"{URL},max_thinking_tokens=9", 9),
        ("openai/some", f"{URL},enable_thinking=False", 0),
        ("openai/some", f"{URL},endpoint=completions", 0),
        ("openai/some", f"{URL},endpoint=completions,think_end_token=[done]", 2048),
        ("reference", "", 0),
        ("scripted/some.yaml", "", 0),
    ],
)
def test_a_plan_knows_who_may_think(text, args, thoughts):
    assert PlannedModel("--kb-model", text, read_spec(text, args), 1).counter.thoughts == thoughts


def test_a_plan_says_that_thoughts_are_not_counted_and_refuses_what_a_run_refuses(pytester):
    make_checkpoint(pytester.path / "model", "thinker", "deepseek-r1")
    write_suite(pytester.path / "suites")
    flags = ("--kb-model=model", "--kb-apply-chat-template", "--kb-plan", "suites")
    limit = "--kb-model-args=max_thinking_tokens=64"
    result = pytester.runpytest(*flags, limit, "-k", "world-head")
    assert NOT_COUNTED in result.outlines
    result = pytester.runpytest(*flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*MONITOR cannot be run: the model thinks*allowed: -k 'not monitor'*")
