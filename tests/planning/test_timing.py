"""Times follow from two batches of each kind; for a model with a clock of its own they are known."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.models.counting import Estimating
from pytest_kbrel.models.dedup import Asker
from pytest_kbrel.models.registry import open_counter, open_model, read_spec
from pytest_kbrel.planning import timing
from pytest_kbrel.planning.adding import workload_of
from pytest_kbrel.planning.asking import Call, Scenario
from pytest_kbrel.planning.spans import Scenarios
from pytest_kbrel.planning.timing import calibrate
from pytest_kbrel.planning.working import Pace, Work, _steps, longest
from pytest_kbrel.records import Generated, GenerateRequest, MonitorSettings, Request, Scored, ScoreRequest
from tests.planning.test_asking import FACTS, case

STEP, TOKEN = 0.5, 0.001


class Clocked:
    """A model whose work takes a known time on a clock of its own: a batch is prompts of equal length."""

    def __init__(self) -> None:
        self.now = 0.0
        self.closed = False
        self.asked = 0

    def describe(self):
        raise AssertionError("who it is does not matter here")

    def score(self, requests):
        self.asked += len(requests)
        self.now += STEP + TOKEN * sum(map(Estimating().prompt, requests))
        return [
            Scored(probabilities=(0.5,), token_ids=(1,), prompt_tokens=1, prompt_digest="") for _ in requests
        ]

    def generate(self, requests):
        self.asked += len(requests)
        by_length: dict[int, int] = {}
        for request in requests:
            by_length[Estimating().prompt(request)] = by_length.get(Estimating().prompt(request), 0) + 1
        for length, rows in by_length.items():
            self.now += STEP * 4 + TOKEN * rows * (length + 4)
        return [self._answer() for _ in requests]

    def _answer(self) -> Generated:
        return Generated(text="x", token_ids=(1,) * 4, finish="stop", prompt_tokens=1, prompt_digest="")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def clocked(monkeypatch) -> Clocked:
    model = Clocked()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: model.now)
    return model


def calls(method: str) -> list[Call]:
    made: list[tuple[Request, ...]] = []
    for part in range(3):
        prompts = [f"{'word ' * (3 + number % 7)}{part}-{number}" for number in range(60)]
        made.append(
            tuple(
                ScoreRequest(prompt=prompt, continuation=" x")
                if method == "score"
                else GenerateRequest(prompt=prompt, max_new_tokens=9)
                for prompt in prompts
            )
        )
    return [
        Call(case=f"case {part}", kind=("", "monitor", 0, method), requests=requests, asked=len(requests))
        for part, requests in enumerate(made)
    ]


def seconds(found, made) -> float:
    return sum(found.seconds_for(call.kind, call.requests) for call in made)


@pytest.mark.parametrize("method", ["score", "generate"])
def test_a_model_that_takes_time_by_step_and_token_is_predicted_exactly(clocked, method):
    found = calibrate(lambda: clocked, calls(method), Estimating())
    assert clocked.closed
    predicted = seconds(found, calls(method))
    before = clocked.now
    asker = Asker(clocked)
    for call in calls(method):
        asker.ask(call.requests)
    assert predicted == pytest.approx(clocked.now - before, rel=1e-6)
    assert found.batches == 2
    assert found.answers <= 96
    assert sum(map(found.written, calls(method))) == (180 * 4 if method == "generate" else 0)


def test_a_batch_takes_as_long_as_its_longest_answer():
    written = (1, 1, 1, 9)
    assert Pace(a_step=1.0, a_token=0.0, written=written).mean == 3
    # One row: the mean. Two: 1 with probability 9/16, else 9.
    assert longest(written, 1) == pytest.approx(3)
    assert longest(written, 2) == pytest.approx(9 / 16 + 9 * 7 / 16)
    assert longest(written, 1000) == pytest.approx(9)


def test_a_model_is_closed_where_it_fails(clocked):
    def fail(requests):
        raise RuntimeError("broken")

    clocked.generate = fail
    with pytest.raises(RuntimeError):
        calibrate(lambda: clocked, calls("generate"), Estimating())
    assert clocked.closed


def test_tokens_are_those_the_model_itself_counts():
    """Prompts and continuations of every cell, as the loaded checkpoint tokenises them."""
    spec = read_spec("reference")
    counter = open_counter(spec)
    assert counter.exact
    facts = [dataclasses.replace(fact, negatives=fact.negatives[:2]) for fact in FACTS]
    made = Scenario([case(MonitorSettings(negatives=2), *facts)], "most").calls()
    planned = [request for call in made for request in call.requests]
    model = open_model(spec)
    try:
        for request, answer in zip(planned, Asker(model).ask(planned), strict=True):
            assert counter.prompt(request) == answer.prompt_tokens
            if isinstance(request, ScoreRequest):
                assert counter.continuation(request) == len(answer.token_ids)
    finally:
        model.close()


def test_work_is_what_the_engine_feeds():
    """By the way that the loaded checkpoint shares, with what its batches have in common counted once."""
    spec = read_spec("reference")
    counter = open_counter(spec)
    made = list(Scenario([case(MonitorSettings(negatives=2), *FACTS)], "most").calls())
    found = calibrate(lambda: open_model(spec), made, counter)
    assert found.works.rungs == ("packed", "packed")
    assert counter.feeder is not None
    for call in made:
        fed = counter.feeder.fed(call.requests, "packed")
        work = found.works.of(call.requests, (3,))
        written = 0 if call.kind[3] == "score" else 3 * len(call.requests)
        assert work.tokens == fed.tokens + fed.padding + written
        assert work.tokens - written < sum(map(counter.prompt, call.requests))
    assert seconds(found, made) > 0


def test_what_is_kept_takes_no_time_but_in_a_second_pass(clocked):
    clocked.describe = lambda: None
    every = {request for call in calls("score") for request in call.requests}
    found = calibrate(lambda: clocked, calls("score"), Estimating(), lambda who, requests: every, anew=True)
    work = workload_of(calls("score"), found, Estimating(), passes=1, anew=True)
    assert (work.kept, work.seconds) == (len(every), 0)
    assert workload_of(calls("score"), found, Estimating(), passes=2, anew=True).seconds > 0
    assert workload_of(calls("score"), found, Estimating(), passes=2, anew=False).seconds == 0
    asked = clocked.asked
    none = calibrate(lambda: clocked, calls("score"), Estimating(), lambda who, requests: every)
    assert clocked.asked == asked
    assert none.batches == none.answers == 0


def test_a_guess_never_lies_outside_its_range():
    low, high, known = (Scenario([case(MonitorSettings(negatives=2), *FACTS)], "most") for _ in range(3))
    for values in ((3, 5, 7), (3, 5, 1), (5, 3, 4)):
        told = dict(zip((id(low), id(high), id(known)), values, strict=True))
        span = Scenarios(low=low, high=high, known=known).span(lambda of, told=told: told[id(of)])
        assert span.low == min(values)
        assert span.high == max(values)
        assert span.about == values[2]


def test_more_texts_than_go_at_once_take_their_places():
    # Ten at a time of a hundred that write four tokens each: an eighth of them idle until others come in.
    pace = (4,) * 5
    assert _steps(10, 10, pace) == 4
    assert _steps(100, 10, pace) == pytest.approx(100 * 4 / (10 * 0.875))


def test_a_model_that_refuses_every_question_takes_no_time_for_them(clocked, monkeypatch):
    monkeypatch.setattr(timing.Works, "of", lambda *_: Work(steps=0.0, tokens=0.0))
    requests = tuple(ScoreRequest(prompt=f"{n}", continuation=" x") for n in range(40))
    call = Call(case="s::c", kind=("", "monitor", 0, "score"), requests=requests, asked=len(requests))
    found = calibrate(lambda: clocked, [call], Estimating())
    assert found.paces[call.kind].seconds(Work(steps=0.0, tokens=0.0)) == 0.0


def test_the_system_message_of_a_served_model_is_counted():
    spec = read_spec("openai/some", 'base_url=http://localhost:1/v1,system_instruction="Be brief."')
    request = GenerateRequest(prompt="Where is Paris?", max_new_tokens=4)
    assert open_counter(spec).prompt(request) == Estimating().prompt(
        GenerateRequest(prompt="Be brief.\n\nWhere is Paris?", max_new_tokens=4)
    )
