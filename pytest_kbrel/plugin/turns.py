"""Turns: cases asked look by look instead of case by case, where -x ends the session at a failure.

Asked one after the other, a case that fails is met only when all before it are decided. Asked in turn, all
cases of a suite file are asked their first share, then their second: what fails clearly is met early,
wherever it stands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

import pytest

from pytest_kbrel.errors import BudgetError, KbrelError
from pytest_kbrel.plugin.collection import case_of
from pytest_kbrel.records import Case, CaseResult
from pytest_kbrel.session.case_asker import Asking

# Items with these marks may be skipped, or fail without ending the session.
_MARKS = ("skip", "skipif", "xfail")


@dataclasses.dataclass
class _Turn:
    """One case: its result so far or its error, and whether no more of it is asked and its item will fail."""

    case: Case
    asking: Asking
    looks: int
    taken: int = 0
    result: CaseResult | KbrelError | None = None
    ended: bool = False
    fails: bool = False

    @property
    def next_share(self) -> float:
        """The share of the case that is asked at its next look."""
        return (self.taken + 1) / self.looks


class Turns:
    """Decides the cases of one process. ``ask`` starts one, ``looks_at`` is the number of its looks.

    Where failures end the session (-x, --maxfail), a case ends at the first gate that fails, and in a single
    process it takes turns with the cases of its suite file that come after it. As soon as so many have failed
    as end the session, these are run next. ``failing`` are the verdicts that fail an item.
    """

    def __init__(
        self,
        session: pytest.Session,
        ask: Callable[[Case], Asking],
        looks_at: Callable[[Case], int],
        failing: Collection[str],
    ) -> None:
        self._session = session
        self._ask = ask
        self._looks_at = looks_at
        self._failing = failing
        self._most = getattr(session.config.option, "maxfail", 0)
        self._turns: dict[str, _Turn] = {}
        # Why the session is about to end, once it is, and the result of the case that was being asked then.
        self._ending = ""
        self._partial: CaseResult | None = None

    def decide(self, case: Case) -> CaseResult:
        """Return the result of a case, if need be of a part of it; raise the ``KbrelError`` that ended it."""
        own = self._turn_of(case)
        items = self._followers(case) if own.looks > 1 else []
        others = [
            self._turn_of(other)
            for item in items
            if (other := _unmarked(item)) is not None
        ]
        while not own.ended:
            waiting = [turn for turn in (own, *others) if not turn.ended]
            self._take(
                min(waiting, key=lambda turn: turn.next_share) if own.taken else own
            )
            failed = [turn for turn in others if turn.fails]
            if failed and not own.ended and self._ends(len(failed)):
                self._ending = f"{', '.join(turn.case.id for turn in failed)} failed, which ends the session"
                self._bring_forward(items)
                break
        del self._turns[_name_of(case)]
        if isinstance(own.result, KbrelError):
            raise own.result
        assert own.result is not None
        if not own.ended:
            self._partial = own.result
        return own.result

    def why_partial(self, result: CaseResult) -> str:
        """Return why the case of this result was asked in part; empty where it was asked to its end."""
        return f"asked in part: {self._ending}" if result is self._partial else ""

    def unreported(self, result: CaseResult) -> list[CaseResult]:
        """Return the results of cases that were asked and whose items this failure keeps from being run."""
        if not self._fails(result) or not self._ends(1):
            return []
        return [
            turn.result
            for turn in self._turns.values()
            if isinstance(turn.result, CaseResult)
        ]

    def _ends(self, failures: int) -> bool:
        """Return True if so many more failures end the session."""
        return bool(self._most) and self._session.testsfailed + failures >= self._most

    def _fails(self, result: CaseResult) -> bool:
        return result.verdict in self._failing and not result.waived

    def _take(self, turn: _Turn) -> None:
        """Ask a case up to its next look, where failures end the session no further than to its failure."""
        from pytest_kbrel.gates import has_failed

        turn.taken += 1
        try:
            turn.result = next(turn.asking)
            if self._most and has_failed(turn.result):
                turn.asking.send(True)
        except StopIteration as stop:
            turn.result, turn.ended = stop.value, True
            turn.fails = self._fails(stop.value)
        except BudgetError:
            # No other case could be asked either.
            raise
        except KbrelError as error:
            turn.result, turn.ended, turn.fails = error, True, True

    def _turn_of(self, case: Case) -> _Turn:
        name = _name_of(case)
        if name not in self._turns:
            self._turns[name] = _Turn(
                case=case, asking=self._ask(case), looks=self._looks_at(case)
            )
        return self._turns[name]

    def _followers(self, case: Case) -> list[pytest.Item]:
        """Return the items that take turns with that of ``case``: the cases of its suite file behind it."""
        # A worker of xdist runs what it is sent.
        if (
            not self._most
            or self._ending
            or hasattr(self._session.config, "workerinput")
        ):
            return []
        items = self._session.items
        start = next(
            (at for at, item in enumerate(items, start=1) if case_of(item) is case),
            len(items),
        )
        end = start
        while (
            end < len(items)
            and (other := case_of(items[end])) is not None
            and other.suite == case.suite
        ):
            end += 1
        return items[start:end]

    def _bring_forward(self, items: list[pytest.Item]) -> None:
        """Let those of these items be run first whose cases failed."""
        failed = {name for name, turn in self._turns.items() if turn.fails}
        start = self._session.items.index(items[0])
        self._session.items[start : start + len(items)] = sorted(
            items,
            key=lambda item: (
                (case := case_of(item)) is None or _name_of(case) not in failed
            ),
        )


def _unmarked(item: pytest.Item) -> Case | None:
    return None if any(map(item.get_closest_marker, _MARKS)) else case_of(item)


def _name_of(case: Case) -> str:
    return f"{case.suite}::{case.id}"
