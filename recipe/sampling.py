"""Draws facts, wrong answers, wordings and invented things for the training corpus."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Mapping, Sequence

from pytest_kbrel.facts import unseen
from pytest_kbrel.probes import prompts
from pytest_kbrel.records import Fact, Relation

# How often each of the seven frames is trained; the last one never, so that framing can be measured.
FRAME_SHARES = (0.45, 0.25, 0.15, 0.09, 0.045, 0.015, 0.0)
STATEMENT_SHARES = (0.5, 0.3, 0.15, 0.05)
# How often the subject of an unanswerable question is spliced from two real ones: names that sound right and
# are not known make the model doubt, rather than spot the style of an inventor.
SPLICED = 0.12
# Half of the unseen kinds; the other half is never trained.
TRAINED_KINDS: tuple[unseen.UnseenKind, ...] = tuple(
    kind
    for kind in unseen.KINDS
    if kind.slug.removeprefix("unseen-")
    in {
        "person-siblings",
        "person-birth-year",
        "place-founder",
        "place-language",
        "work-author",
        "work-setting",
        "product-maker",
        "future-medals",
        "future-leader",
        "future-match-city",
    }
)
# Years asked about in training lie after this one.
AFTER = 2026


class Sampler:
    """Draws facts: relations by number of facts ** 0.8, facts in proportion to popularity."""

    def __init__(self, facts: Sequence[Fact], relations: Mapping[str, Relation], seed: int) -> None:
        self.rng = random.Random(seed)
        self.relations = relations
        self.by_relation: dict[str, list[Fact]] = {}
        for fact in facts:
            self.by_relation.setdefault(fact.relation, []).append(fact)
        self.names = sorted(self.by_relation)
        self.shares = [len(self.by_relation[name]) ** 0.8 for name in self.names]
        self.cumulative = {
            name: list(itertools.accumulate(fact.popularity or 0.0 for fact in self.by_relation[name]))
            for name in self.names
        }
        self.objects = {name: sorted({f.object or "" for f in self.by_relation[name]}) for name in self.names}
        self.subjects = {fact.subject for fact in facts}
        self.countries = sorted(fact.subject for fact in self.by_relation.get("P36", facts))

    def relation(self) -> str:
        """Draw a relation."""
        return self.rng.choices(self.names, self.shares)[0]

    def fact(self, relation: str | None = None) -> Fact:
        """Draw a fact by popularity."""
        name = relation or self.relation()
        sums = self.cumulative[name]
        place = bisect.bisect_left(sums, self.rng.random() * sums[-1])
        return self.by_relation[name][min(place, len(sums) - 1)]

    def wrong(self, fact: Fact, count: int = 1) -> list[str]:
        """Draw other objects of the relation: half as popular facts have them, half evenly."""
        others = [o for o in self.objects[fact.relation] if o not in fact.accepted]
        found: list[str] = []
        for attempt in itertools.count():
            if len(found) == min(count, len(others)):
                return found
            popular = attempt < 20 and self.rng.random() < 0.5
            candidate = self.fact(fact.relation).object if popular else self.rng.choice(others)
            if candidate in others and candidate not in found:
                found.append(candidate)
        raise AssertionError

    def question(self, relation: str, subject: str) -> str:
        """Draw a frame and put the subject in."""
        frame = self.rng.choices(self.relations[relation].frames, FRAME_SHARES)[0]
        return prompts.fill(frame, subject)

    def statement(self, relation: str, subject: str) -> tuple[str, str]:
        """Draw a statement and return what stands before and after its object."""
        shape = self.rng.choices(self.relations[relation].statements, STATEMENT_SHARES)[0]
        before, after = prompts.fill(shape, subject).split("[Y]")
        return before.rstrip(), after

    def invented(self, relation: str) -> str:
        """Return a subject that does not exist, of the sort the relation is about."""
        if relation == "P101":
            return unseen.invent("person", self.rng, training=True)
        if relation == "P50":
            return unseen.invent("work", self.rng, training=True)
        if relation == "P176":
            return unseen.invent("product", self.rng, training=True)
        return unseen.invent("place", self.rng, training=True)

    def _spliced(self, relation: str) -> str:
        while True:
            first, second = (self.rng.choice(self.by_relation[relation]).subject for _ in range(2))
            name = first[: (len(first) + 1) // 2] + second[len(second) // 2 :]
            if name not in self.subjects:
                return name

    def unseen_question(self) -> str:
        """Draw an unanswerable question: a relation's about an invented subject, or one of a trained kind."""
        if self.rng.random() < 0.5:
            relation = self.rng.choice(self.names)
            spliced = self.rng.random() < SPLICED
            subject = self._spliced(relation) if spliced else self.invented(relation)
            return self.question(relation, subject)
        kind = self.rng.choice(TRAINED_KINDS)
        return unseen.ask(kind, self.rng, countries=self.countries, after=AFTER, horizon=9, training=True)[1]

    def pair(self, unknown: float) -> tuple[str, str]:
        """Draw a question and its answer, an unanswerable one with probability ``unknown``."""
        if self.rng.random() < unknown:
            return self.unseen_question(), prompts.UNSURE
        fact = self.fact()
        return self.question(fact.relation, fact.subject), fact.object or ""
