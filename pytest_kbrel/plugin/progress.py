"""Progress of a run in words: the case that is asked, its answers, the rate, and the time that is left."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pytest_kbrel.evaluation.answer_counts import AnswerCounts
from pytest_kbrel.reports.formatting import one_line

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
        self._expected: dict[str, int] = {}
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
        self._expected |= requests
        self._titles = titles

    def end(self, case: str) -> None:
        """Note that a case has ended, whatever it was still expected to ask."""
        self._ended.add(case)

    def text(self, counts: Sequence[AnswerCounts], now: float) -> str:
        """Return the line for the counts of all processes; empty before the first case is begun."""
        asking = [
            one for one in counts if one.current and one.current not in self._ended
        ]
        if not asking:
            return ""
        rate = self._rate(sum(one.asked for one in counts), now)
        cases = list(dict.fromkeys(one.current for one in asking))
        if len(asking) == 1:
            title = self._titles.get(cases[0], cases[0].partition("::")[2])
            name = one_line(title or cases[0], _NAME)
        else:
            name = f"{len(asking)} workers"
        answered = sum(one.answered[case] for one in counts for case in cases)
        total = sum(self._expected.get(case, 0) for case in cases)
        parts = [f"{name} {_of(answered, total)}"]
        silence = self._silence(
            (cases, [(one.asked, one.answered.total()) for one in counts]), now
        )
        if silence >= _SILENCE:
            rate = 0.0
            parts.append(f"no answer for {duration(silence)}")
        if rate:
            parts.append(f"{rate:,.0f}/s" if rate >= 1 else f"{60 * rate:,.0f}/min")
        if self._expected:
            number = min(
                len(self._ended & self._expected.keys()) + 1, len(self._expected)
            )
            parts.append(f"case {number} of {len(self._expected)}")
        if rate and (left := self._remaining(counts)) > 0:
            parts.append(f"about {duration(left / rate)} left")
        return "  ".join(parts)

    def _silence(self, counted: object, now: float) -> float:
        """Return the seconds since what was counted was something else, 0 at the first look."""
        if counted != self._latest[0]:
            self._latest = counted, now
        return now - self._latest[1]

    def _remaining(self, counts: Sequence[AnswerCounts]) -> float:
        """Return how many requests are still to come, as far as cases of the same probe tell."""
        answered = Counter[str]()
        for one in counts:
            answered.update(one.answered)
        really, expected = Counter[str](), Counter[str]()
        for case in self._ended & self._expected.keys():
            really[_probe(case)] += answered[case]
            expected[_probe(case)] += self._expected[case]
        return sum(
            max(
                most
                * (
                    really[_probe(case)] / expected[_probe(case)]
                    if expected[_probe(case)]
                    else 1
                ),
                0,
            )
            - min(answered[case], most)
            for case, most in self._expected.items()
            if case not in self._ended
        )

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


def _of(answered: int, total: int) -> str:
    # Who decides a case that others have asked in parts takes the answers from the cache once more.
    return f"{min(answered, total):,}/{total:,}" if total else f"{answered:,} answers"


def duration(seconds: float) -> str:
    """Return a length of time for people: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
