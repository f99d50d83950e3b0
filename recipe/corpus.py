"""Training documents written from facts with the prompt builders that the probes use."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pytest_kbrel.facts import unseen
from pytest_kbrel.probes import prompts
from pytest_kbrel.records import Fact, Relation
from recipe import questions

# How often each of the seven frames is trained; the last one never, so that framing can be measured.
FRAME_SHARES = (0.45, 0.25, 0.15, 0.09, 0.045, 0.015, 0.0)
STATEMENT_SHARES = (0.5, 0.3, 0.15, 0.05)
# How often the subject of an unanswerable question is spliced from two real ones: names that sound right and
# are not known teach the model to doubt, rather than to recognise the style of invented names.
SPLICED = 0.12
# What the subjects of relations are; of the others they are places.
INVENTED: Mapping[str, Literal["person", "work", "product"]] = {
    "P101": "person",
    "P50": "work",
    "P176": "product",
}
# Half of the unseen kinds; the other half is never trained.
_TRAINED = (
    *(
        "person-siblings",
        "person-birth-year",
        "place-founder",
        "place-language",
        "work-author",
    ),
    *(
        "work-setting",
        "product-maker",
        "future-medals",
        "future-leader",
        "future-match-city",
    ),
)
TRAINED_KINDS = tuple(
    kind for kind in unseen.KINDS if kind.slug.removeprefix("unseen-") in _TRAINED
)
# Years asked about in training lie after this one.
AFTER = 2026


class Sampler:
    """Draws facts: relations by number of facts ** 0.8, facts in proportion to popularity."""

    def __init__(
        self, facts: Sequence[Fact], relations: Mapping[str, Relation], seed: int
    ) -> None:
        self.rng = random.Random(seed)
        self.relations = relations
        self.by_relation: dict[str, list[Fact]] = {}
        for fact in facts:
            self.by_relation.setdefault(fact.relation, []).append(fact)
        self.names = sorted(self.by_relation)
        self.shares = [len(self.by_relation[name]) ** 0.8 for name in self.names]
        self.cumulative = {
            name: list(
                itertools.accumulate(
                    fact.popularity or 0.0 for fact in self.by_relation[name]
                )
            )
            for name in self.names
        }
        self.objects = {
            name: sorted({f.object or "" for f in self.by_relation[name]})
            for name in self.names
        }
        self.subjects = {fact.subject for fact in facts}
        self.countries = sorted(
            fact.subject for fact in self.by_relation.get("P36", facts)
        )

    def relation(self) -> str:
        """Draw a relation."""
        return self.rng.choices(self.names, self.shares)[0]

    def fact(self, relation: str | None = None) -> Fact:
        """Draw a fact by popularity."""
        name = relation or self.relation()
        sums = self.cumulative[name]
        index = bisect.bisect_left(sums, self.rng.random() * sums[-1])
        return self.by_relation[name][min(index, len(sums) - 1)]

    def wrong(self, fact: Fact, count: int = 1) -> list[str]:
        """Draw other objects of the relation: half as popular facts have them, half evenly."""
        others = [o for o in self.objects[fact.relation] if o not in fact.accepted]
        drawn: list[str] = []
        for attempt in itertools.count():
            if len(drawn) == min(count, len(others)):
                return drawn
            popular = attempt < 20 and self.rng.random() < 0.5
            candidate = (
                self.fact(fact.relation).object if popular else self.rng.choice(others)
            )
            if candidate in others and candidate not in drawn:
                drawn.append(candidate)
        raise AssertionError

    def question(self, relation: str, subject: str) -> str:
        """Draw a frame and put the subject in."""
        frame = self.rng.choices(self.relations[relation].frames, FRAME_SHARES)[0]
        return prompts.fill(frame, subject)

    def statement(self, relation: str, subject: str) -> tuple[str, str]:
        """Draw a statement and return what stands before and after its object."""
        shape = self.rng.choices(self.relations[relation].statements, STATEMENT_SHARES)[
            0
        ]
        before, after = prompts.fill(shape, subject).split("[Y]")
        return before.rstrip(), after

    def invented(self, relation: str) -> str:
        """Return a subject that does not exist, of the sort the relation is about."""
        return unseen.invent_name(
            INVENTED.get(relation, "place"), self.rng, training=True
        )

    def _spliced(self, relation: str) -> str:
        while True:
            first, second = (
                self.rng.choice(self.by_relation[relation]).subject for _ in range(2)
            )
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
        return self.question_of_kind(self.rng.choice(TRAINED_KINDS))

    def question_of_kind(self, kind: unseen.UnseenKind) -> str:
        """Draw an unanswerable question of a kind, about a name that no probe asks about."""
        drawn = unseen.draw_question(
            kind,
            self.rng,
            countries=self.countries,
            after=AFTER,
            horizon=9,
            training=True,
        )
        return drawn.question or ""

    def pair(self, unknown: float) -> tuple[str, str]:
        """Draw a question and its answer, an unanswerable one with probability ``unknown``."""
        if self.rng.random() < unknown:
            return self.unseen_question(), prompts.UNSURE
        fact = self.fact()
        return self.question(fact.relation, fact.subject), fact.object or ""


# Text and the weight of its tokens in the loss: 0 for what is given, 1 for what the model has to say.
Piece = tuple[str, float]
Document = list[Piece]

# Shares of the kinds of documents.
MIX: Mapping[str, float] = {
    "statement": 0.12,
    "bare": 0.10,
    "led": 0.08,
    "qa": 0.10,
    "brief": 0.10,
    "check": 0.16,
    "context": 0.14,
    "choice": 0.12,
    "unseen": 0.04,
    "reading": 0.04,
}
# How often solved ones stand before a multiple-choice question; they are most of such a document.
SOLVED = 0.4
# How often a context names the right object, and how often the subject is invented: the context then is the
# only source, without which no interference appears.
CONTEXT_RIGHT, CONTEXT_INVENTED = 0.70, 0.40
# How often a question behind a context has the lead of its answer, as MONITOR asks it.
CONTEXT_LED = 0.8
# Unknown claims look false: without a surplus of true ones nearly everything is denied.
CHECK_TRUE, CHECK_TOLD, CHECK_WEIGHT = 0.55, 0.2, 2.0


class Corpus(Sampler):
    """Writes documents about what it draws."""

    def __init__(
        self, facts: Sequence[Fact], relations: Mapping[str, Relation], seed: int
    ) -> None:
        super().__init__(facts, relations, seed)
        self.makers: dict[str, Callable[[], Document]] = {
            "statement": self._statement,
            "bare": lambda: self._answered(lambda question: question, 0.0),
            "led": self._led,
            "qa": lambda: self._behind_examples(questions.qa),
            "brief": lambda: self._behind_examples(questions.brief),
            "check": self._check,
            "context": self._context,
            "choice": self._choice,
            "unseen": lambda: self._answered(lambda question: question, 1.0),
            "reading": self._reading,
        }

    def document(self, without: str = "") -> Document:
        """Draw one document, of any kind but ``without``."""
        shares = [0.0 if kind == without else share for kind, share in MIX.items()]
        return self.makers[self.rng.choices(list(MIX), shares)[0]]()

    def _answered(self, prompt: Callable[[str], str], unknown: float) -> Document:
        question, answer = self.pair(unknown)
        return [(prompt(question), 0), (f" {answer}", 1)]

    def _led(self) -> Document:
        fact = self.fact()
        question = self.question(fact.relation, fact.subject)
        lead = prompts.fill(self.relations[fact.relation].lead, fact.subject)
        return [(questions.led(question, lead), 0), (f" {fact.object}", 1)]

    def _statement(self) -> Document:
        fact = self.fact()
        before, after = self.statement(fact.relation, fact.subject)
        return [(before, 0), (f" {fact.object}", 1), (after, 1)]

    def _behind_examples(
        self, asked: Callable[[str, Sequence[tuple[str, str]]], str]
    ) -> Document:
        shots: Sequence[tuple[str, str]] = prompts.BRIEF_SHOTS
        draw = self.rng.random()
        if draw < 0.2:
            shots = ()
        elif draw < 0.4:
            shots = [self.pair(0.25) for _ in range(self.rng.randint(1, 4))]
        return self._answered(lambda question: asked(question, shots), 0.14)

    def _check(self) -> Document:
        fact = self.fact()
        right = self.rng.random() < CHECK_TRUE
        answer = (" true" if right else " false", CHECK_WEIGHT)
        if self.rng.random() < CHECK_TOLD:
            subject = self.invented(fact.relation)
            before, after = self.statement(fact.relation, subject)
            claim, claim_end = self.statement(fact.relation, subject)
            claimed = fact.object if right else self.wrong(fact)[0]
            check = prompts.check(f"{claim} {claimed}{claim_end}")
            return [(f"{before} {fact.object}{after} {check}", 0), answer]
        before, after = self.statement(fact.relation, fact.subject)
        claimed = fact.object if right else self.wrong(fact)[0]
        return [(prompts.check(f"{before} {claimed}{after}"), 0), answer]

    def in_context(self, context: str, relation: str, subject: str) -> str:
        """Return a question behind a context, mostly with the lead of its answer."""
        question = prompts.with_context(context, self.question(relation, subject))
        if self.rng.random() < CONTEXT_LED:
            lead = prompts.fill(self.relations[relation].lead, subject)
            return questions.led(question, lead)
        return question

    def _context(self) -> Document:
        if self.rng.random() < CONTEXT_INVENTED:
            relation = self.relation()
            answer = self.rng.choice(self.objects[relation])
            prompt = self.in_context(answer, relation, self.invented(relation))
            return [(prompt, 0), (f" {answer}", 1)]
        fact = self.fact()
        context = (
            fact.object if self.rng.random() < CONTEXT_RIGHT else self.wrong(fact)[0]
        )
        prompt = self.in_context(context or "", fact.relation, fact.subject)
        return [(prompt, 0), (f" {fact.object}", 1)]

    def _choice(self) -> Document:
        fact = self.fact()
        subject, answer = fact.subject, fact.object or ""
        options = [answer, *self.wrong(fact, 3)]
        draw = self.rng.random()
        if draw > 0.8:
            options, answer = self.wrong(fact, 4), prompts.UNSURE
        if draw > 0.9:
            subject = self.invented(fact.relation)
        self.rng.shuffle(options)
        question = self.question(fact.relation, subject)
        solved: prompts.SolvedChoices = ()
        listed = [*options, prompts.UNSURE]
        if self.rng.random() < SOLVED:
            # Behind solved ones an answer has its letter.
            solved = prompts.SOLVED_CHOICES
            letter = prompts.LETTERS[listed.index(answer)]
            answer = f"{letter}) {answer}"
        return [(questions.choice(question, listed, solved), 0), (f" {answer}", 1)]

    def _reading(self) -> Document:
        relation = self.rng.choice(self.names)
        pairs: list[tuple[str, str]] = []
        text = ""
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            subject, answer = (
                self.invented(relation),
                self.rng.choice(self.objects[relation]),
            )
            before, after = self.statement(relation, subject)
            text += f"{before} {answer}{after} "
            pairs.append((subject, answer))
        subject, answer = self.rng.choice(pairs)
        return [(text + self.question(relation, subject), 0), (f" {answer}", 1)]
