"""Figures of a plan from the least to the most, as the scenarios of a run span them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pytest_kbrel.baselines import Baseline, BaselineCase
from pytest_kbrel.planning.asking import Scenario, is_fixed
from pytest_kbrel.records import Case, Outcome, record


@record
class Span:
    """From the least to the most; ``about`` is what the baseline's answers lead to, where there are any."""

    low: float
    high: float
    about: float | None = None

    def plus(self, other: Span) -> Span:
        """Return the sum; it is known about where one of the two is."""
        about = None
        if self.about is not None or other.about is not None:
            about = self.nearest + other.nearest
        return Span(low=self.low + other.low, high=self.high + other.high, about=about)

    def times(self, factor: float) -> Span:
        """Return so many times as much."""
        about = None if self.about is None else self.about * factor
        return Span(low=self.low * factor, high=self.high * factor, about=about)

    @property
    def nearest(self) -> float:
        """The best guess there is."""
        return self.high if self.about is None else self.about


@record
class Scenarios:
    """A run that asks least, one that asks most (the same where nothing hangs on answers), a known one."""

    low: Scenario
    high: Scenario
    known: Scenario | None

    def every(self) -> tuple[Scenario, ...]:
        """Return those that differ, the one that asks most first."""
        if self.low is self.high:
            return (self.high,)
        return (self.high, self.low, *([] if self.known is None else [self.known]))

    def span(self, of: Callable[[Scenario], float]) -> Span:
        """Return what a figure of a scenario spans."""
        if self.low is self.high:
            only = of(self.high)
            return Span(low=only, high=only)
        about = None if self.known is None else of(self.known)
        # Real answers may be longer than those of the stand-ins, and questions that have them in front.
        ends = [of(self.low), of(self.high), *([] if about is None else [about])]
        return Span(low=min(ends), high=max(ends), about=about)


def scenarios_of(cases: Sequence[Case], baseline: Baseline | None) -> Scenarios:
    """Return the scenarios of a run of ``cases``; the known one is by the answers of ``baseline``."""
    high = Scenario(cases, "most")
    if all(map(is_fixed, cases)):
        return Scenarios(low=high, high=high, known=None)

    def rows(case: Case) -> Iterable[Outcome]:
        blessed = None if baseline is None else baseline.case(case)
        return blessed.table.rows if isinstance(blessed, BaselineCase) else ()

    known = Scenario(cases, "known", rows) if any(any(True for _ in rows(case)) for case in cases) else None
    return Scenarios(low=Scenario(cases, "fewest"), high=high, known=known)
