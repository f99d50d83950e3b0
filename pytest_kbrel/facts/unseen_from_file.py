"""Wrong answers for questions without an answer that were read from a file."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
from collections.abc import Mapping, Sequence

from pytest_kbrel.facts.unseen_options import DISTRACTORS, option_pools
from pytest_kbrel.records import AnswerType, Fact

_SORTS: Mapping[AnswerType, str] = {
    "number": "small numbers",
    "person": "persons",
    "time": "years",
    "location": "countries",
    "other": "companies",
}
# Such questions are about what is to come, so that the years reach ahead.
_AS_OF = datetime.date(2060, 1, 1)


def with_options(unseen: Sequence[Fact], facts: Sequence[Fact], seed: int) -> tuple[Fact, ...]:
    """Give every question negatives of its answer type, unless it has some or its relation has other facts.

    They are drawn like those of the made-up questions, by seed and fact id.
    """
    served = {fact.relation for fact in facts}
    if all(fact.negatives or fact.relation in served for fact in unseen):
        return tuple(unseen)
    pools = option_pools(facts, _AS_OF)

    def filled(fact: Fact) -> Fact:
        if fact.negatives or fact.relation in served:
            return fact
        pool = pools[_SORTS[fact.answer_type or "other"]]
        prefix = f"{seed}\0{fact.id}\0".encode()
        drawn = sorted(pool, key=lambda text: hashlib.sha256(prefix + text.encode()).digest())[:DISTRACTORS]
        return dataclasses.replace(fact, negatives=tuple(drawn))

    return tuple(filled(fact) for fact in unseen)
