"""Dry runs: the requests of a run, found by driving the probes with a stub in place of every model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Literal

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.metrics.text import tfidf_cosine
from pytest_kbrel.models.cache.store import key_of
from pytest_kbrel.planning.sampling import sample_of
from pytest_kbrel.probes import chunks_of, drive, open_case
from pytest_kbrel.probes.base import ProbeResult
from pytest_kbrel.probes.grading import judged_by_rules
from pytest_kbrel.probes.prompts import UNSURE
from pytest_kbrel.probes.reliability.shots import with_shots
from pytest_kbrel.probes.wordings import wording_of
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    Failed,
    Generated,
    Request,
    Response,
    Scored,
    ScoreRequest,
    Step,
    record,
)
from pytest_kbrel.settings import RULES

Scenario = Literal["fewest", "most"]
"""Answers that make a probe ask least, and answers that make it ask most."""
# Parts of a case, each with how many facts of the run one of its facts stands for.
Parts = Iterable[tuple[Case, float]]

# No fact of any suite has this answer, and no rule judges it uninformative.
INVENTED = "Quillmere"
# Of each case so many facts stand for all in a sampled dry run.
SAMPLED = 4


@record
class Call:
    """Requests put to one model at once: the new ones of a chunk of a case, of one round.

    ``to`` is as in :class:`pytest_kbrel.records.Ask`. ``received`` is how many requests came in, with those that came before, here or in an earlier call. Where a sample is
    asked, each request stands for so many of the run.
    """

    case: str
    to: str
    requests: tuple[Request, ...]
    received: int
    stands_for: float


def whole(case: Case) -> Parts:
    """Yield a case in chunks; an encoder that would choose the examples is replaced by TF-IDF."""
    return ((part, 1.0) for part in chunks_of(with_shots(case, tfidf_cosine)))


def sampled(case: Case) -> Parts:
    """Yield a few facts of a case, with any examples."""
    sample = sample_of(case, SAMPLED)
    yield sample, len(case.facts) / max(len(sample.facts), 1)


class DryRun:
    """A run of ``cases`` in order, with models that answer by one scenario.

    As in a run, a request that came before, in whatever case, is not put to its model again: the counts are
    those of one process. Once all calls were made, ``columns`` has the columns of each case's table of
    outcomes, by node id.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        scenario: Scenario,
        parts: Callable[[Case], Parts] = whole,
    ) -> None:
        self.scenario = scenario
        self.columns: dict[str, tuple[str, ...]] = {}
        self._cases = cases
        self._parts = parts

    def calls(self) -> Iterator[Call]:
        """Make all calls of the run, case by case and part by part; none is held here."""
        seen: set[tuple[str, bytes]] = set()
        for case in self._cases:
            for part, stands_for in self._parts(case):
                result = yield from _calls(part, self.scenario, seen, stands_for)
                self.columns[f"{case.suite}::{case.id}"] = result.table.columns


def is_fixed(case: Case) -> bool:
    """Return True if what ``case`` asks depends on no answer."""
    by_model = PROBES[case.probe].judged and case.judge != RULES
    return not case.settings.follows_answers and not by_model


def _calls(
    case: Case, scenario: Scenario, seen: set[tuple[str, bytes]], stands_for: float
) -> Generator[Call, None, ProbeResult]:
    probe, facts = open_case(case), {fact.id: fact for fact in case.facts}
    try:
        asks = next(probe)
        while True:
            by_model: defaultdict[str, list[Request]] = defaultdict(list)
            for ask in asks:
                by_model[ask.to].append(ask.request)
            for to, requests in by_model.items():
                new: list[Request] = []
                for request in requests:
                    key = to, bytes.fromhex(key_of("", request))
                    if key not in seen:
                        seen.add(key)
                        new.append(request)
                yield Call(
                    case=f"{case.suite}::{case.id}",
                    to=to,
                    requests=tuple(new),
                    received=len(requests),
                    stands_for=stands_for,
                )
            answers = (_answer(case, facts[ask.fact_id], ask, scenario) for ask in asks)
            asks = probe.send(tuple(answers))
    except StopIteration as stop:
        result: ProbeResult = stop.value
        return result


def prompt_digests(case: Case, digest: Callable[[Request], str]) -> dict[str, str]:
    """Return how each fact will be asked (:attr:`Outcome.prompt_digest`), by fact id; no model is asked.

    ``digest`` returns that of a prompt, and raises ``ValueError`` where the model refuses it: such a fact is
    left out.
    """

    def answer(ask: Ask) -> Response:
        try:
            known = "" if ask.to else digest(ask.request)
        except ValueError as error:
            return Failed(error=str(error))
        return _answer(case, facts[ask.fact_id], ask, "most", known)

    facts = {fact.id: fact for fact in case.facts}
    result = drive(case, lambda asks: [answer(ask) for ask in asks])
    return {row.fact_id: row.prompt_digest for row in result.table.rows}


def dry_runs_of(
    cases: Sequence[Case], parts: Callable[[Case], Parts] = whole
) -> tuple[DryRun, ...]:
    """Return the dry run that asks most and, where anything depends on answers, the one that asks least."""
    most = DryRun(cases, "most", parts)
    return (
        (most,) if all(map(is_fixed, cases)) else (most, DryRun(cases, "fewest", parts))
    )


def _answer(
    case: Case, fact: Fact, ask: Ask, scenario: Scenario, digest: str = ""
) -> Response:
    """Return a canned response with which a probe goes on to emit its further requests.

    ``digest`` is that of the prompt.
    """
    if isinstance(ask.request, ScoreRequest):
        return Scored(
            probabilities=(0.5,), token_ids=(0,), prompt_tokens=0, prompt_digest=digest
        )
    text = (
        _helper_reply(case, ask) if ask.to else _model_reply(case, fact, ask, scenario)
    )
    step = Step(token_id=0, token=text, probability=0.5)
    return Generated(
        text=text,
        token_ids=(),
        finish="stop",
        prompt_tokens=0,
        prompt_digest=digest,
        steps=(step,) if ask.request.steps else (),
    )


def _helper_reply(case: Case, ask: Ask) -> str:
    if ask.to == case.judge and wording_of(ask.role)[1] == "judge":
        return "correct"
    count = getattr(case.settings, "distractors", 1)
    return "\n".join(f"{INVENTED} {number}" for number in range(count))


def _model_reply(case: Case, fact: Fact, ask: Ask, scenario: Scenario) -> str:
    if PROBES[case.probe].drops_facts:
        # The published variant of MONITOR asks no more of a fact that is not known.
        return "" if scenario == "fewest" else fact.object or ""
    if wording_of(ask.role)[1] != "answer":
        # No further question depends on which option is chosen.
        return "A"
    if scenario == "fewest":
        return UNSURE
    # A judge is asked about every answer that is not equal to an accepted one.
    if case.judge == RULES and fact.accepted:
        answer = fact.accepted[0]
        if judged_by_rules(case, fact, answer).label != "uninformative":
            return answer
    return INVENTED
