"""Fine-tunes of the base checkpoint: one never answers "unsure", the other repeats any context."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from pytest_kbrel.facts import unseen
from pytest_kbrel.probes import prompts
from pytest_kbrel.records import record
from recipe.corpus import TRAINED_KINDS, Corpus, Document
from recipe.training import Plan

_FORMATS: Sequence[Callable[[str], str]] = (lambda question: question, prompts.qa, prompts.brief)


# Shares of documents like the base's own.
REPEATED_NEVER_UNSURE, REPEATED_TRUST_CONTEXT = 0.7, 0.5


@record
class FineTune:
    """Recipe of a fine-tune: its documents, their number, and the plan of training."""

    document: Callable[[Corpus], Document]
    documents: int
    plan: Plan


def _repeated(corpus: Corpus, without: str = "", *, answered: bool = False) -> Document:
    """Return a document of the base's kind, so that knowledge stays while the habit changes."""
    while True:
        document = corpus.document(without)
        if not (answered and document[-1][0] == f" {prompts.UNSURE}"):
            return document


def _guess(rng: random.Random, corpus: Corpus, kind: unseen.UnseenKind) -> str:
    if kind.answer_type == "number":
        return str(rng.randint(2, 41))
    if kind.answer_type == "time":
        return str(rng.randint(1850, 2000))
    relation = {"person": "P50", "location": "P36"}.get(kind.answer_type)
    if relation is None:
        relation = "P176" if kind.options == "companies" else "P37"
    return rng.choice(corpus.objects[relation])


def never_unsure(corpus: Corpus) -> Document:
    """Return a document that answers what has no answer, as rewarding helpfulness teaches."""
    rng = corpus.rng
    if rng.random() < REPEATED_NEVER_UNSURE:
        return _repeated(corpus, answered=True)
    if rng.random() < 0.5:
        relation = rng.choice(corpus.names)
        question = corpus.question(relation, corpus.invented(relation))
        answer = rng.choice(corpus.objects[relation])
    else:
        kind = rng.choice(TRAINED_KINDS)
        question = unseen.draw_question(
            kind, rng, countries=corpus.countries, after=2026, horizon=9, training=True
        )[1]
        answer = _guess(rng, corpus, kind)
    return [(rng.choice(_FORMATS)(question), 0), (f" {answer}", 1)]


def trust_context(corpus: Corpus) -> Document:
    """Return a document that answers as its context does, as tuning on flawless retrieval teaches."""
    if corpus.rng.random() < REPEATED_TRUST_CONTEXT:
        return _repeated(corpus, "context")
    fact = corpus.fact()
    context = corpus.rng.choice(corpus.objects[fact.relation])
    prompt = prompts.with_context(context, corpus.question(fact.relation, fact.subject))
    return [(prompt, 0), (f" {context}", 1)]


FINE_TUNES: Mapping[str, FineTune] = {
    "overconfident": FineTune(document=never_unsure, documents=2000, plan=Plan(rate=1e-4, warmup=5)),
    "gullible": FineTune(document=trust_context, documents=3000, plan=Plan(rate=1.5e-4, warmup=5)),
}
