"""Progress of a run in words: the case that is asked, its answers, the rate, and the time that is left."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.store.run_store import AnswerCounts

# The rate is that of so many seconds.
_WINDOW = 60.0
# Seconds without an answer from which on they are told: a server may refuse whatever it is asked.
_SILENCE = 30.0
_NAME = 40


class Progress:
    """What is known of a running session: ``expected`` requests by case, and the cases that have ended.

    Times are seconds of any clock that only goes forward.
    """

    def __init__(self) -> None:
        self.expected: dict[str, int] = {}
        self._titles: Mapping[str, str] = {}
        self._ended: set[str] = set()
        self._rates: deque[tuple[float, int]] = deque()
        # What was counted at the latest change, and when that was.
        self._latest: tuple[object, float] = ((), 0.0)

    def expect(
        self,
        requests: Mapping[str, int],
        titles: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Expect so many requests of each case, at most; ``titles`` are what the cases are called."""
        self.expected |= requests
        self._titles = titles

    def end(self, case: str) -> None:
        """Note that a case has ended, whatever it was still expected to ask."""
        self._ended.add(case)

    def text(self, counts: Sequence[AnswerCounts], now: float) -> str:
        """Return the line for the counts of all processes; empty before the first case is begun."""
        asking = [
            one.current
            for one in counts
            if one.current and one.current not in self._ended
        ]
        if not asking:
            return ""
        answered = Counter[str]()
        for one in counts:
            answered.update(one.answered)
        asked = sum(one.asked for one in counts)
        rate = self._rate(asked, now)
        cases = {*asking}
        name = f"{len(asking)} workers"
        if len(asking) == 1:
            (case,) = asking
            name = one_line(self._titles.get(case) or case.partition("::")[2], _NAME)
        so_far = sum(answered[case] for case in cases)
        total = sum(self.expected.get(case, 0) for case in cases)
        of = f"{min(so_far, total):,}/{total:,}" if total else f"{so_far:,} answers"
        parts = [f"{name} {of}"]
        counted = (cases, asked, answered.total())
        if counted != self._latest[0]:
            self._latest = counted, now
        silence = now - self._latest[1]
        if silence >= _SILENCE:
            rate = 0.0
            parts.append(f"no answer for {duration(silence)}")
        if rate:
            parts.append(f"{rate:,.0f}/s" if rate >= 1 else f"{60 * rate:,.0f}/min")
        if count := len(self.expected):
            number = min(len(self._ended & self.expected.keys()) + 1, count)
            parts.append(f"case {number} of {count}")
        if rate and (left := self._remaining(answered)) > 0:
            parts.append(f"about {duration(left / rate)} left")
        return "  ".join(parts)

    def _remaining(self, answered: Counter[str]) -> float:
        """Return how many requests are still to come, as far as cases of the same probe tell."""
        really, expected = Counter[str](), Counter[str]()
        for case in self._ended & self.expected.keys():
            really[_probe(case)] += answered[case]
            expected[_probe(case)] += self.expected[case]
        left = 0.0
        for case in self.expected.keys() - self._ended:
            most, probe = self.expected[case], _probe(case)
            share = really[probe] / expected[probe] if expected[probe] else 1.0
            left += most * share - min(answered[case], most)
        return left

    def _rate(self, asked: int, now: float) -> float:
        """Return the answers a second that models gave lately; 0 as long as that is not known."""
        if not self._rates or asked != self._rates[-1][1]:
            self._rates.append((now, asked))
        while len(self._rates) > 2 and now - self._rates[1][0] > _WINDOW:
            self._rates.popleft()
        (began, first), last = self._rates[0], self._rates[-1][1]
        return (last - first) / (now - began) if last > first and now > began else 0.0


def _probe(case: str) -> str:
    return case.partition("[")[0]


def duration(seconds: float) -> str:
    """Return a length of time for people: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
