"""What a case costs, roughly and from its suite alone: no tokenizer is read, and no model is asked."""

from __future__ import annotations

import dataclasses

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.chat import text_of
from pytest_kbrel.models.token_counting import CHARACTERS
from pytest_kbrel.planning.requests import Call, DryRun, Parts
from pytest_kbrel.planning.sampling import with_some_shots
from pytest_kbrel.records import (
    Case,
    GenerateRequest,
    Request,
    Shard,
    facts_asked,
)


def cost_of(case: Case) -> float:
    """Return the tokens of all requests of a case: those that are read, and the most that are written."""
    tokens = (_tokens(one) for call in _calls(case) for one in call.requests)
    return len(case.facts) * sum(tokens)


def requests_of(case: Case, shard: Shard | None) -> int:
    """Return about how many requests a case puts to the model under test, at most.

    Of a case that is asked in shards, they are those of the facts in the ``shard``.
    """
    of_one_fact = sum(call.received for call in _calls(case) if not call.to)
    return len(facts_asked(case, shard)) * of_one_fact


def _calls(case: Case) -> list[Call]:
    """Return the calls about the case's middle fact, which stands for every other fact."""
    try:
        return list(DryRun([case], "most", _middle).calls())
    except KbrelError:
        # The case itself says what is wrong with it.
        return []


def _middle(case: Case) -> Parts:
    facts = case.facts[len(case.facts) // 2 :][:1]
    if facts:
        yield with_some_shots(dataclasses.replace(case, facts=facts)), 1.0


def _tokens(request: Request) -> float:
    if isinstance(request, GenerateRequest):
        return len(text_of(request)) / CHARACTERS + request.max_new_tokens
    return (len(text_of(request)) + len(request.continuation)) / CHARACTERS + 1
