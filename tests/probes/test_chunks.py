"""A large case is asked in chunks of its facts: the same outcomes, with less in memory at a time."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel import probes
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import (
    Fact,
    Failed,
    Generated,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
    ScoreRequest,
    Step,
)
from tests.probes.conftest import NORWAY, Oracle, make_case

CITIES = ("Rome", "Madrid", "Lima", "Quito", "Bern", "Riga", "Kyiv")


def facts(count: int) -> tuple[Fact, ...]:
    return tuple(
        dataclasses.replace(
            NORWAY,
            id=f"P36-{n}",
            subject=f"Land {n}",
            object=f"Town {n}",
            negatives=CITIES,
        )
        for n in range(count)
    )


def said(request) -> str | Generated | Failed:
    if "Land 3" in request.prompt:
        return Failed(error="out of memory")
    text = next(
        (word for word in request.prompt.split(". ")[:1] if word.startswith("Town")),
        "Rome",
    )
    if not request.steps:
        return "Town 2" if "Land 2" in request.prompt else text
    probability = len(request.prompt) % 7 / 10
    return Generated(
        text=text,
        token_ids=(1,),
        finish="stop",
        prompt_tokens=3,
        prompt_digest=request.prompt,
        steps=(
            Step(token_id=1, token=text, probability=probability, watched=probability),
        ),
    )


def believed(request: ScoreRequest) -> tuple[float, ...]:
    return (sum(map(ord, request.prompt)) % 97 / 100,)


SETTINGS = [
    MonitorSettings(negatives=7),
    MonitorSettings(negatives=7, study="full"),
    MonitorSettings(negatives=7, variant="published"),
    HeadToTailSettings(),
    ReliabilitySettings(choices=3, distractors=7),
]


def outcome(settings, asked, size: int, monkeypatch):
    monkeypatch.setattr(probes, "CHUNK_FACTS", dict.fromkeys(probes.CHUNK_FACTS, size))
    oracle = Oracle(say=said, believe=believed)
    result = run_case(make_case(settings, *asked), oracle, oracle.keep)
    exchanges = {
        (one.ask.fact_id, one.ask.role, one.ask.request, repr(one.response))
        for one in oracle.kept
    }
    return result, exchanges, oracle


@pytest.mark.parametrize(
    "settings",
    SETTINGS,
    ids=["monitor", "full", "published", "head_to_tail", "reliability"],
)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_in_chunks_a_case_has_the_outcomes_it_has_at_once(settings, size, monkeypatch):
    all_facts = facts(7)
    whole, of_whole, at_once = outcome(settings, all_facts, 100, monkeypatch)
    parts, of_parts, in_parts = outcome(settings, all_facts, size, monkeypatch)
    assert parts == whole
    assert of_parts == of_whole
    assert len(in_parts.kept) == len(at_once.kept)
    assert max(map(len, in_parts.rounds)) < max(map(len, at_once.rounds))
    assert len(whole.table.rows) == 6
    assert len(whole.errors) == 1
    if isinstance(settings, MonitorSettings):
        assert len(whole.moved) > 1
