"""Synthesises training documents from facts, through the very prompt builders that the probes use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_kbrel.probes import prompts
from pytest_kbrel.records import Fact, Relation
from recipe.sampling import Sampler

# Text and the weight of its tokens in the loss: 0 for what is given, 1 for what the model has to say.
Piece = tuple[str, float]
Document = list[Piece]

# Shares of the kinds of documents.
MIX: Mapping[str, float] = {
    "statement": 0.12,
    "bare": 0.18,
    "qa": 0.10,
    "brief": 0.10,
    "check": 0.16,
    "context": 0.14,
    "choice": 0.12,
    "unseen": 0.04,
    "reading": 0.04,
}
# How often a context names the right object, and how often the subject is invented: the context then is the
# only source, without which no interference appears.
CONTEXT_RIGHT, CONTEXT_INVENTED = 0.70, 0.40
# Unknown claims look false: without a surplus of true ones nearly everything is denied.
CHECK_TRUE, CHECK_TOLD, CHECK_WEIGHT = 0.55, 0.2, 2.0


class Corpus(Sampler):
    """Writes documents about what it draws."""

    def __init__(self, facts: Sequence[Fact], relations: Mapping[str, Relation], seed: int) -> None:
        super().__init__(facts, relations, seed)
        self.makers: dict[str, Callable[[], Document]] = {
            "statement": self._statement,
            "bare": lambda: self._answered(lambda question: question, 0.0),
            "qa": lambda: self._answered(prompts.qa, 0.14),
            "brief": self._brief,
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

    def _statement(self) -> Document:
        fact = self.fact()
        before, after = self.statement(fact.relation, fact.subject)
        return [(before, 0), (f" {fact.object}", 1), (after, 1)]

    def _brief(self) -> Document:
        shots: Sequence[tuple[str, str]] = prompts.BRIEF_SHOTS
        draw = self.rng.random()
        if draw < 0.2:
            shots = ()
        elif draw < 0.4:
            shots = [self.pair(0.25) for _ in range(self.rng.randint(1, 4))]
        return self._answered(lambda question: prompts.brief(question, shots), 0.14)

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

    def _context(self) -> Document:
        if self.rng.random() < CONTEXT_INVENTED:
            relation = self.relation()
            answer = self.rng.choice(self.objects[relation])
            question = self.question(relation, self.invented(relation))
            return [(prompts.with_context(answer, question), 0), (f" {answer}", 1)]
        fact = self.fact()
        context = fact.object if self.rng.random() < CONTEXT_RIGHT else self.wrong(fact)[0]
        question = self.question(fact.relation, fact.subject)
        return [(prompts.with_context(context or "", question), 0), (f" {fact.object}", 1)]

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
        return [(prompts.choice(question, [*options, prompts.UNSURE]), 0), (f" {answer}", 1)]

    def _reading(self) -> Document:
        relation = self.rng.choice(self.names)
        told: list[tuple[str, str]] = []
        text = ""
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            subject, answer = self.invented(relation), self.rng.choice(self.objects[relation])
            before, after = self.statement(relation, subject)
            text += f"{before} {answer}{after} "
            told.append((subject, answer))
        subject, answer = self.rng.choice(told)
        return [(text + self.question(relation, subject), 0), (f" {answer}", 1)]
