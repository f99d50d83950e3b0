"""Which requests a run would make: the probes themselves are driven, with a stand-in for every model."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.metrics.similarity import tfidf_cosine
from pytest_kbrel.models.cache.keys import key_of
from pytest_kbrel.planning.aside import Aside
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

    ``asked`` is how many requests came in, those included that were asked before, here or in an earlier call.
    """

    case: str
    kind: Kind
    requests: tuple[Request, ...]
    asked: int

    @property
    def to(self) -> str:
        """Who is asked, as in :class:`pytest_kbrel.records.Ask`."""
        return self.kind[0]


class Scenario:
    """A run of ``cases`` in order, were the models to answer in one mood.

    ``rows`` gives a case's known outcomes. As in a run, a request that came before, in whatever case, is not
    put to its model again: the counts are those of one process. An encoder that would choose the examples is
    replaced by TF-IDF: it finds as many.

    ``columns`` has, for each case's node id, the columns of its table of outcomes, and ``seconds`` is how
    long the probes themselves took, both once all calls were made.
    """

    def __init__(self, cases: Sequence[Case], mood: Mood, rows: Rows = lambda case: ()) -> None:
        self.mood = mood
        self.columns: dict[str, tuple[str, ...]] = {}
        self.seconds = 0.0
        self._cases = cases
        self._rows = rows

    def calls(self) -> Iterator[Call]:
        """Make all calls of the run, case by case and stretch by stretch: none is held here."""
        self.seconds = 0.0
        making = self._made()
        while True:
            started = time.perf_counter()
            call = next(making, None)
            self.seconds += time.perf_counter() - started
            if call is None:
                return
            yield call

    def _made(self) -> Iterator[Call]:
        asked: dict[str, Aside] = {}
        for case in self._cases:
            known = {row.fact_id: row for row in self._rows(case)}
            stand_in = StandIn(case, self.mood, known)
            for part in stretches_of(with_shots(case, tfidf_cosine)):
                result = yield from _driven(part, stand_in, asked)
                self.columns[f"{case.suite}::{case.id}"] = result.table.columns


def is_fixed(case: Case) -> bool:
    """Tell whether what ``case`` asks depends on no answer."""
    by_model = PROBES[case.probe].judged and case.judge != "rules"
    return not case.settings.follows_answers and not by_model


def _driven(case: Case, stand_in: StandIn, asked: dict[str, Aside]) -> Generator[Call, None, ProbeResult]:
    probe = open_case(case)
    number = 0
    try:
        asks = next(probe)
        while True:
            yield from _calls(case, number, asks, asked)
            asks = probe.send(tuple(stand_in.answer(asks)))
            number += 1
    except StopIteration as stop:
        result: ProbeResult = stop.value
        return result


def _calls(case: Case, number: int, asks: Sequence[Ask], asked: dict[str, Aside]) -> Iterator[Call]:
    found: dict[Kind, list[Request]] = {}
    for ask in asks:
        method = "score" if isinstance(ask.request, ScoreRequest) else "generate"
        found.setdefault((ask.to, case.probe, number, method), []).append(ask.request)
    for kind, requests in found.items():
        keys = (bytes.fromhex(key_of("", request)) for request in requests)
        if kind[0] not in asked:
            asked[kind[0]] = Aside()
        are_new = asked[kind[0]].add(keys)
        new = tuple(request for request, is_new in zip(requests, are_new, strict=True) if is_new)
        yield Call(case=f"{case.suite}::{case.id}", kind=kind, requests=new, asked=len(requests))
