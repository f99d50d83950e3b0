"""The requests of a stub run are those of a run, whatever the probe."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.evaluation.stub_run import (
    SAMPLED,
    asks_of,
    cost_of,
    requests_of,
    sampled,
    whole,
)
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import (
    Case,
    Fact,
    Generated,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
    Request,
    Response,
    Scored,
    ScoreRequest,
    Shard,
    Shot,
    Step,
)
from tests.probes.conftest import make_case

NAMES = ("Rome", "Madrid", "Berlin", "Vienna", "Lisbon", "Athens", "Warsaw")
PLACES = {"France": "Paris", "Norway": "Oslo", "Japan": "Tokyo", "Kenya": "Nairobi"}
FACTS = tuple(
    Fact(id=country, relation="P36", subject=country, object=city, negatives=NAMES)
    for country, city in PLACES.items()
)
UNSEEN = tuple(
    dataclasses.replace(fact, id=f"U{number}", subject=f"Borland {number}", object=None)
    for number, fact in enumerate(FACTS)
)
RELIABILITY = ReliabilitySettings(choices=3, distractors=6)
PUBLISHED = MonitorSettings(variant="published", negatives=2)


def case(settings, *facts: Fact, slice_: str = "P36", **more) -> Case:
    return dataclasses.replace(make_case(settings, *facts), slice=slice_, **more)


def asked_by_a_run(case: Case, say) -> dict[str, list[Request]]:
    """Run a case with a model that answers by ``say(prompt)``; return what each model is asked."""
    results: dict[str, list[Request]] = {}

    def answer(requests, to: str) -> list[Response]:
        results.setdefault(to, []).extend(requests)
        return [respond(request) for request in requests]

    def respond(request: Request) -> Response:
        common = {"prompt_tokens": 1, "prompt_digest": ""}
        if isinstance(request, ScoreRequest):
            return Scored(probabilities=(0.5,), token_ids=(7,), **common)
        text = say(request.prompt)
        step = Step(token_id=0, token=text, probability=0.5)
        steps = (step,) if request.steps else ()
        return Generated(text=text, token_ids=(), finish="stop", steps=steps, **common)

    run_case(case, answer, lambda exchanges: None)
    return results


def planned(one: Case, scenario="most", to: str = "") -> list[Request]:
    return [
        ask.request
        for part in whole(one)
        for ask in asks_of(part, scenario)
        if ask.to == to
    ]


def mixed(prompt: str) -> str:
    return (
        "unsure" if "Norway" in prompt else "Madrid" if "Borland" in prompt else "Paris"
    )


def right(prompt: str) -> str:
    return next(city for country, city in PLACES.items() if country in prompt)


@pytest.mark.parametrize(
    "one",
    [
        case(MonitorSettings(negatives=2), *FACTS),
        case(MonitorSettings(negatives=2, study="full"), *FACTS),
        case(HeadToTailSettings(prompt="zero-shot"), *FACTS),
    ],
)
def test_what_depends_on_no_answer_is_planned_to_the_request(one):
    for say in (mixed, lambda prompt: "unsure"):
        real = asked_by_a_run(one, say)[""]
        for scenario in ("fewest", "most"):
            assert sorted(map(repr, planned(one, scenario))) == sorted(map(repr, real))
    of_one = len(real) / len(FACTS)
    assert requests_of(one, None) == len(real)
    assert requests_of(one, Shard(index=1, count=4)) in {of_one * n for n in range(5)}
    assert cost_of(one) > len(real)


@pytest.mark.parametrize(
    "one",
    [
        case(RELIABILITY, *FACTS, slice_="known-zero-shot"),
        case(RELIABILITY, *UNSEEN, slice_="unseen-zero-shot"),
        case(RELIABILITY, *FACTS, slice_="known-zero-shot", judge="openai/j"),
        case(
            dataclasses.replace(RELIABILITY, distractors_from="openai/w"),
            *FACTS,
            slice_="known-zero-shot",
        ),
        case(PUBLISHED, *FACTS),
        case(HeadToTailSettings(), *FACTS, judge="openai/j"),
    ],
)
def test_a_run_lies_between_the_least_and_the_most(one):
    real = asked_by_a_run(one, mixed)
    ranges = {
        to: (len(planned(one, "fewest", to)), len(planned(one, "most", to)))
        for to in real
    }
    assert all(low <= len(real[to]) <= high for to, (low, high) in ranges.items())
    assert any(low < high for low, high in ranges.values())
    assert {ask.to for ask in asks_of(one)} == set(real)


@pytest.mark.parametrize(
    "one", [case(RELIABILITY, *FACTS, slice_="known"), case(PUBLISHED, *FACTS)]
)
def test_the_ends_are_reached_by_a_model_that_answers_all_or_nothing(one):
    assert len(planned(one)) == len(asked_by_a_run(one, right)[""])
    least = len(asked_by_a_run(one, lambda prompt: "unsure")[""])
    assert len(planned(one, "fewest")) == least


def many(*facts: Fact) -> tuple[Fact, ...]:
    """Return ten facts like each of these, about other subjects."""
    return tuple(
        dataclasses.replace(fact, id=f"{fact.id}-{at}", subject=f"{fact.subject} {at}")
        for at in range(10)
        for fact in facts
    )


def four_shot(facts: tuple[Fact, ...], *shots: Shot) -> Case:
    others = [
        Shot(
            question=f"What is the capital of Land {n}?",
            answer=f"City {n}",
            subject=f"Land {n}",
        )
        for n in range(40)
    ]
    settings = dataclasses.replace(RELIABILITY, prompt="four-shot")
    return case(settings, *facts, slice_="known", repository=(*shots, *others))


GIVEN_AWAY = [
    Shot(question="What is the capital of France?", answer=f"X {n}", subject="France")
    for n in range(40)
]
POOR = dataclasses.replace(
    FACTS[0], id="poor", subject="Poor", negatives=("Rome", "Madrid")
)


@pytest.mark.parametrize("scenario", ["fewest", "most"])
@pytest.mark.parametrize(
    "one",
    [
        case(MonitorSettings(negatives=2), *many(*FACTS)),
        case(MonitorSettings(negatives=2), *FACTS[:3]),
        case(MonitorSettings(), *many(*FACTS), POOR),
        case(HeadToTailSettings(prompt="zero-shot"), *many(*FACTS)),
        case(RELIABILITY, *many(*UNSEEN), slice_="unseen"),
        four_shot(many(*FACTS)),
        # Of the first examples none can be shown, which a run does not care about.
        four_shot(FACTS[:1], *GIVEN_AWAY),
    ],
)
def test_where_each_fact_asks_alike_a_few_tell_how_many_all_ask(scenario, one):
    few = sampled(one)
    made = len([*asks_of(few, scenario)])
    assert len(few.facts) == min(SAMPLED, len(one.facts))
    assert made / len(few.facts) * len(one.facts) == len(planned(one, scenario))
