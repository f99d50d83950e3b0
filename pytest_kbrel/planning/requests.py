"""Dry runs: the requests of a run, found by driving the probes with a stub in place of every model."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pytest_kbrel.baselines import Baseline, BaselineCase
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.metrics.text import tfidf_cosine
from pytest_kbrel.models.cache.store import key_of
from pytest_kbrel.planning.sampling import sample_of
from pytest_kbrel.probes import chunks_of, open_case
from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.probes.grading import judged_by_rules
from pytest_kbrel.probes.prompts import UNSURE
from pytest_kbrel.probes.reliability.shots import with_shots
from pytest_kbrel.probes.wordings import wording_of
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    Generated,
    Outcome,
    Reply,
    Request,
    Response,
    Scored,
    ScoreRequest,
    Step,
    record,
)
from pytest_kbrel.settings import RULES

Rows = Callable[[Case], Iterable[Outcome]]
Scenario = Literal["fewest", "most", "baseline"]
"""Answers that make a probe ask least, answers that make it ask most, and the answers of a baseline."""

# No fact of any suite has this answer, and no rule judges it uninformative.
INVENTED = "Quillmere"
# Of each case so many facts stand for all in a sampled dry run, and more where a baseline's answers decide
# what is asked, since facts differ then.
SAMPLED = 4
_SAMPLED_BY_BASELINE = 32


@record
class Call:
    """Requests put to one model at once: the new ones of a chunk of a case, of one round.

    ``to`` is as in :class:`pytest_kbrel.records.Ask`, ``method`` is ``score`` or ``generate``. ``received`` is
    how many requests came in, with those that came before, here or in an earlier call. Where a sample is
    asked, each request stands for so many of the run.
    """

    case: str
    to: str
    method: str
    requests: tuple[Request, ...]
    received: int
    stands_for: float


class DryRun:
    """A run of ``cases`` in order, with models that answer by one scenario.

    ``rows`` gives a case's known outcomes. As in a run, a request that came before, in whatever case, is not
    put to its model again: the counts are those of one process. An encoder that would choose the examples is
    replaced by TF-IDF, which finds as many. ``sampled``: only a few facts of each case are asked, and any
    examples are shown.

    Once all calls were made, ``columns`` has the columns of each case's table of outcomes, by node id.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        scenario: Scenario,
        rows: Rows = lambda case: (),
        *,
        sampled: bool = False,
    ) -> None:
        self.scenario = scenario
        self._sampled = sampled
        self.columns: dict[str, tuple[str, ...]] = {}
        self._cases = cases
        self._rows = rows

    def calls(self) -> Iterator[Call]:
        """Make all calls of the run, case by case and chunk by chunk; none is held here."""
        seen: set[tuple[str, bytes]] = set()
        for case in self._cases:
            rows = {row.fact_id: row for row in self._rows(case)}
            stub = StubModel(case, self.scenario, rows)
            for part, stands_for in self._parts(case):
                result = yield from _driven(part, stub, seen, stands_for)
                self.columns[f"{case.suite}::{case.id}"] = result.table.columns

    def _parts(self, case: Case) -> Iterator[tuple[Case, float]]:
        """Yield what is asked of a case, each with how many of its facts one fact stands for."""
        if not self._sampled:
            yield from (
                (part, 1.0) for part in chunks_of(with_shots(case, tfidf_cosine))
            )
            return
        by_answers = self.scenario == "baseline" and not is_fixed(case)
        sample = sample_of(case, _SAMPLED_BY_BASELINE if by_answers else SAMPLED)
        yield sample, len(case.facts) / max(len(sample.facts), 1)


def is_fixed(case: Case) -> bool:
    """Return True if what ``case`` asks depends on no answer."""
    by_model = PROBES[case.probe].judged and case.judge != RULES
    return not case.settings.follows_answers and not by_model


def _driven(
    case: Case, stub: StubModel, seen: set[tuple[str, bytes]], stands_for: float
) -> Generator[Call, None, ProbeResult]:
    probe = open_case(case)
    try:
        asks = next(probe)
        while True:
            for (to, method), requests in _by_model(asks).items():
                new: list[Request] = []
                for request in requests:
                    key = to, bytes.fromhex(key_of("", request))
                    if key not in seen:
                        seen.add(key)
                        new.append(request)
                yield Call(
                    case=f"{case.suite}::{case.id}",
                    to=to,
                    method=method,
                    requests=tuple(new),
                    received=len(requests),
                    stands_for=stands_for,
                )
            asks = probe.send(tuple(stub.answer(asks)))
    except StopIteration as stop:
        result: ProbeResult = stop.value
        return result


def _by_model(asks: Sequence[Ask]) -> dict[tuple[str, str], list[Request]]:
    """Return the requests of ``asks`` by the model that gets them and by method."""
    requests: dict[tuple[str, str], list[Request]] = {}
    for ask in asks:
        method = "score" if isinstance(ask.request, ScoreRequest) else "generate"
        requests.setdefault((ask.to, method), []).append(ask.request)
    return requests


@record
class Range:
    """A figure from the least to the most; ``about`` is what the baseline's answers lead to, if known."""

    low: float
    high: float
    about: float | None = None

    def plus(self, other: Range) -> Range:
        """Return the sum; it has an ``about`` if one of the two has."""
        about = None
        if self.about is not None or other.about is not None:
            about = self.nearest + other.nearest
        return Range(low=self.low + other.low, high=self.high + other.high, about=about)

    def times(self, factor: float) -> Range:
        """Return so many times as much."""
        about = None if self.about is None else self.about * factor
        return Range(low=self.low * factor, high=self.high * factor, about=about)

    @property
    def nearest(self) -> float:
        """The best guess there is."""
        return self.high if self.about is None else self.about


@record
class DryRuns:
    """Dry runs that ask least and most (the same where nothing depends on answers), and by a baseline."""

    low: DryRun
    high: DryRun
    by_baseline: DryRun | None

    def every(self) -> tuple[DryRun, ...]:
        """Return those that differ, the one that asks most first."""
        if self.low is self.high:
            return (self.high,)
        return (
            self.high,
            self.low,
            *([] if self.by_baseline is None else [self.by_baseline]),
        )

    def range(self, of: Callable[[DryRun], float]) -> Range:
        """Return the range of a figure over the dry runs."""
        if self.low is self.high:
            only = of(self.high)
            return Range(low=only, high=only)
        about = None if self.by_baseline is None else of(self.by_baseline)
        # Real answers may be longer than those of the stubs, and questions that have them in front.
        ends = [of(self.low), of(self.high), *([] if about is None else [about])]
        return Range(low=min(ends), high=max(ends), about=about)


def dry_runs_of(
    cases: Sequence[Case], baseline: Baseline | None, *, sampled: bool = False
) -> DryRuns:
    """Return the dry runs of ``cases``; one is by the answers of ``baseline`` where that has any of them."""
    high = DryRun(cases, "most", sampled=sampled)
    if all(map(is_fixed, cases)):
        return DryRuns(low=high, high=high, by_baseline=None)

    def rows(case: Case) -> Iterable[Outcome]:
        blessed = None if baseline is None else baseline.case(case)
        return blessed.table.rows if isinstance(blessed, BaselineCase) else ()

    has_rows = any(any(True for _ in rows(case)) for case in cases)
    by_baseline = DryRun(cases, "baseline", rows, sampled=sampled) if has_rows else None
    return DryRuns(
        low=DryRun(cases, "fewest", sampled=sampled), high=high, by_baseline=by_baseline
    )


class StubModel:
    """Stub model for dry runs: returns canned responses that make every probe emit all its requests.

    In the scenario ``baseline`` each fact gets the answer it has in ``rows`` (by fact id), and a fact without
    one gets that of ``most``.
    """

    def __init__(
        self, case: Case, scenario: Scenario, rows: Mapping[str, Outcome] | None = None
    ) -> None:
        self._case = case
        self._scenario = scenario
        self._rows = rows or {}
        self._facts = {fact.id: fact for fact in case.facts}

    def answer(self, asks: Sequence[Ask]) -> list[Response]:
        """Return one response for each ask, in order."""
        return [self._response(ask) for ask in asks]

    def _response(self, ask: Ask) -> Response:
        if isinstance(ask.request, ScoreRequest):
            return Scored(
                probabilities=(0.5,), token_ids=(0,), prompt_tokens=0, prompt_digest=""
            )
        fact = self._facts[ask.fact_id]
        text = self._helper_reply(ask, fact) if ask.to else self._model_reply(ask, fact)
        step = Step(token_id=0, token=text, probability=0.5)
        return Generated(
            text=text,
            token_ids=(),
            finish="stop",
            prompt_tokens=0,
            prompt_digest="",
            steps=(step,) if ask.request.steps else (),
        )

    def _helper_reply(self, ask: Ask, fact: Fact) -> str:
        if ask.to == self._case.judge and wording_of(ask.role)[1] == "judge":
            reply = self._reply(fact, ask.role)
            return (
                "incorrect"
                if reply is not None and reply.label == "wrong"
                else "correct"
            )
        settings = self._case.settings
        return "\n".join(
            f"{INVENTED} {number}"
            for number in range(getattr(settings, "distractors", 1))
        )

    def _model_reply(self, ask: Ask, fact: Fact) -> str:
        if PROBES[self._case.probe].drops_facts:
            return self._anchor_reply(fact)
        if wording_of(ask.role)[1] != "answer":
            # No further question depends on which option is chosen.
            return "A"
        if (
            self._scenario == "baseline"
            and (reply := self._reply(fact, ask.role)) is not None
        ):
            return reply.answer
        return UNSURE if self._scenario == "fewest" else self._assertion(fact)

    def _reply(self, fact: Fact, role: str) -> Reply | None:
        """Return the known answer to the wording that an ask in this role is about."""
        row, number = self._rows.get(fact.id), wording_of(role)[0]
        return (
            row.replies[number]
            if row is not None and number < len(row.replies)
            else None
        )

    def _anchor_reply(self, fact: Fact) -> str:
        """Return an answer that keeps or drops a fact in the published variant of MONITOR."""
        stays = self._scenario != "fewest"
        if self._scenario == "baseline" and fact.id in self._rows:
            stays = any(self._rows[fact.id].values)
        return (fact.object or "") if stays else ""

    def _assertion(self, fact: Fact) -> str:
        # A judge is asked about every answer that is not equal to an accepted one.
        if self._case.judge == "rules" and fact.accepted:
            answer = fact.accepted[0]
            if judged_by_rules(self._case, fact, answer).label != "uninformative":
                return answer
        return INVENTED
