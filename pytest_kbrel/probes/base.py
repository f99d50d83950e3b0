"""What a probe is: a generator that yields rounds of questions and returns outcomes.

Each ``yield`` hands out one round of asks and receives their responses in the same order. What a probe does
between two yields is a pure function of the case and the responses so far, so a recorded run replays without
a model. A probe that asks twice simply yields twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.probes.prompts import fill
from pytest_kbrel.records import (
    Ask,
    Case,
    Digest,
    Fact,
    Failed,
    Generated,
    Outcome,
    Relation,
    Response,
    Scored,
    Table,
    changed_digest,
    record,
    short_digest,
)

R = TypeVar("R", bound=Response)
# Of a response's prompt digest: 16 digits, and a "b" where BOS leads the prompt.
_WITH_BOS = 17


@record
class ProbeResult:
    """What a probe found: a table with a row for each fact it could measure, and what went wrong.

    ``explain`` is what attribution can explain, the worst fact first: for each fact the same continuation
    after two prompts.
    """

    table: Table
    errors: tuple[str, ...] = ()
    explain: tuple[tuple[Ask, Ask], ...] = ()


ProbeRun = Generator[tuple[Ask, ...], tuple[Response, ...], ProbeResult]


class Answers:
    """The responses of one or more rounds, by fact and role."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Response] = {}

    def add(self, asks: Sequence[Ask], responses: Sequence[Response]) -> None:
        """Take in one round; ``responses[i]`` answers ``asks[i]``."""
        for ask, response in zip(asks, responses, strict=True):
            self._found[ask.fact_id, ask.role] = response

    def generated(self, fact_id: str, role: str) -> Generated:
        """Return a generated answer; ``ResponseError`` when it failed."""
        return self._get(fact_id, role, Generated)

    def scored(self, fact_id: str, role: str) -> Scored:
        """Return the probabilities of a continuation; ``ResponseError`` when they could not be had."""
        return self._get(fact_id, role, Scored)

    def failed(self, fact_id: str, role: str) -> bool:
        """Tell whether a request got no usable answer."""
        return isinstance(self._found[fact_id, role], Failed)

    def _get(self, fact_id: str, role: str, kind: type[R]) -> R:
        response = self._found[fact_id, role]
        if isinstance(response, Failed):
            raise ResponseError(f"{fact_id} ({role}): {response.error}")
        if not isinstance(response, kind):
            raise ResponseError(f"{fact_id} ({role}): {kind.__name__} expected, found {response!r}")
        return response


def question_of(case: Case, fact: Fact, frame: int = 0) -> str:
    """Return the question about ``fact`` in its relation's frame number ``frame``."""
    if fact.question is not None and frame == 0:
        return fact.question
    return fill(relation_of(case, fact).frames[frame], fact.subject)


def relation_of(case: Case, fact: Fact) -> Relation:
    """Return the relation of ``fact``."""
    return next(relation for relation in case.relations if relation.id == fact.relation)


def answer_type_of(case: Case, fact: Fact) -> str:
    """Return what kind of answer is asked for, empty if unknown; a fact's own goes before its relation's."""
    of_relation = (relation.answer_type for relation in case.relations if relation.id == fact.relation)
    return fact.answer_type or next(of_relation, "")


def digest_of(
    case: Case, fact: Fact, responses: Iterable[Scored | Generated], draws: Sequence[str] = ()
) -> str:
    """Return the digest of how ``fact`` was asked: equal digests make two outcomes comparable.

    It covers the prompts of ``responses``, in order, the settings that are not the default ones with the
    user's rules for uninformative answers and the fact's language, the accepted answers in any order with
    their type, and ``draws``: what else fixes the questions and does not depend on the model's answers.
    """
    prompts = [response.prompt_digest for response in responses]
    # As a model tells that BOS leads a prompt.
    bare = [prompt.removesuffix("b") if len(prompt) == _WITH_BOS else prompt for prompt in prompts]
    digest = Digest(
        prompts=short_digest(bare),
        bos=sum(mine != given for mine, given in zip(bare, prompts, strict=True)),
        count=len(prompts),
        settings=changed_digest(case, fact.language),
        accepted=short_digest(
            [sorted(fact.accepted), answer_type_of(case, fact), *(fact.answer_range or ())],
        ),
        draws=short_digest(list(draws)),
    )
    return str(digest)


def draws_for(case: Case, fact: Fact) -> random.Random:
    """Return the fact's own random stream: the same whatever else is asked, in whatever order."""
    return random.Random(f"{case.seed}/{fact.id}")


def collect(
    facts: Iterable[Fact], outcome: Callable[[Fact], Outcome]
) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    """Make an outcome of each fact; a fact whose responses cannot be used becomes an error instead."""
    rows, errors = [], []
    for fact in facts:
        try:
            rows.append(outcome(fact))
        except ResponseError as error:
            errors.append(str(error))
    return tuple(rows), tuple(errors)
