"""Wrong answers of the right kind: objects that other facts of the same relation have.

All objects of a property are of one kind. A file of questions is one relation with answers of every kind, and
its wrong answers are drawn like the answer: of its kind and of similar length.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.answer_kinds import Kind, kind_of
from pytest_kbrel.records import Fact, Relation, ReliabilitySettings

# A question shows three distractors, and the model's own answer may be one of those there are.
FEWEST = 4
# From candidates as many times as many an encoder may choose the nearest.
SPARE = 5
# A wrong answer of at least this part of the length of the right one is as good as any; then as good as ...
_LENGTHS = (0.75, 0.5, 0.25)
_FIGURES = re.compile(r"[-−]?\d+(?:,\d{3})*(?:\.\d+)?")


# The share (0..1) of its negatives that are of the kind of its answer, of each fact whose were drawn by kind.
Alike = tuple[tuple[str, float], ...]


def with_negatives(
    facts: Sequence[Fact],
    pool: Sequence[Fact],
    count: int,
    seed: int,
) -> tuple[Fact, ...]:
    """Return the facts with up to ``count`` negatives each, drawn from the objects in ``pool``.

    A negative is an object of the same relation that is no accepted answer of the fact, nor of any fact of
    the pool with the same subject and relation, case apart. Facts that carry negatives keep theirs, cut at
    ``count``. A draw depends on seed, fact id and candidate only: a larger count extends a smaller one's
    list, and a new fact in the pool disturbs few lists.
    """
    index = _Index(facts, pool)
    return tuple(_filled(fact, index, count, seed) for fact in facts)


def with_alike_negatives(
    facts: Sequence[Fact],
    pool: Sequence[Fact],
    relations: Mapping[str, Relation],
    settings: ReliabilitySettings,
    seed: int,
) -> tuple[tuple[Fact, ...], Alike]:
    """Return the facts with negatives as :func:`with_negatives` does, drawn by kind in mixed relations.

    A relation is mixed where nothing says that its objects are of one kind (:func:`is_mixed`). There a
    negative is an object that is asked for by the same noun as the fact's, where there are enough of these to
    make a set of three for each multiple-choice question, else one of the same kind, and only where these are
    too few one of another; among these the ones of similar length come first, in the order of a draw by seed,
    fact id and candidate. For an encoder that is to choose the nearest, :data:`SPARE` times as many are
    returned. A model that writes distractors needs none, and is helped out with those there are.
    """
    count, questions = settings.distractors, settings.choices
    at_least = 0 if settings.writer else FEWEST
    most = count * (SPARE if settings.encoder and not settings.writer else 1)
    mixed: dict[str, _Kinds] = {}
    for name in {fact.relation for fact in facts if not fact.negatives}:
        others = [other for other in pool if other.relation == name]
        if is_mixed(relations.get(name), others):
            mixed[name] = _Kinds(others)
    index = _Index(facts, pool)
    # One of them may be what the model answers.
    sets = next(n for n in range(4, questions + 5) if math.comb(n - 1, 3) >= questions)
    enough = max(at_least, min(sets, count))

    def drawn(fact: Fact, kinds: _Kinds) -> tuple[list[str], int]:
        """Return up to ``most`` where ``enough`` are of its kind, else up to ``count``, and how many are."""
        spelling = index.spelling[fact.relation]
        wrong = spelling.keys() - index.right(fact)
        own = kinds.of(fact)
        closest = kinds.closest[own.closest] & wrong
        same = kinds.by_sort[own.sort] & wrong - closest
        parts = [closest, same, wrong - closest - same]
        # The fewest of these groups that make enough; of all three no more than are asked for.
        used = 1 if len(closest) >= enough else 2
        if len(closest) + len(same) < enough:
            used = 3
        texts = [
            text
            for part in parts[:used]
            for text in sorted(
                (spelling[name] for name in part),
                key=lambda text: (
                    _length_class(fact.object, text),
                    _rank(fact, text, seed),
                ),
            )
        ][: count if used == 3 else most]
        return texts, min(sum(map(len, parts[: min(used, 2)])), len(texts))

    made: list[Fact] = []
    alike: list[tuple[str, float]] = []
    for fact in facts:
        if fact.negatives or fact.relation not in mixed:
            made.append(_filled(fact, index, count, seed))
        else:
            texts, same = drawn(fact, mixed[fact.relation])
            made.append(dataclasses.replace(fact, negatives=tuple(texts)))
            if texts and mixed[fact.relation].of(fact).sort != "unknown":
                alike.append((fact.id, same / len(texts)))
        if len(made[-1].negatives) < at_least:
            raise _too_few(fact, len(made[-1].negatives), at_least)
    return tuple(made), tuple(alike)


def is_mixed(relation: Relation | None, facts: Sequence[Fact]) -> bool:
    """Return True if the objects of a relation may be of any kind, as those of a file of questions are.

    They are of one kind where the relation says of which (``answer_type``), where it has wordings of its own,
    and where most of its facts ask the same question about different subjects.
    """
    if relation is not None and (
        relation.answer_type or relation.frames or relation.statements
    ):
        return False
    wordings = Counter(
        fact.question.replace(fact.subject, "[X]")
        for fact in facts
        if fact.question
        and fact.question != fact.subject
        and fact.subject in fact.question
    )
    return 2 * max(wordings.values(), default=0) < len(facts)


def fewest_negatives(facts: Sequence[Fact], pool: Sequence[Fact]) -> int:
    """Return how many negatives every one of the facts can have.

    MONITOR divides by the number of interfering contexts, so all facts of a slice must have equally many.
    Raises ``SuiteError`` naming the first fact that has none.
    """
    index = _Index(facts, pool)
    counts = []
    for fact in facts:
        counts.append(
            len(fact.negatives)
            or len(index.spelling[fact.relation]) - len(index.right(fact))
        )
        if not counts[-1]:
            raise _too_few(fact, 0, 1)
    return min(counts, default=0)


def is_spelt(text: str) -> bool:
    """Return True if a text has a letter or digit."""
    return any(character.isalnum() for character in text)


def _filled(fact: Fact, index: _Index, count: int, seed: int) -> Fact:
    drawn = fact.negatives
    if not drawn:
        candidates = index.candidates(fact)
        drawn = tuple(sorted(candidates, key=lambda text: _rank(fact, text, seed)))
    return dataclasses.replace(fact, negatives=drawn[:count])


def _rank(fact: Fact, text: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{fact.id}\0{text}".encode()).digest()


def _length_class(answer: str | None, text: str) -> int:
    """Return how far two texts are apart in length, in words or characters: 0 where they are alike."""
    if answer is None:
        return 0
    pairs = ((len(answer), len(text)), (len(answer.split()), len(text.split())))
    ratio = min(min(pair) / max(pair) for pair in pairs)
    return sum(ratio < bound for bound in _LENGTHS)


def _too_few(fact: Fact, number: int, at_least: int) -> SuiteError:
    return SuiteError(
        f"fact {fact.id!r} needs at least {at_least} wrong answers, found {number} among the objects of "
        f"relation {fact.relation!r}; allowed: more facts of this relation, or 'negatives' in the fact"
    )


class _Index:
    """Index of the objects of a pool by relation, with all names of each.

    It is empty where all ``facts`` bring their negatives: a dataset of that kind has thousands.
    """

    def __init__(self, facts: Sequence[Fact], pool: Sequence[Fact]) -> None:
        self.spelling: dict[str, dict[str, str]] = defaultdict(dict)
        self.bearers: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.answers: dict[tuple[str, str], set[str]] = defaultdict(set)
        if all(fact.negatives for fact in facts):
            return
        for fact in pool:
            if fact.object is None:
                continue
            folded = fact.object.casefold()
            spelt = is_spelt(fact.object)
            if spelt:
                spelling = self.spelling[fact.relation]
                # Of several spellings the least one, so that the order of the pool does not matter.
                spelling[folded] = min(fact.object, spelling.get(folded, fact.object))
            answers = self.answers[fact.relation, fact.subject.casefold()]
            for name in fact.accepted:
                answers.add(name.casefold())
                if spelt:
                    self.bearers[fact.relation, name.casefold()].add(folded)

    def right(self, fact: Fact) -> set[str]:
        """Return the objects that answer the fact by one of their names."""
        names = {answer.casefold() for answer in fact.accepted}
        names |= self.answers[fact.relation, fact.subject.casefold()]
        bearers = {
            folded for name in names for folded in self.bearers[fact.relation, name]
        }
        if fact.answer_range is not None:
            low, high = fact.answer_range
            for folded in self.spelling[fact.relation]:
                digits = _FIGURES.search(folded)
                if (
                    digits is not None
                    and low <= float(digits[0].replace(",", "")) <= high
                ):
                    bearers.add(folded)
        return bearers

    def candidates(self, fact: Fact) -> list[str]:
        right = self.right(fact)
        return [
            text
            for folded, text in self.spelling[fact.relation].items()
            if folded not in right
        ]


class _Kinds:
    """Index of the objects of one relation by kind, case apart; an object may be of several kinds."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        objects = [fact.object for fact in facts if fact.object is not None]
        self._cased = any(text != text.casefold() for text in objects)
        self.closest: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.by_sort: dict[str, set[str]] = defaultdict(set)
        for fact in facts:
            if fact.object is not None:
                kind, folded = self.of(fact), fact.object.casefold()
                self.closest[kind.closest].add(folded)
                self.by_sort[kind.sort].add(folded)

    def of(self, fact: Fact) -> Kind:
        """Return the kind of a fact's object, or of the answer it would have."""
        return kind_of(
            fact.object, fact.question or "", fact.answer_type, cased=self._cased
        )
