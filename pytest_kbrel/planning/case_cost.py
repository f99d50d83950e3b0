"""What a case costs, roughly and from its suite alone: no tokenizer is read, and no model is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.chat import text_of
from pytest_kbrel.models.token_counting import CHARACTERS
from pytest_kbrel.planning.requests import StubModel
from pytest_kbrel.planning.sampling import with_some_shots
from pytest_kbrel.probes import open_case
from pytest_kbrel.records import Ask, Case, GenerateRequest, Shard, facts_asked


def cost_of(case: Case) -> float:
    """Return the tokens of all requests of a case: those that are read, and the most that are written."""
    return len(case.facts) * _of_one_fact(case, _tokens)


def requests_of(case: Case, shard: Shard | None = None) -> int:
    """Return about how many requests a case puts to the model under test, at most.

    Of a case that is asked in shards, they are those of the facts in the ``shard``.
    """
    asked = len(facts_asked(case, shard))
    return int(asked * _of_one_fact(case, lambda ask: not ask.to))


def _of_one_fact(case: Case, measure: Callable[[Ask], float]) -> float:
    """Return the sum over the requests about the case's middle fact, which stands for every other fact.

    The probe is driven for this fact only, with a stub in place of the model.
    """
    if not case.facts:
        return 0.0
    middle = case.facts[len(case.facts) // 2]
    try:
        return sum(
            map(measure, _asks_about(dataclasses.replace(case, facts=(middle,))))
        )
    except KbrelError:
        # The case itself says what is wrong with it.
        return 1.0


def _asks_about(case: Case) -> list[Ask]:
    case = with_some_shots(case)
    stub, probe = StubModel(case, "most"), open_case(case)
    all_asks: list[Ask] = []
    try:
        asks = next(probe)
        while True:
            all_asks += asks
            asks = probe.send(tuple(stub.answer(asks)))
    except StopIteration:
        return all_asks


def _tokens(ask: Ask) -> float:
    request = ask.request
    if isinstance(request, GenerateRequest):
        return len(text_of(request)) / CHARACTERS + request.max_new_tokens
    return (len(text_of(request)) + len(request.continuation)) / CHARACTERS + 1
