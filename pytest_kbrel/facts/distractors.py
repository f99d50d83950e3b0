"""Wrong answers of the right kind: objects that other facts of the same relation have."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import Fact


def with_negatives(
    facts: Sequence[Fact], pool: Sequence[Fact], count: int, seed: int, *, at_least: int = 1
) -> tuple[Fact, ...]:
    """Return the facts with up to ``count`` negatives each, drawn from the objects in ``pool``.

    A negative is an object of the same relation that is no accepted answer of the fact, nor of any fact of
    the pool with the same subject and relation, case apart. Facts that carry negatives keep theirs, cut at
    ``count``. A draw depends on seed, fact id and candidate only: a larger count extends a smaller one's
    list, and a new fact in the pool disturbs few lists. Raises ``SuiteError`` when a fact has fewer than
    ``at_least``.
    """
    index = _index(facts, pool)
    return tuple(_filled(fact, index, count, seed, at_least) for fact in facts)


def fewest_negatives(facts: Sequence[Fact], pool: Sequence[Fact]) -> int:
    """Return how many negatives every one of the facts can have.

    MONITOR divides by the number of interfering contexts, so all facts of a slice must have equally many.
    Raises ``SuiteError`` naming the first fact that has none.
    """
    index = _index(facts, pool)
    fewest = None
    for fact in facts:
        found = len(fact.negatives) or index.count(fact)
        if not found:
            raise _too_few(fact, 0, 1)
        fewest = found if fewest is None else min(fewest, found)
    return fewest or 0


def _filled(fact: Fact, index: _Index, count: int, seed: int, at_least: int) -> Fact:
    if at_least <= len(fact.negatives) <= count and fact.negatives:
        return fact
    candidates = list(fact.negatives or index.candidates(fact))
    if len(candidates) < at_least:
        raise _too_few(fact, len(candidates), at_least)
    if not fact.negatives:
        prefix = f"{seed}\0{fact.id}\0".encode()
        candidates.sort(key=lambda text: hashlib.sha256(prefix + text.encode()).digest())
    return dataclasses.replace(fact, negatives=tuple(candidates[:count]))


def _too_few(fact: Fact, found: int, at_least: int) -> SuiteError:
    return SuiteError(
        f"fact {fact.id!r} needs at least {at_least} wrong answers, found {found} among the objects of "
        f"relation {fact.relation!r}; allowed: more facts of this relation, or 'negatives' in the fact"
    )


def _index(facts: Sequence[Fact], pool: Sequence[Fact]) -> _Index:
    # Where all facts bring their negatives, nothing is looked up: a dataset of that kind has thousands.
    return _Index(() if all(fact.negatives for fact in facts) else pool)


class _Index:
    """The objects of a pool by relation, with all names each goes by."""

    def __init__(self, pool: Sequence[Fact]) -> None:
        self.spelling: dict[str, dict[str, str]] = {}
        self.bearers: dict[tuple[str, str], set[str]] = {}
        self.answers: dict[tuple[str, str], set[str]] = {}
        for fact in pool:
            if fact.object is None:
                continue
            folded = fact.object.casefold()
            spelling = self.spelling.setdefault(fact.relation, {})
            # Of several spellings the least one, so that the order of the pool does not matter.
            spelling[folded] = min(fact.object, spelling.get(folded, fact.object))
            answers = self.answers.setdefault((fact.relation, fact.subject.casefold()), set())
            for name in fact.accepted:
                answers.add(name.casefold())
                self.bearers.setdefault((fact.relation, name.casefold()), set()).add(folded)

    def right(self, fact: Fact) -> set[str]:
        """The objects that answer the fact by one of their names."""
        names = {answer.casefold() for answer in fact.accepted}
        names |= self.answers.get((fact.relation, fact.subject.casefold()), set())
        return {folded for name in names for folded in self.bearers.get((fact.relation, name), ())}

    def count(self, fact: Fact) -> int:
        return len(self.spelling.get(fact.relation, {})) - len(self.right(fact))

    def candidates(self, fact: Fact) -> list[str]:
        right = self.right(fact)
        return [text for folded, text in self.spelling.get(fact.relation, {}).items() if folded not in right]
