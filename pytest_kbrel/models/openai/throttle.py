"""Limit of the requests under way at one server, which adapts to the requests that the server refuses."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar

import openai

from pytest_kbrel.models.openai.http import is_refusal

T = TypeVar("T")
_Place = asyncio.Future[None]

LONGEST_WAIT = 600.0
"""Seconds of a wait that a server asks for, or without an answer to anything, beyond which it is an error."""
FURTHER_TRIES = 3
"""Tries of a request that is refused for a while, beside its first one and ``max_retries``."""
NO_QUOTA = "insufficient_quota"
"""Code of a quota that is used up, which has the same status as too many requests and is not waited for."""
MOST_REFUSED = 3
"""Requests refused or failed one after the other, from which on the server and no request is at fault."""
# Seconds between tries where the server does not say: the first wait, and the longest.
_FIRST, _MOST = 0.5, 30.0
# Pauses in a row that are as short as the server says. Longer ones follow, since it cannot keep its word.
_TRUSTED = 2
# Refusals after which a request is sent alone and behind the others, and after which before them.
_LATE, _INSISTS = 2, 4
_SERVER_ERROR = 500
_NUMBER = re.compile(r"\s*[0-9]{1,15}([.][0-9]{0,15})?\s*")


class WaitError(Exception):
    """Raised for a wait beyond :data:`LONGEST_WAIT`, or where no request is answered for as long.

    The message goes on after the server's name.
    """


class Throttle:
    """Limit of the requests of one model that are under way at once, for one event loop.

    At most ``limit`` requests are under way, ``most`` at the beginning. When the server refuses one (429, or
    503 with ``Retry-After``), the limit is halved and all requests wait as long as the server says, or with
    growing pauses where it does not say, or has said too little. Each answer raises the limit again, by one
    for as many answers as the limit is.

    A refused request is sent again. One that was refused twice is sent alone, behind the others, and before
    them after four times. It fails when it is refused alone, there were ``tries`` rounds of refusals without
    an answer, and other requests have been answered meanwhile. Where none was, the server may refuse whatever
    it is asked, and it is waited for; after :data:`LONGEST_WAIT` seconds each request fails that is refused
    alone, and with the :data:`MOST_REFUSED`-th of those that were new, all. So do all where as many requests
    fail in as long, by 5xx or without a reply, and none is answered.
    """

    def __init__(self, most: int, tries: int) -> None:
        self.refused = 0
        self._most, self._limit, self._tries = most, float(most), tries
        self._under_way = 0
        # Of requests that were sent before the latest cut, refusals are no further news.
        self._cuts = 0
        # Since the latest answer, and of them those whose pauses grow.
        self._rounds = self._pauses = 0
        # Replies that were no refusal. Since the latest: new requests that were refused, and the time of the
        # first refusal.
        self._replies = self._new_refused = 0
        self._refuses_since: float | None = None
        # Since the latest reply that was neither refusal nor 5xx: requests that failed otherwise, and when
        # the first of them was sent.
        self._failed = 0
        self._fails_since = 0.0
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: deque[_Place] = deque()
        self._late: deque[_Place] = deque()
        # Requests that go before all others, and whether one is under way that must be alone.
        self._foremost: deque[_Place] = deque()
        self._exclusive = False
        self._waits = True

    @property
    def limit(self) -> int:
        """How many requests may be under way now."""
        return int(self._limit)

    def let_wait(self, waits: bool) -> None:
        """Cancel all requests that wait to be sent, now and until it is called with True."""
        self._waits = waits
        for place in () if waits else (*self._waiting, *self._late, *self._foremost):
            place.cancel()

    async def run(self, send: Callable[[], Awaitable[T]]) -> T:
        """Return what ``send`` returns, called again as long as the server refuses it.

        Raises what ``send`` raises, also the last refusal of a request that is given up, and
        :class:`WaitError`.
        """
        refused = replies = 0
        while True:
            await self._enter(refused)
            is_alone, cuts = self._under_way == 1, self._cuts
            sent = asyncio.get_running_loop().time()
            try:
                answer = await send()
            except openai.APIStatusError as error:
                if not is_refusal(error.response) or error.code == NO_QUOTA:
                    self._heard()
                    if error.status_code >= _SERVER_ERROR:
                        self._note_failure(sent, error)
                    else:
                        self._failed = 0
                    raise
                refused += 1
                self._slow_down(told_wait(error.response.headers, time.time()), cuts)
                # One that was refused before may be so for what it asks.
                self._new_refused += refused == 1
                if refused <= _LATE:
                    replies = self._replies
                if is_alone and self._rounds >= self._tries:
                    seconds = self._refused_for()
                    if seconds >= LONGEST_WAIT and self._new_refused >= MOST_REFUSED:
                        raise WaitError(
                            f"has refused every request for {seconds:,.0f} seconds"
                        ) from None
                    if seconds >= LONGEST_WAIT or self._replies > replies:
                        # The next request is another one.
                        self._pauses = 0
                        raise
            except openai.APIConnectionError as error:
                self._note_failure(sent, error)
                raise
            else:
                self._heard()
                self._failed = self._rounds = self._pauses = 0
                self._limit = min(self._most, self._limit + 1 / self._limit)
                return answer
            finally:
                self._leave()

    def _heard(self) -> None:
        self._replies += 1
        self._new_refused, self._refuses_since = 0, None

    def _note_failure(self, sent: float, error: openai.APIError) -> None:
        """Count a request that was sent at this time; raise :class:`WaitError` where all fail for long."""
        if not self._failed:
            self._fails_since = sent
        self._failed += 1
        seconds = asyncio.get_running_loop().time() - self._fails_since
        if seconds >= LONGEST_WAIT and self._failed >= MOST_REFUSED:
            raise WaitError(
                f"has answered no request for {seconds:,.0f} seconds"
            ) from error

    def _refused_for(self) -> float:
        now = asyncio.get_running_loop().time()
        return now - (now if self._refuses_since is None else self._refuses_since)

    async def _enter(self, refused: int) -> None:
        """Wait until a request that was refused so often may be sent."""
        if not self._waits:
            raise asyncio.CancelledError
        place: _Place = asyncio.get_running_loop().create_future()
        if refused >= _INSISTS:
            self._foremost.append(place)
        elif refused >= _LATE:
            self._late.append(place)
        elif refused:
            self._waiting.appendleft(place)
        else:
            self._waiting.append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        self._under_way -= 1
        self._exclusive = False
        self._admit()

    def _admit(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._not_before:
            if self._timer is None:
                self._timer = loop.call_at(self._not_before, self._end_pause)
            return
        while place := self._next():
            # That of a task that was cancelled is left out.
            if not place.done():
                place.set_result(None)
                self._under_way += 1

    def _next(self) -> _Place | None:
        """Return the next request that may be sent now; ``None`` if none may."""
        if self._exclusive:
            return None
        if self._waiting and not self._foremost:
            return self._waiting.popleft() if self._under_way < self.limit else None
        if self._under_way:
            return None
        first = self._foremost or self._late
        place = first.popleft() if first else None
        self._exclusive = place is not None and not place.done()
        return place

    def _end_pause(self) -> None:
        self._timer = None
        self._admit()

    def _slow_down(self, told: float | None, cuts: int) -> None:
        self.refused += 1
        now = asyncio.get_running_loop().time()
        if self._refuses_since is None:
            self._refuses_since = now
        if told is not None and told > LONGEST_WAIT:
            raise WaitError(
                f"asks to wait {told:,.0f} seconds before the next request (Retry-After), "
                f"and no more than {LONGEST_WAIT:.0f} are waited"
            )
        if cuts == self._cuts:
            self._cuts += 1
            self._rounds += 1
            self._pauses += 1
            self._limit = max(1.0, self._limit / 2)
        wait = min(_MOST, _FIRST * 2.0 ** min(max(self._pauses - 1, 0), 10))
        if told is not None:
            wait = told if self._pauses <= _TRUSTED else max(told, wait)
        self._not_before = max(self._not_before, now + wait)


def told_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Return how many seconds a refusal asks to wait; ``None`` where it does not say, or nothing readable.

    ``Retry-After`` has seconds, or a date, which is compared with the reply's own ``Date`` or else with the
    time ``now``. Some servers send ``retry-after-ms`` too.
    """
    if _NUMBER.fullmatch(milliseconds := headers.get("retry-after-ms", "")):
        return float(milliseconds) / 1000
    if _NUMBER.fullmatch(seconds := headers.get("retry-after", "")):
        return float(seconds)
    until = _timestamp(seconds)
    return (
        None
        if until is None
        else max(0.0, until - (_timestamp(headers.get("date", "")) or now))
    )


def _timestamp(text: str) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        # In one of the forms of RFC 9110 no zone is written. All of them mean UTC.
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
