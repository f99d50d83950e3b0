"""A run against a server whose budget is spent stops as an interrupted one, and the next one goes on."""

from __future__ import annotations

import openai  # noqa: F401  (in-process sessions forget new modules, and this one takes a second to load)
import pytest

from tests.openai_server import Fault
from tests.plugin.conftest import ONE, RENAMED, facts_file
from tests.plugin.served.runs import prompts, stored
from tests.reported import comparable


@pytest.fixture
def spend(server):
    """Let each reply state ten tokens, eight of them read."""
    usage = {"prompt_tokens": 8, "completion_tokens": 2, "total_tokens": 10}
    server.always = Fault(change=lambda reply: reply.update(usage=usage))
    return server


def with_args(gate, args):
    return (gate[0], f"{gate[1]},{args}", *gate[2:])


def test_a_run_stops_when_its_tokens_are_spent_and_goes_on_with_new_ones(
    pytester, mini_suite, report, resume_notes, spend, gate
):
    mini_suite(ONE)
    pytester.runpytest(*gate)
    whole = report()
    before = len(spend.calls)
    result = pytester.runpytest(*with_args(gate, "max_tokens_total=75"))
    assert result.ret == pytest.ExitCode.INTERRUPTED
    message = (
        "openai/judge: the budget of 75 tokens (max_tokens_total) is spent (80); run it again, it goes on: "
        "8 answers are kept"
    )
    result.stdout.fnmatch_lines(
        ["openai/judge: 64 tokens read and 16 written", f"*Exit: kbrel: {message} !"]
    )
    assert sum(prompts(spend, before).values()) == 8
    assert stored(pytester) == (8, 1)
    stopped = report()
    assert message in stopped["problems"]
    assert {case["verdict"] for case in stopped["cases"]} == {"pass", "not run"}
    assert not stopped["complete"]
    before = len(spend.calls)
    result = pytester.runpytest(*with_args(gate, "max_tokens_total=1000"))
    assert result.ret == 0
    # Four are new, and five are asked again to see whether it is the same model.
    assert sum(prompts(spend, before).values()) == 4 + 5
    assert comparable(report())["cases"] == comparable(whole)["cases"]
    assert (
        report()["environment"]["tokens_spent"]
        == "openai/judge: 72 tokens read and 18 written"
    )
    assert stored(pytester) == (0, 0)


def test_a_run_stops_when_its_money_is_spent(pytester, mini_suite, report, spend, gate):
    mini_suite(ONE)
    # A reply costs 8 * 1000 / 1e6 + 2 * 6000 / 1e6 = 0.02.
    flags = with_args(gate, "max_cost=0.1")
    result = pytester.runpytest(*flags, "--kb-prices=1000,6000")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "openai/judge: 40 tokens read and 10 written, 0.1000 by the prices given",
            "*Exit: kbrel: openai/judge: the budget of 0.1 (max_cost) is spent (0.1000); run it again*",
        ]
    )
    assert sum(prompts(spend).values()) == 5


def test_replies_without_usage_are_told_and_cost_nothing_is_not_said(
    pytester, mini_suite, spend, gate
):
    mini_suite(ONE)
    nothing = {"prompt_tokens": 0, "completion_tokens": 2, "total_tokens": 2}
    spend.inject(Fault(change=lambda reply: reply.update(usage=nothing)))
    result = pytester.runpytest(*gate)
    result.stdout.fnmatch_lines(
        ["openai/judge: 88 tokens read and 24 written, and replies without usage: 1"]
    )


def test_a_server_that_states_no_usage_ends_the_run_at_its_first_reply(
    pytester, mini_suite, server, gate
):
    server.always = Fault(change=lambda reply: reply.pop("usage"))
    mini_suite(ONE)
    result = pytester.runpytest(*with_args(gate, "max_tokens_total=1000"))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(
        ["*states no usage (prompt_tokens and completion_tokens), so that a budget*"]
    )
    assert len(prompts(server)) == 1
    assert pytester.runpytest(*gate).ret == 0


JUDGE = "--kb-judge=openai/judge"


@pytest.mark.parametrize(
    ("args", "flags", "said"),
    [
        (
            "max_tokens_total=9",
            ("-n2",),
            "--kb-model-args: found max_tokens_total with",
        ),
        ("max_tokens_total=9", ("--kb-use-cache=off",), "with --kb-use-cache=off"),
        ("max_cost=9", (), "openai/judge: found max_cost without prices"),
        ("", ("--kb-prices=1,1",), "--kb-prices: found without --kb-plan or max_cost"),
        (
            "max_cost=9",
            ("--kb-prices=1,1", JUDGE, "--kb-judge-args=max_cost=9"),
            "--kb-judge: openai/judge: found max_cost without prices",
        ),
        (
            "",
            ("--kb-baseline-model=openai/judge,max_tokens_total=9", "-n2"),
            "--kb-baseline-model: found max_",
        ),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused_before_anything_is_asked(
    pytester, mini_suite, server, gate, args, flags, said, monkeypatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    mini_suite(ONE)
    result = pytester.runpytest(*with_args(gate, args), *flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()
    assert not server.calls


def test_the_judge_has_a_budget_of_its_own(pytester, mini_suite, report, spend):
    mini_suite(ONE, facts_file(RENAMED))
    judge = (
        "--kb-judge=openai/judge",
        f"--kb-judge-args=base_url={spend.base_url},max_concurrent=1,max_tokens_total=30",
    )
    run = ("--kb-model=scripted/knows.jsonl", *judge, "suites")
    result = pytester.runpytest(*run)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "openai/judge (--kb-judge): 24 tokens read and 6 written",
            "*kbrel: --kb-judge: openai/judge: the budget of 30 tokens (max_tokens_total) is spent (30); *",
        ]
    )
    # What it said is kept.
    assert len(prompts(spend)) == 3
    pytester.runpytest(*run)
    assert len(prompts(spend)) == 6
