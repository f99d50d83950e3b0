"""What a case costs, roughly and from its suite alone: no tokenizer is read, and no model is asked."""

from __future__ import annotations

import dataclasses

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.chat import text_of
from pytest_kbrel.models.token_counting import CHARACTERS
from pytest_kbrel.planning.requests import StubModel
from pytest_kbrel.planning.sampling import with_some_shots
from pytest_kbrel.probes import open_case
from pytest_kbrel.records import Ask, Case, GenerateRequest, Shard, facts_asked


def cost_of(case: Case) -> float:
    """Return the tokens of all requests of a case: those that are read, and the most that are written.

    The probe is driven for one fact only, with a stub in place of the model: its tokens stand for those of
    every other fact.
    """
    if not case.facts:
        return 0.0
    middle = case.facts[len(case.facts) // 2]
    try:
        tokens = sum(
            map(_tokens, _asks_about(dataclasses.replace(case, facts=(middle,))))
        )
    except KbrelError:
        # The case itself says what is wrong with it.
        tokens = 1.0
    return len(case.facts) * tokens


def requests_of(case: Case, shard: Shard | None = None) -> int:
    """Return about how many requests a case puts to the model under test, at most; see :func:`cost_of`.

    Of a case that is asked in shards, they are those of the facts in the ``shard``.
    """
    if not case.facts:
        return 0
    middle = case.facts[len(case.facts) // 2]
    try:
        each = sum(
            not ask.to
            for ask in _asks_about(dataclasses.replace(case, facts=(middle,)))
        )
    except KbrelError:
        each = 1
    return each * len(facts_asked(case, shard))


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
