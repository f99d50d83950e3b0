"""The tokens of a plan are those that the model itself counts, and those that a run feeds."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.models.cache.caching_model import DeduplicatingModel
from pytest_kbrel.models.registry import open_counter, open_model, read_spec
from pytest_kbrel.models.token_counting import TokenEstimator
from pytest_kbrel.planning.cost_model import CostModel
from pytest_kbrel.planning.plan import PlannedModel, workload_of
from pytest_kbrel.planning.requests import DryRun
from pytest_kbrel.records import (
    Fact,
    GenerateRequest,
    HeadToTailSettings,
    MonitorSettings,
    ScoreRequest,
)
from tests.models.fedometer import Fedometer
from tests.planning.test_requests import FACTS, case
from tests.plugin.real_models.checkpoints import make_checkpoint
from tests.plugin.real_models.world import write_suite


def test_tokens_are_those_the_model_itself_counts():
    """Prompts and continuations of every cell, as the loaded checkpoint tokenises them."""
    spec = read_spec("reference")
    counter = open_counter(spec)
    assert counter.exact
    facts = [dataclasses.replace(fact, negatives=fact.negatives[:2]) for fact in FACTS]
    made = DryRun([case(MonitorSettings(negatives=2), *facts)], "most").calls()
    planned = [request for call in made for request in call.requests]
    model = open_model(spec)
    try:
        for request, answer in zip(
            planned, DeduplicatingModel(model).ask(planned), strict=True
        ):
            assert counter.prompt(request) == answer.prompt_tokens
            if isinstance(request, ScoreRequest):
                assert counter.continuation(request) == len(answer.token_ids)
    finally:
        model.close()


def test_the_tokens_fed_are_those_that_a_run_feeds():
    """By the way that the loaded checkpoint shares, with what one slice leaves to the next fed once."""
    # More questions than fill one packed row, so that a prefix is fed, and kept for the next slice.
    facts = [
        Fact(id=str(n), relation="P36", subject=f"Borland {n}", object="Paris")
        for n in range(80)
    ]
    cases = [
        case(MonitorSettings(negatives=2), *FACTS),
        *(
            case(HeadToTailSettings(), *half, slice_=half[0].id)
            for half in (facts[:40], facts[40:])
        ),
    ]
    calls = [
        dataclasses.replace(call, requests=tuple(map(one_token, call.requests)))
        for call in DryRun(cases, "most").calls()
    ]
    spec = read_spec("reference")
    model = open_model(spec)
    try:
        # The self-checks are no part of a run's questions.
        sharing_modes = model.sharing_modes
        meter = Fedometer(model.parts.model)
        asker = DeduplicatingModel(model)
        for call in calls:
            asker.ask(call.requests)
        meter.stop()
    finally:
        model.close()
    costs = CostModel(
        rates={},
        written={},
        sharing_modes=sharing_modes,
        loading=0.0,
        answers=0,
        seconds=0.0,
        cached=lambda _: (),
    )
    work = workload_of(calls, costs, open_counter(spec), passes=1)
    assert work.different <= work.fed == meter.tokens


def one_token(request):
    """Nothing is fed then but what is asked."""
    short = isinstance(request, GenerateRequest)
    return dataclasses.replace(request, max_new_tokens=1) if short else request


def test_the_system_message_of_a_served_model_is_counted():
    spec = read_spec(
        "openai/some", 'base_url=http://localhost:1/v1,system_instruction="Be brief."'
    )
    request = GenerateRequest(prompt="Where is Paris?", max_new_tokens=4)
    assert open_counter(spec).prompt(request) == TokenEstimator().prompt(
        GenerateRequest(prompt="Be brief.\n\nWhere is Paris?", max_new_tokens=4)
    )


URL = "base_url=http://localhost:1/v1"
NOT_COUNTED = (
    "  thoughts are not counted: at most 64 tokens before each answer, if it thinks"
)


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
    assert (
        PlannedModel("--kb-model", text, read_spec(text, args), 1).counter.thoughts
        == thoughts
    )


def test_a_plan_says_that_thoughts_are_not_counted_and_refuses_what_a_run_refuses(
    pytester,
):
    make_checkpoint(pytester.path / "model", "thinker", "deepseek-r1")
    write_suite(pytester.path / "suites")
    flags = (
        "--kb-model=model",
        "--kb-apply-chat-template",
        "--kb-plan",
        "-v",
        "suites",
    )
    limit = "--kb-model-args=max_thinking_tokens=64"
    result = pytester.runpytest(*flags, limit, "-k", "world-head")
    assert NOT_COUNTED in result.outlines
    result = pytester.runpytest(*flags)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        "*MONITOR cannot be run: the model thinks*allowed: -k 'not monitor'*"
    )
