"""Wrong answers of the right kind: objects that other facts of the same relation have.

All objects of a property are of one kind. A file of questions is one relation with answers of every kind, and
its wrong answers are drawn like the answer: of its kind and of similar length.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

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
    objects = _by_relation(facts, pool)
    return tuple(
        _with(fact, fact.negatives or objects[fact.relation].drawn(fact, seed), count)
        for fact in facts
    )


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
    objects = _by_relation(facts, pool)
    kinds = {
        name: _Kinds(of.facts)
        for name, of in objects.items()
        if is_mixed(relations.get(name), of.facts)
    }
    # One of them may be what the model answers.
    sets = next(n for n in range(4, questions + 5) if math.comb(n - 1, 3) >= questions)
    enough = max(at_least, min(sets, count))
    made: list[Fact] = []
    alike: list[tuple[str, float]] = []
    for fact in facts:
        mixed = kinds.get(fact.relation)
        if fact.negatives or mixed is None:
            drawn = fact.negatives or objects[fact.relation].drawn(fact, seed)
            made.append(_with(fact, drawn, count))
        else:
            kind, others = mixed.of(fact), objects[fact.relation]
            groups = mixed.nearest_first(kind, others.wrong_answers_of(fact))
            sizes = itertools.accumulate(map(len, groups))
            # The fewest of these groups that make enough; of all three no more than are asked for.
            used = next((n for n, size in enumerate(sizes, 1) if size >= enough), 3)
            chosen = others.drawn(fact, seed, groups[:used], by_length=True)
            made.append(_with(fact, chosen, count if used == 3 else most))
            texts = made[-1].negatives
            if texts and kind.sort != "unknown":
                same = sum(map(len, groups[: min(used, 2)]))
                alike.append((fact.id, min(same / len(texts), 1.0)))
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
    objects = _by_relation(facts, pool)
    counts = []
    for fact in facts:
        number = len(fact.negatives)
        if not number:
            own = objects[fact.relation]
            number = len(own.spelling) - len(own.right_answers_of(fact))
        if not number:
            raise _too_few(fact, 0, 1)
        counts.append(number)
    return min(counts, default=0)


def is_spelt(text: str) -> bool:
    """Return True if a text has a letter or digit."""
    return any(character.isalnum() for character in text)


def _with(fact: Fact, negatives: Sequence[str], count: int) -> Fact:
    return dataclasses.replace(fact, negatives=tuple(negatives[:count]))


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


def _by_relation(facts: Sequence[Fact], pool: Sequence[Fact]) -> dict[str, _Objects]:
    """Return the objects of the relations of ``facts``, but where all bring their negatives."""
    groups: dict[str, list[Fact]] = {
        fact.relation: [] for fact in facts if not fact.negatives
    }
    for fact in pool:
        if fact.object is not None and fact.relation in groups:
            groups[fact.relation].append(fact)
    return {name: _Objects(of) for name, of in groups.items()}


class _Objects:
    """The objects of one relation, case apart, with all names of each."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.facts = facts
        self.spelling: dict[str, str] = {}
        self.bearers: dict[str, set[str]] = defaultdict(set)
        self.answers: dict[str, set[str]] = defaultdict(set)
        for fact in facts:
            text, *_ = names = fact.accepted
            folded = text.casefold()
            self.answers[fact.subject.casefold()].update(map(str.casefold, names))
            if is_spelt(text):
                # Of several spellings the least one, so that the order of the pool does not matter.
                self.spelling[folded] = min(text, self.spelling.get(folded, text))
                for name in names:
                    self.bearers[name.casefold()].add(folded)

    def right_answers_of(self, fact: Fact) -> set[str]:
        """Return the objects, in small letters, that answer the fact by one of their names."""
        # What was right once is no plain wrong answer.
        names = {*map(str.casefold, (*fact.accepted, *fact.outdated))}
        names |= self.answers[fact.subject.casefold()]
        right = {folded for name in names for folded in self.bearers[name]}
        if fact.answer_range is not None:
            low, high = fact.answer_range
            for folded in self.spelling:
                digits = _FIGURES.search(folded)
                if digits and low <= float(digits[0].replace(",", "")) <= high:
                    right.add(folded)
        return right

    def wrong_answers_of(self, fact: Fact) -> set[str]:
        """Return the objects, in small letters, that answer the fact by none of their names."""
        return self.spelling.keys() - self.right_answers_of(fact)

    def drawn(
        self,
        fact: Fact,
        seed: int,
        groups: Sequence[Collection[str]] = (),
        *,
        by_length: bool = False,
    ) -> list[str]:
        """Return wrong answers in the order of their draw: all there are, or ``groups`` of them in turn."""

        start = f"{seed}\0{fact.id}\0"

        # Millions of calls in a suite with large relations.
        def rank(text: str) -> bytes:
            return hashlib.sha256((start + text).encode()).digest()

        def by_length_first(text: str) -> tuple[int, bytes]:
            return _length_class(fact.object, text), rank(text)

        key = by_length_first if by_length else rank
        return [
            text
            for group in groups or [self.wrong_answers_of(fact)]
            for text in sorted((self.spelling[name] for name in group), key=key)
        ]


class _Kinds:
    """Index of the objects of one relation by kind, case apart; an object may be of several kinds."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._cased = any(fact.object != str(fact.object).casefold() for fact in facts)
        self._names: dict[object, set[str]] = defaultdict(set)
        for fact in facts:
            kind = self.of(fact)
            for key in (kind.closest, kind.sort):
                self._names[key].add(str(fact.object).casefold())

    def of(self, fact: Fact) -> Kind:
        """Return the kind of a fact's object, or of the answer it would have."""
        return kind_of(
            fact.object, fact.question or "", fact.answer_type, cased=self._cased
        )

    def nearest_first(self, kind: Kind, wrong: set[str]) -> list[set[str]]:
        """Return wrong answers in three groups: asked for by the same word, of the same sort, and others."""
        closest = self._names[kind.closest] & wrong
        same = self._names[kind.sort] & wrong - closest
        return [closest, same, wrong - closest - same]
