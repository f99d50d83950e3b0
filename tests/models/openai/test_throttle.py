"""How the number of requests under way adapts to what a server refuses; time is simulated."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections import defaultdict

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.models.openai.http import Response, _httpx
from pytest_kbrel.models.openai.throttle import (
    LONGEST_WAIT,
    MOST_REFUSED,
    NO_QUOTA,
    Throttle,
    WaitError,
    told_wait,
)

REQUEST = _httpx.Request("POST", "http://localhost/v1/chat/completions")
NOW = 1_795_000_000.0


class Simulated(asyncio.SelectorEventLoop):
    """Event loop whose time is that of its timers: it never waits, and its clock says that it did."""

    def __init__(self):
        self.now = 0.0
        super().__init__(_Selector(self))

    def time(self):
        return self.now


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        assert timeout is not None, "everything waits, and nothing will come"
        self._loop.now += timeout
        return super().select(0)


def simulated(coroutine):
    with asyncio.Runner(loop_factory=Simulated) as runner:
        return runner.run(coroutine)


def refusal(status=429, code=None, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = Response(status, request=REQUEST, headers=named)
    return openai.APIStatusError("refused", response=response, body={"code": code})


class Server:
    """Server that answers ``most`` requests in each window of ``seconds``; a reply ``takes`` so long."""

    def __init__(self, most=10**9, seconds=60.0, takes=1.0, tells=True):
        self.most, self.seconds, self.takes, self.tells = most, seconds, takes, tells
        self.times, self.refused, self.under_way, self.at_once = [], 0, 0, []
        self.window, self.count = 0, 0

    async def answer(self, fails=()):
        loop = asyncio.get_running_loop()
        self.times.append(loop.time())
        self.under_way += 1
        self.at_once.append(self.under_way)
        window, into = divmod(loop.time(), self.seconds)
        self.window, self.count = window, self.count + 1 if window == self.window else 1
        ends = self.seconds - into
        over = self.count > self.most
        await asyncio.sleep(self.takes)
        self.under_way -= 1
        if over or fails:
            self.refused += 1
            error = fails.pop() if fails else refusal()
            raise refusal(retry_after=f"{ends:.3f}") if self.tells and over else error
        return "answer"


async def asked(throttle, server, count, threads=8, fails=None):
    """Put ``count`` requests, so many threads at once; return what came of each."""
    results, numbers = {}, iter(range(count))

    async def work():
        for number in numbers:
            failing = list((fails or {}).get(number, ()))
            try:
                results[number] = await throttle.run(
                    lambda failing=failing: server.answer(failing)
                )
            except openai.APIError as error:
                results[number] = error

    await asyncio.gather(*(work() for _ in range(threads)))
    return [results[number] for number in range(count)]


def test_as_many_as_allowed_are_under_way_where_nothing_is_refused():
    server = Server()
    assert simulated(asked(Throttle(8, 5), server, 80)) == ["answer"] * 80
    assert max(server.at_once) == 8
    assert server.times[-1] == 9.0


def test_of_one_round_trip_the_limit_is_halved_once_and_answers_raise_it_again():
    throttle, server = Throttle(8, 5), Server(most=4, seconds=100.0)
    assert simulated(asked(throttle, server, 8)) == ["answer"] * 8
    assert server.refused == 4
    assert server.at_once[8:] == [1, 2, 3, 4]
    assert 4 <= throttle.limit < 8
    server.most = 10**9
    simulated(asked(throttle, server, 30))
    assert throttle.limit == 8


def test_all_wait_as_long_as_the_server_says():
    server = Server(most=4, seconds=100.0)
    assert simulated(asked(Throttle(8, 5), server, 8)) == ["answer"] * 8
    # A reply takes a second, and the wait is counted from then on.
    assert server.times == [0.0] * 8 + [101.0] * 4


def test_the_longest_of_several_waits_counts():
    fails = {
        0: [refusal(retry_after="3")],
        1: [refusal(retry_after="40")],
        2: [refusal(retry_after="7")],
    }
    server = Server()
    assert simulated(asked(Throttle(8, 5), server, 3, fails=fails)) == ["answer"] * 3
    assert server.times == [0.0] * 3 + [41.0] * 3


def test_pauses_grow_where_the_server_does_not_say():
    server = Server(takes=0.0)
    simulated(asked(Throttle(8, 9), server, 1, fails={0: [refusal()] * 8}))
    waits = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_rate_of_a_minute_costs_few_refusals_and_no_answer():
    throttle, server = Throttle(8, 5), Server(most=500, takes=0.5)
    assert simulated(asked(throttle, server, 3000)) == ["answer"] * 3000
    assert server.refused <= 8 * 6
    assert throttle.refused == server.refused
    # Five windows are waited for.
    assert 300 <= server.times[-1] < 400


@pytest.mark.parametrize("threads", [2, 8])
def test_a_request_that_is_always_refused_fails_alone_behind_the_others(threads):
    server = Server()
    fails = {3: [refusal(retry_after="1")] * 99}
    results = simulated(asked(Throttle(8, 5), server, 50, threads, fails))
    assert isinstance(results.pop(3), openai.APIStatusError)
    assert results == ["answer"] * 49
    # Twice among others, twice alone behind them, and then until there were five rounds without an answer.
    assert 2 + 5 <= server.refused <= 4 + 5


@pytest.mark.parametrize("threads", [1, 8, 64])
def test_where_everything_is_refused_few_further_requests_have_one_try_each(threads):
    server = Server(takes=0.0)
    fails = {number: [refusal(retry_after="60")] * 99 for number in range(1000)}
    with pytest.raises(
        WaitError, match=r"^has refused every request for [1-9][0-9,]* seconds$"
    ):
        simulated(asked(Throttle(threads, 5), server, 1000, threads, fails))
    assert server.times[-1] <= 15 * 60
    if threads == 1:
        # The first one is asked for ten minutes.
        assert server.refused == 11 + 2
        assert server.times[-1] == 60 * (server.refused - 1)


def test_further_requests_of_the_same_model_are_refused_the_same_way():
    async def session():
        throttle, server = Throttle(1, 2), Server(takes=0.0)
        errors = []
        for _ in range(7):
            try:
                await throttle.run(lambda: server.answer([refusal()] * 99))
            except (WaitError, openai.APIStatusError) as error:
                errors.append(type(error))
        return errors, await throttle.run(server.answer)

    errors, last = simulated(session())
    assert errors == [openai.APIStatusError] * (MOST_REFUSED - 1) + [WaitError] * 5
    assert last == "answer"


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("tries", [1, 8])
@pytest.mark.parametrize(
    "told", [{}, {"retry_after": "1"}, {"retry_after": "20"}, {"retry_after": "120"}]
)
@pytest.mark.parametrize(
    ("begins", "ends"), [(0, 70), (0, 300), (0, 590), (3, 120), (3, 590)]
)
def test_a_server_that_refuses_everything_for_minutes_costs_no_answer(
    threads, tries, told, begins, ends
):
    class Out(Server):
        async def answer(self, fails=()):
            now = asyncio.get_running_loop().time()
            return await super().answer(
                [refusal(**told)] if begins <= now < ends else []
            )

    server = Out(takes=0.5)
    assert (
        simulated(asked(Throttle(threads, tries), server, 100, threads))
        == ["answer"] * 100
    )
    assert server.refused <= 60
    assert server.times[-1] <= ends + 120 + 100


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("every", [2, 3])
def test_a_server_that_answers_in_between_is_never_given_up(threads, every):
    server = Server()
    fails = {
        number: [refusal(retry_after="60")] * 99
        for number in range(90)
        if number % every
    }
    results = simulated(asked(Throttle(8, 5), server, 90, threads, fails))
    assert [isinstance(result, str) for result in results] == [
        number not in fails for number in range(90)
    ]


@pytest.mark.parametrize("other", [refusal(status=400), refusal(status=500)])
def test_an_error_that_is_no_refusal_is_an_answer_of_the_server(other):
    server = Server(takes=0.0)
    fails = {number: [refusal()] * 99 if number % 3 else [other] for number in range(6)}
    results = simulated(asked(Throttle(1, 2), server, 6, threads=1, fails=fails))
    assert {result.status_code for result in results} == {429, other.status_code}


def failing(status=None):
    return (
        openai.APITimeoutError(request=REQUEST)
        if status is None
        else refusal(status=status)
    )


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("status", [None, 500])
def test_a_server_that_fails_whatever_it_is_asked_ends_the_run_after_ten_minutes(
    threads, status
):
    server = Server(takes=100.0)
    fails = {number: [failing(status)] for number in range(5, 1000)}
    with pytest.raises(
        WaitError, match=r"^has answered no request for [67]00 seconds$"
    ):
        simulated(asked(Throttle(threads, 8), server, 1000, threads, fails))
    assert server.times[-1] <= 500 + 700


@pytest.mark.parametrize("answer", [[], [refusal(status=400)]])
def test_a_server_that_fails_at_most_requests_and_answers_some_is_asked_on(answer):
    server = Server(takes=100.0)
    fails = {
        number: [failing(number % 2 * 500 or None)] if number % 6 else list(answer)
        for number in range(60)
    }
    results = simulated(asked(Throttle(1, 8), server, 60, 1, fails))
    assert len(results) == 60


def test_a_request_that_takes_long_to_fail_does_not_end_the_run():
    server = Server(takes=400.0)
    fails = {number: [failing()] for number in (1, 2)}
    results = simulated(asked(Throttle(1, 8), server, 4, 1, fails))
    assert [isinstance(result, str) for result in results] == [True, False, False, True]


def test_a_request_that_is_refused_beside_others_is_never_given_up():
    server = Server(most=4, seconds=100.0)
    assert simulated(asked(Throttle(8, 1), server, 8)) == ["answer"] * 8


def test_a_rate_of_one_a_minute_that_is_not_told_costs_no_answer():
    server = Server(most=1, takes=0.0, tells=False)
    assert simulated(asked(Throttle(8, 8), server, 20, threads=3)) == ["answer"] * 20


def test_a_server_that_tells_too_short_waits_costs_no_answer():
    class Out(Server):
        """Refuses all for five seconds, and says each time that a tenth of a second is enough."""

        async def answer(self, fails=()):
            out = asyncio.get_running_loop().time() < 5
            return await super().answer([refusal(retry_after_ms="100")] if out else [])

    server = Out(takes=0.01)
    assert simulated(asked(Throttle(8, 8), server, 50)) == ["answer"] * 50
    assert server.times[-1] > 5


def test_an_answer_gives_all_tries_back():
    server = Server(takes=0.0)
    fails = {0: [refusal()] * 99, 2: [refusal()] * 4}
    results = simulated(asked(Throttle(1, 5), server, 3, threads=1, fails=fails))
    assert [isinstance(result, str) for result in results] == [False, True, True]


@pytest.mark.parametrize(
    "error",
    [refusal(status=500, retry_after="1"), refusal(status=503), refusal(code=NO_QUOTA)],
)
def test_other_errors_come_back_at_once(error):
    server = Server()
    (result,) = simulated(asked(Throttle(8, 5), server, 1, fails={0: [error]}))
    assert result is error
    assert len(server.times) == 1


def test_a_server_that_is_unavailable_and_says_for_how_long_is_waited_for():
    server = Server(takes=0.0)
    fails = {0: [refusal(status=503, retry_after="20")]}
    assert simulated(asked(Throttle(8, 5), server, 1, fails=fails)) == ["answer"]
    assert server.times == [0.0, 20.0]


def test_a_wait_that_is_too_long_is_an_error():
    fails = {0: [refusal(retry_after=f"{LONGEST_WAIT + 1:.0f}")]}
    with pytest.raises(
        WaitError,
        match=r"^asks to wait 601 seconds before the next request .*, and no more than 600 are waited$",
    ):
        simulated(asked(Throttle(8, 5), Server(), 1, fails=fails))


def test_a_request_that_is_given_up_while_it_waits_leaves_room_for_others():
    async def session():
        throttle, server = Throttle(1, 5), Server()
        tasks = [asyncio.ensure_future(throttle.run(server.answer)) for _ in range(4)]
        await asyncio.sleep(0.5)
        # One is under way and the others wait.
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.cancelled() for task in tasks], await throttle.run(server.answer)

    assert simulated(session()) == ([True, False, True, False], "answer")


@given(
    most=st.integers(1, 12),
    threads=st.integers(1, 12),
    rate=st.integers(1, 20),
    seconds=st.sampled_from([0.3, 5.0, 60.0]),
    takes=st.sampled_from([0.0, 0.01, 1.0, 7.0]),
    tells=st.booleans(),
)
def test_never_more_than_the_limit_is_under_way_and_everything_is_answered(
    most, threads, rate, seconds, takes, tells
):
    throttle = Throttle(most, 8)
    server = Server(rate, seconds, takes, tells)
    # Of replies at the same time, one may admit a request before another halves the limit.
    limits = defaultdict(int)

    def note():
        now = asyncio.get_running_loop().time()
        limits[now] = max(limits[now], throttle.limit)
        return limits[now]

    async def answer(*given):
        assert server.under_way < note() <= most
        try:
            return await Server.answer(server, *given)
        finally:
            note()

    server.answer = answer
    assert simulated(asked(throttle, server, 60, threads)) == ["answer"] * 60


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "20", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "20", "retry-after-ms": "soon"}, 20.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:07:10 GMT"}, 30.0),
        ({"retry-after": "Wed, 18 Nov 2026 11:06:10 GMT"}, 0.0),
        (
            {
                "retry-after": "Wed, 18 Nov 2026 11:07:10 GMT",
                "date": "Wed, 18 Nov 2026 11:07:05 GMT",
            },
            5.0,
        ),
        ({"retry-after": "Wed, 18 Nov 2026 11:07:10 GMT", "date": "today"}, 30.0),
        *(
            ({"retry-after": text}, None)
            for text in (
                "",
                "-1",
                "nan",
                "inf",
                "1e3",
                "0x10",
                "1_0",
                "9" * 5000,
                "soon",
                "Wed, 99 Nov 2026",
            )
        ),
    ],
)
def test_what_a_refusal_says_of_the_wait(headers, seconds):
    assert told_wait(headers, NOW) == seconds


@pytest.mark.skipif(
    not hasattr(time, "tzset"), reason="the zone of a process cannot be set here"
)
@pytest.mark.parametrize(
    "date",
    [
        "Wed Nov 18 11:07:10 2026",
        "Wednesday, 18-Nov-26 11:07:10 GMT",
        "Wed, 18 Nov 2026 11:07:10 -0000",
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo"])
def test_a_date_without_a_zone_is_universal_time(monkeypatch, date, zone):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert told_wait({"retry-after": date}, NOW) == 30
        assert (
            told_wait({"retry-after": date, "date": "Wed Nov 18 11:07:05 2026"}, NOW)
            == 5
        )
    finally:
        monkeypatch.undo()
        time.tzset()
