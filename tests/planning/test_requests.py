"""The requests of a plan are those of a run, whatever the probe."""

from __future__ import annotations

import dataclasses
import gc

import pytest

from pytest_kbrel import probes
from pytest_kbrel.planning.requests import (
    SAMPLED,
    Call,
    DryRun,
    Scenario,
    is_fixed,
    sampled,
)
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import (
    Case,
    Fact,
    Generated,
    GenerateRequest,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
    Request,
    Response,
    Scored,
    ScoreRequest,
    Shot,
    Step,
)
from tests.probes.conftest import make_case

NAMES = ("Rome", "Madrid", "Berlin", "Vienna", "Lisbon", "Athens", "Warsaw")
PLACES = (
    ("France", "Paris"),
    ("Norway", "Oslo"),
    ("Japan", "Tokyo"),
    ("Kenya", "Nairobi"),
)
FACTS = tuple(
    Fact(
        id=f"P36-{country}",
        relation="P36",
        subject=country,
        object=city,
        negatives=NAMES,
    )
    for country, city in PLACES
)
UNSEEN = tuple(
    dataclasses.replace(fact, id=f"U{number}", subject=f"Borland {number}", object=None)
    for number, fact in enumerate(FACTS)
)
RELIABILITY = ReliabilitySettings(choices=3, distractors=6)


def case(settings, *facts: Fact, slice_: str = "P36", **more) -> Case:
    made = make_case(settings, *facts)
    return dataclasses.replace(made, id=f"{made.probe}[{slice_}]", slice=slice_, **more)


def asked_by_a_run(cases: list[Case], say) -> dict[str, list[Request]]:
    """Run cases with a model that answers by ``say(prompt)``; return what each model is asked."""
    results: dict[str, list[Request]] = {}

    def answer(requests, to: str) -> list[Response]:
        results.setdefault(to, []).extend(requests)
        return [respond(request) for request in requests]

    def respond(request: Request) -> Response:
        if isinstance(request, ScoreRequest):
            return Scored(
                probabilities=(0.5,), token_ids=(7,), prompt_tokens=1, prompt_digest=""
            )
        text = say(request.prompt)
        return Generated(
            text=text,
            token_ids=(),
            finish="stop",
            prompt_tokens=1,
            prompt_digest="",
            steps=(Step(token_id=0, token=text, probability=0.5),)
            if request.steps
            else (),
        )

    for one in cases:
        run_case(one, answer, lambda exchanges: None)
    return results


class Made:
    """The calls of a dry run, held."""

    def __init__(self, cases: list[Case], scenario: Scenario) -> None:
        dry_run = DryRun(cases, scenario)
        self.calls = list(dry_run.calls())
        self.columns = dry_run.columns

    def asked(self, to: str | None = None) -> int:
        return sum(call.received for call in self._of("", to))

    def new(self, case: str = "", to: str | None = None) -> tuple[Request, ...]:
        return tuple(
            request for call in self._of(case, to) for request in call.requests
        )

    def _of(self, case: str, to: str | None) -> list[Call]:
        return [
            call
            for call in self.calls
            if case in ("", call.case) and to in (None, call.to)
        ]


def mixed(prompt: str) -> str:
    return (
        "unsure" if "Norway" in prompt else "Madrid" if "Borland" in prompt else "Paris"
    )


FIXED = [
    case(MonitorSettings(negatives=2), *FACTS),
    case(MonitorSettings(negatives=2, study="full"), *FACTS, slice_="again"),
    case(HeadToTailSettings(prompt="zero-shot"), *FACTS),
    # The same questions once more: nothing of it is new.
    case(HeadToTailSettings(prompt="zero-shot"), *FACTS, slice_="twice"),
    # And twice within one slice.
    case(
        HeadToTailSettings(),
        FACTS[0],
        dataclasses.replace(FACTS[0], id="P36-again"),
        slice_="double",
    ),
]


@pytest.mark.parametrize(
    "say", [mixed, lambda prompt: "unsure", lambda prompt: "Paris"]
)
def test_what_depends_on_no_answer_is_planned_to_the_request(say):
    assert all(map(is_fixed, FIXED))
    planned = Made(FIXED, "most")
    real = asked_by_a_run(FIXED, say)[""]
    assert planned.asked() == len(real)
    assert set(planned.new()) == set(real)
    assert len(planned.new()) == len(set(real)) < planned.asked()
    assert not planned.new("s.kb.yaml::head_to_tail[twice]")
    assert Made(FIXED, "fewest").new() == planned.new()


@pytest.mark.parametrize("probe", ["reliability", "judged", "written", "published"])
def test_a_run_lies_between_the_least_and_the_most(probe):
    settings = dataclasses.replace(
        RELIABILITY, distractors_from="openai/w" if probe == "written" else "facts"
    )
    cases = [
        case(
            settings,
            *FACTS,
            slice_="known-zero-shot",
            judge="openai/j" if probe == "judged" else "rules",
        ),
        case(settings, *UNSEEN, slice_="unseen-zero-shot"),
    ]
    if probe == "published":
        cases = [case(MonitorSettings(variant="published", negatives=2), *FACTS)]
    if probe == "judged":
        cases.append(case(HeadToTailSettings(), *FACTS, judge="openai/j"))
    assert not is_fixed(cases[0])
    least, most = Made(cases, "fewest"), Made(cases, "most")
    real = asked_by_a_run(cases, mixed)
    assert {call.to for call in most.calls} == set(real)
    for to in real:
        assert least.asked(to=to) < len(real[to]) < most.asked(to=to)
        assert len(least.new(to=to)) < len(set(real[to])) <= len(most.new(to=to))


@pytest.mark.parametrize(
    "settings", [RELIABILITY, MonitorSettings(variant="published", negatives=2)]
)
def test_the_most_is_what_a_model_is_asked_that_always_answers(settings):
    """Reached, not only never passed: each question once, then K choices, or all cells."""
    one = case(settings, *FACTS)
    golds = dict(PLACES)
    real = asked_by_a_run(
        [one],
        lambda prompt: next(golds[country] for country in golds if country in prompt),
    )[""]
    assert Made([one], "most").asked() == len(real)
    assert Made([one], "fewest").asked() == len(
        asked_by_a_run([one], lambda prompt: "unsure")[""]
    )


def test_the_columns_are_those_of_the_real_table():
    one = case(RELIABILITY, *FACTS)
    real = run_case(
        one, lambda requests, to: [_answer(r) for r in requests], lambda exchanges: None
    )
    assert (Made([one], "most").columns) == {
        f"{one.suite}::{one.id}": real.table.columns
    }


def _answer(request: GenerateRequest) -> Generated:
    return Generated(
        text="Paris",
        token_ids=(),
        finish="stop",
        prompt_tokens=1,
        prompt_digest="",
        probability=0.5,
        first_probability=0.5,
    )


@pytest.mark.slow
def test_of_the_calls_none_is_held(monkeypatch):
    """What has gone by is told from what is new all the same, in each of several drives."""
    monkeypatch.setitem(probes.CHUNK_FACTS, "monitor", 1)
    one = case(MonitorSettings(negatives=2), *FACTS, FACTS[0])
    dry_run = DryRun([one], "most")
    kinds = (ScoreRequest, GenerateRequest)
    # What earlier tests left, held so that none of it goes while the rest is counted.
    before = [one for one in gc.get_objects() if type(one) in kinds]
    alive = [
        sum(type(one) in kinds for one in gc.get_objects()) - len(before)
        for _ in dry_run.calls()
    ]
    first, again = (
        [(call.received, call.requests) for call in dry_run.calls()] for _ in range(2)
    )
    assert first == again
    assert len(first) == len(alive) > 4
    # Those of two chunks at most, of five.
    assert max(alive) <= 2 / 5 * sum(number for number, _ in first)
    # The fact that comes twice is asked nothing new, in another chunk too.
    assert first[-1][0] > 0
    assert not first[-1][1]


def many(*facts: Fact, times: int = 10) -> tuple[Fact, ...]:
    """Return the facts, and others like them about other subjects."""
    return tuple(
        dataclasses.replace(
            fact, id=f"{fact.id}-{time}", subject=f"{fact.subject} {time}"
        )
        for time in range(times)
        for fact in facts
    )


def asked(run: DryRun, to: str = "") -> float:
    return sum(call.stands_for * call.received for call in run.calls() if call.to == to)


def four_shot() -> Case:
    settings = dataclasses.replace(RELIABILITY, prompt="four-shot")
    shots = tuple(
        Shot(
            question=f"What is the capital of Land {n}?",
            answer=f"City {n}",
            subject=f"Land {n}",
        )
        for n in range(40)
    )
    return case(settings, *many(*FACTS), repository=shots)


ALIKE = {
    "monitor": case(MonitorSettings(negatives=2), *many(*FACTS)),
    "few facts": case(MonitorSettings(negatives=2), *FACTS[:3]),
    "poorest": case(
        MonitorSettings(),
        *many(*FACTS),
        dataclasses.replace(
            FACTS[0], id="poor", subject="Poor", negatives=("Rome", "Madrid")
        ),
    ),
    "head to tail": case(HeadToTailSettings(prompt="zero-shot"), *many(*FACTS)),
    "unseen": case(RELIABILITY, *many(*UNSEEN)),
    "four shots": four_shot(),
}


@pytest.mark.parametrize("scenario", ["fewest", "most"])
@pytest.mark.parametrize("name", ALIKE)
def test_where_each_fact_asks_alike_a_few_tell_how_many_all_ask(name, scenario):
    whole, sample = (
        DryRun([ALIKE[name]], scenario),
        DryRun([ALIKE[name]], scenario, sampled),
    )
    assert asked(sample) == pytest.approx(asked(whole))
    made = sum(call.received for call in sample.calls())
    assert made * len(ALIKE[name].facts) == pytest.approx(
        asked(whole) * min(SAMPLED, len(ALIKE[name].facts))
    )
    assert sample.columns == whole.columns


def test_examples_that_all_give_the_answer_away_are_not_the_last_ones_tried():
    """Of the first ones none can be shown, which a run does not care about."""
    given_away = tuple(
        Shot(
            question=f"What is the capital of {fact.subject}?",
            answer=f"X {n}",
            subject=fact.subject,
        )
        for n, fact in enumerate(FACTS[:1] * 40)
    )
    one = four_shot()
    one = dataclasses.replace(
        one, facts=FACTS[:1], repository=(*given_away, *one.repository)
    )
    assert asked(DryRun([one], "most", sampled)) == asked(DryRun([one], "most"))
