"""Answers that are there and cannot be what a working model says: one for all, worse than chance, constant.

Majority answers and chance are no measurement of knowledge: ParaRel's majority baseline is perfectly
consistent (Elazar et al., "Measuring and Improving Consistency in Pretrained Language Models",
arXiv 2102.01017).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from pytest_kbrel import stats
from pytest_kbrel.gates.integrity_findings import ROUNDING, Finding, column, count, most, percent
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import UNINFORMATIVE, Case, Fact, Integrity, Outcome, Share, Table

# Of fewer facts an honest model may well say one thing, or have one probability.
FEWEST = 10
# The rule of outcomes that a model as judge left undecided.
UNPARSABLE = "unparsable"
# Drawing from fewer is no draw.
_FEWEST_OBJECTS = 2
_LONGEST_SHOWN = 60


def repeated(limits: Integrity, rows: Sequence[Outcome]) -> Finding:
    """Count the wrong ones among the occurrences of the answer that is wrong most often.

    Where it is right it is explained by the facts, and saying "unsure" again and again is honest.
    """
    said = Counter(normalise(row.answer) for row in rows if is_informative(row) and row.label == "wrong")
    answer, times = max(said.items(), key=lambda item: item[1], default=("", 0))
    return most(
        limits,
        "repeated",
        times,
        len(rows),
        f"{times} of {len(rows)} facts get the same wrong answer, {answer[:_LONGEST_SHOWN]!r}",
        "the model does not answer the question, or its prompts or chat template do not suit it; an answer "
        "that says nothing belongs into the suite's 'uninformative' file",
        fewest=FEWEST,
    )


def below_random(case: Case, rows: Sequence[Outcome]) -> Iterator[Finding]:
    """Compare with a random other object of each fact's relation, over informative answers (Wilson)."""
    chance = _chances(case.facts)
    compared = [row for row in rows if is_informative(row) and row.fact_id in chance]
    n, right = len(compared), sum(row.label == "correct" for row in compared)
    control = math.fsum(chance[row.fact_id] for row in compared) / n if n else 0.0
    if control:
        high = stats.wilson(right, n)[1]
        below = n >= FEWEST and high < control
        yield Finding(
            share=Share(
                name="below_random",
                value=right,
                total=n,
                limit=control,
                broken=below and case.integrity.below_random == "invalid",
            ),
            says=f"{right} of {n} informative answers are right (at most {percent(high)}, Wilson's "
            f"interval); allowed: at least the {percent(control)} that random objects of the relation are: "
            "the accepted answers, the judge or the prompts do not suit the model",
        )


def constant(limits: Integrity, table: Table) -> Iterator[Finding]:
    """Look for anchors (MONITOR, eq. 1) that all have the same probability, of the facts that are kept."""
    anchors = [
        f"{anchor:.9g}"
        for anchor, kept in zip(column(table, "anchor"), column(table, "kept"), strict=True)
        if kept and math.isfinite(anchor)
    ]
    if anchors:
        value, times = Counter(anchors).most_common(1)[0]
        n = len(anchors)
        yield Finding(
            share=Share(
                name="constant",
                value=times,
                total=n,
                limit=1.0,
                broken=times == n >= FEWEST and limits.constant == "invalid",
            ),
            says=f"the probabilities of all {n} anchors are equal ({value}); allowed: at least two that "
            "differ: the model's scores do not depend on the question",
        )


def anchor_prob(limits: Integrity, table: Table) -> Iterator[Finding]:
    """Hold the mean probability of MONITOR's primary anchors (eq. 3 divides by it) against its least.

    MONITOR of a model that gives every right answer next to nothing is a quotient of two figures near 0: it
    says nothing about the model, and may look better than that of one which knows the facts. A fact that the
    published variant drops, because its right answer was not written, counts as one without probability;
    where it drops all, no limit lets it pass.
    """
    anchors = column(table, "anchor")
    if not anchors or not all(map(math.isfinite, anchors)):
        return
    kept, n = sum(map(bool, column(table, "kept"))), len(anchors)
    total = math.fsum(anchors)
    dropped = f", {n - kept} of which were dropped" if kept < n else ""
    found = (
        f"the right answer gets no probability behind the prompt that states it (mean {total / n:.2g} over "
        f"{count(n, 'fact')}{dropped}); allowed: a mean of at least {limits.anchor_prob:g}"
        if kept
        else f"the right answer is written behind the prompt that states it for none of {count(n, 'fact')}, "
        "so that none is left to measure; allowed: at least one"
    )
    yield Finding(
        share=Share(
            name="anchor_prob",
            value=total,
            total=n,
            limit=limits.anchor_prob,
            broken=not kept or total < limits.anchor_prob * n - ROUNDING,
        ),
        says=f"{found}: the chat template or the tokenizer does not suit the model, or it knows nothing of "
        "this",
    )


def first_token(limits: Integrity, table: Table) -> Iterator[Finding]:
    """Count, of the facts that the model answers right, those whose scored first token it wrote first.

    MONITOR scores the accepted answer right behind the prompt. A model that writes its answers otherwise (in
    a sentence, behind a line break, with another blank) is not measured by it.
    """
    first, right = column(table, "first_token"), column(table, "cell:none:0")
    # Runs of older versions have no such column.
    held = [bool(written) for written, is_right in zip(first, right, strict=False) if is_right]
    if held:
        n, written = len(held), sum(held)
        yield Finding(
            share=Share(
                name="first_token",
                value=written,
                total=n,
                limit=limits.first_token,
                broken=n >= FEWEST and written < limits.first_token * n - ROUNDING,
            ),
            says=f"{written} of {n} right answers begin with the token that is scored; allowed: at least "
            f"{percent(limits.first_token)}: the model writes its answers otherwise (in sentences, or behind "
            "a line break), and what is scored is not what it writes: a chat template, or a prompt that asks "
            "for the answer alone, may help",
        )


def is_informative(row: Outcome) -> bool:
    """Tell whether an answer is right or wrong, and not one that says nothing or was not judged."""
    # What a judge did not decide is neither right nor wrong; MONITOR's published variant has no third label.
    return row.label != "uninformative" and row.rule not in (*UNINFORMATIVE, UNPARSABLE)


def _chances(facts: Sequence[Fact]) -> dict[str, float]:
    """Return, by fact id, the chance (0..1) that a random object of the same relation answers the fact.

    Drawn is one of the different objects of the relation's *other* facts among ``facts``: leaving the fact's
    own out keeps a handful of facts with an object each from looking like a guess among few. Where these have
    fewer than two objects, the chance is 0. Facts without an answer (unseen knowledge) have none.
    """
    objects: dict[str, Counter[str]] = defaultdict(Counter)
    for fact in facts:
        if fact.object is not None and (name := normalise(fact.object)):
            objects[fact.relation][name] += 1
    return {fact.id: _chance(fact, objects[fact.relation]) for fact in facts if fact.object is not None}


def _chance(fact: Fact, objects: Counter[str]) -> float:
    assert fact.object is not None
    own = normalise(fact.object)
    different = len(objects) - (objects[own] == 1)
    if different < _FEWEST_OBJECTS:
        return 0.0
    accepted = {normalise(name) for name in fact.accepted}
    return sum(objects[name] - (name == own) > 0 for name in accepted) / different
