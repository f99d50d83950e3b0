"""Which requests a run would make: the probes themselves are driven, with a stand-in for every model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from pytest_kbrel.metrics.similarity import tfidf_cosine
from pytest_kbrel.planning.standin import Mood, StandIn
from pytest_kbrel.probes import open_case
from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.probes.shots import with_shots
from pytest_kbrel.probes.stretches import stretches_of
from pytest_kbrel.records import Ask, Case, Outcome, Request, ScoreRequest, record

# Which kind of work a request is: who is asked, probe, round and whether it is scored or generated.
Kind = tuple[str, str, int, str]
Rows = Callable[[Case], Iterable[Outcome]]


@record
class Call:
    """Requests that are put to one model at once: the new ones of a stretch of a case, of one round and kind.

    ``repeated`` are those that came in and were asked before, here or in an earlier call.
    """

    case: str
    kind: Kind
    requests: tuple[Request, ...]
    repeated: tuple[Request, ...] = ()

    @property
    def asked(self) -> int:
        """How many requests came in."""
        return len(self.requests) + len(self.repeated)

    @property
    def to(self) -> str:
        """Who is asked, as in :class:`pytest_kbrel.records.Ask`."""
        return self.kind[0]


@record
class Scenario:
    """All calls of a run, case by case, were the models to answer in one mood.

    ``columns`` has, for each case's node id, the columns of its table of outcomes. ``seconds`` is how long
    the probes themselves took.
    """

    mood: Mood
    calls: tuple[Call, ...]
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    seconds: float

    def asked(self, case: str = "", to: str | None = None) -> int:
        """Return how many requests come in, of one case and for one model if these are given."""
        return sum(call.asked for call in self._of(case, to))

    def new(self, case: str = "", to: str | None = None) -> tuple[Request, ...]:
        """Return those requests that are put to a model, as :meth:`asked`."""
        return tuple(request for call in self._of(case, to) for request in call.requests)

    def _of(self, case: str, to: str | None) -> list[Call]:
        return [
            call for call in self.calls if (not case or call.case == case) and (to is None or call.to == to)
        ]


def is_fixed(case: Case) -> bool:
    """Tell whether what ``case`` asks depends on no answer."""
    if case.probe == "monitor":
        return getattr(case.settings, "variant", "definition") == "definition"
    return case.probe == "head_to_tail" and case.judge == "rules"


def scenario(cases: Sequence[Case], mood: Mood, rows: Rows = lambda case: ()) -> Scenario:
    """Drive ``cases`` in order; ``rows`` gives a case's known outcomes.

    As in a run, a request that came before, in whatever case, is not put to its model again: the counts are
    those of one process. An encoder that would choose the examples is replaced by TF-IDF: it finds as many.
    """
    started = time.perf_counter()
    memory: dict[str, set[Request]] = {}
    calls: list[Call] = []
    columns = []
    for case in cases:
        known = {row.fact_id: row for row in rows(case)}
        shown = with_shots(case, tfidf_cosine)
        results = [_drive(part, StandIn(case, mood, known), memory, calls) for part in stretches_of(shown)]
        columns.append((f"{case.suite}::{case.id}", results[0].table.columns))
    return Scenario(
        mood=mood, calls=tuple(calls), columns=tuple(columns), seconds=time.perf_counter() - started
    )


def _drive(case: Case, stand_in: StandIn, memory: dict[str, set[Request]], calls: list[Call]) -> ProbeResult:
    probe = open_case(case)
    number = 0
    try:
        asks = next(probe)
        while True:
            calls += _calls(case, number, asks, memory)
            asks = probe.send(tuple(stand_in.answer(asks)))
            number += 1
    except StopIteration as stop:
        result: ProbeResult = stop.value
        return result


def _calls(case: Case, number: int, asks: Sequence[Ask], memory: dict[str, set[Request]]) -> list[Call]:
    found: dict[Kind, list[Request]] = {}
    for ask in asks:
        method = "score" if isinstance(ask.request, ScoreRequest) else "generate"
        found.setdefault((ask.to, case.probe, number, method), []).append(ask.request)
    calls = []
    for kind, requests in found.items():
        known = memory.setdefault(kind[0], set())
        new: list[Request] = []
        repeated: list[Request] = []
        for request in requests:
            (repeated if request in known else new).append(request)
            known.add(request)
        calls.append(
            Call(case=f"{case.suite}::{case.id}", kind=kind, requests=tuple(new), repeated=tuple(repeated))
        )
    return calls
