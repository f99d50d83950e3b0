"""Stub run: the requests of a case, found by driving its probe with canned answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.metrics.text import tfidf_cosine
from pytest_kbrel.models.base import TokenCounter
from pytest_kbrel.probes import chunks_of, drive, open_case, part_of, wording_of
from pytest_kbrel.probes.prompts import UNSURE
from pytest_kbrel.probes.reliability import with_shots
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
    Shard,
    Step,
    Table,
    facts_asked,
)
from pytest_kbrel.settings import RULES

Scenario = Literal["fewest", "most"]
"""Answers that make a probe ask least, and answers that make it ask most."""

# No fact of any suite has this answer, and no rule judges it uninformative.
INVENTED = "Quillmere"
# Facts of a case that stand for all of them in an estimate.
SAMPLED = 4


def asks_of(case: Case, scenario: Scenario = "most") -> Iterator[Ask]:
    """Yield what a case asks of any model, where the answers are those of the scenario."""
    probe, facts = open_case(case), {fact.id: fact for fact in case.facts}
    try:
        asks = next(probe)
        while True:
            yield from asks
            answers = (_answer(case, facts[ask.fact_id], ask, scenario) for ask in asks)
            asks = probe.send(tuple(answers))
    except StopIteration:
        return


def whole(case: Case) -> Iterator[Case]:
    """Return a case in chunks; an encoder that would choose the examples is replaced by TF-IDF."""
    return chunks_of(with_shots(case, tfidf_cosine))


def sampled(case: Case, count: int = SAMPLED) -> Case:
    """Return the case with ``count`` of its facts, spread over all of them, asked as in the whole case.

    There are as many examples for each fact as in a run, but not the nearest ones. Raises ``SuiteError``
    where there are too few.
    """
    total = len(case.facts)
    if count < total:
        chosen = [(2 * at + 1) * total // (2 * count) for at in range(count)]
        case = part_of(case, [case.facts[at] for at in chosen])
    # All are equally alike.
    return with_shots(case, lambda asked, shown: [[0.0] * len(shown)] * len(asked))


def columns_of(case: Case) -> tuple[str, ...]:
    """Return the columns of a case's table of outcomes."""
    return _driven(sampled(case, 1), lambda request: "").columns


def prompt_digests(case: Case, digest: Callable[[Request], str]) -> dict[str, str]:
    """Return how each fact will be asked (:attr:`Outcome.prompt_digest`), by fact id; no model is asked.

    ``digest`` returns that of a prompt, and raises ``ValueError`` where the model refuses it: such a fact is
    left out.
    """
    return {row.fact_id: row.prompt_digest for row in _driven(case, digest).rows}


def _driven(case: Case, digest: Callable[[Request], str]) -> Table:
    def answer(ask: Ask) -> Response:
        try:
            known = "" if ask.to else digest(ask.request)
        except ValueError as error:
            return Failed(error=str(error))
        return _answer(case, facts[ask.fact_id], ask, "most", known)

    facts = {fact.id: fact for fact in case.facts}
    return drive(open_case(case), lambda asks: tuple(map(answer, asks))).table


def cost_of(case: Case) -> float:
    """Return about how many tokens a case reads, and writes at most, by its middle fact."""
    counter = TokenCounter()
    return len(case.facts) * sum(
        counter.prompt(ask.request)
        + (
            counter.continuation(ask.request)
            if isinstance(ask.request, ScoreRequest)
            else ask.request.max_new_tokens
        )
        for ask in _of_one_fact(case)
    )


def requests_of(case: Case, shard: Shard | None) -> int:
    """Return about how many requests a case puts to the model under test, at most, within the ``shard``."""
    of_one_fact = sum(not ask.to for ask in _of_one_fact(case))
    return len(facts_asked(case, shard)) * of_one_fact


def _of_one_fact(case: Case) -> list[Ask]:
    try:
        return list(asks_of(sampled(case, 1)))
    except KbrelError:
        # The case itself says what is wrong with it.
        return []


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
        return fact.accepted[0]
    return INVENTED
