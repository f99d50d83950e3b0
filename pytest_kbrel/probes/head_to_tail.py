"""Head-to-Tail: accuracy, hallucination and missing rate of one domain and popularity bucket.

Sun et al., "Head-to-Tail: How Knowledgeable are Large Language Models (LLM)?", arXiv 2308.10168.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.judges.rules import Judged
from pytest_kbrel.judges.words import strip_wrapping
from pytest_kbrel.metrics.calibration import ANSWERED, PROBABILITIES
from pytest_kbrel.metrics.text import best_f1, best_rouge_l, exact_match
from pytest_kbrel.probes.base import (
    UNPARSABLE,
    Answers,
    ProbeResult,
    ProbeRun,
    collect,
    digest_of,
    is_variant_of,
    judged,
    judged_by_rules,
    outcome_of,
    probability_values,
    question_of,
    question_request,
    with_top_tokens,
)
from pytest_kbrel.probes.prompts import (
    UNSURE,
    Examples,
    shots_in_language,
    translated,
)
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    HeadToTailSettings,
    Outcome,
    Table,
)

COLUMNS = (
    "correct",
    "missing",
    "f1",
    "rouge_l",
    "em",
    "rules",
    "unparsable",
    ANSWERED,
    *PROBABILITIES,
)
# Also where facts of the suite have former objects.
OUTDATED = "outdated"


def run(case: Case) -> ProbeRun:
    """Ask each fact's question once and have the answers judged; columns as in :data:`COLUMNS` (section 2.2).

    With in-domain examples a fact for which the case says that it has none is shown those of ``few-shot``;
    ``SuiteError`` where the case says nothing about a fact.
    """
    settings = case.settings
    assert isinstance(settings, HeadToTailSettings)
    shots = dict(case.shots)
    brief, _ = shots_in_language(settings.instructions)

    def examples(fact: Fact) -> Examples:
        if settings.prompt == "few-shot":
            return brief
        if settings.prompt != "in-domain":
            return ()
        if fact.id not in shots:
            raise SuiteError(
                f"{case.id}: prompt 'in-domain' needs an example for each fact, found none for {fact.id!r}; "
                "allowed: shots in the case, or another prompt"
            )
        # The unanswerable example, and one of the question's own relation (section 3.5).
        unsure = translated(UNSURE, settings.instructions)
        own = [(shot.question, shot.answer or unsure) for shot in shots[fact.id][:1]]
        return (brief[1], *own) if own else brief

    def ask(fact: Fact) -> Ask:
        question = question_of(case, fact)
        request = question_request(settings, question, examples(fact))
        answer = with_top_tokens(case, request)
        return Ask(fact_id=fact.id, role="answer", request=answer)

    asks = tuple(map(ask, case.facts))
    answers = Answers()
    answers.add(asks, (yield asks))
    texts = {
        fact.id: answers.generated(fact.id, "answer").text
        for fact in case.facts
        if not answers.failed(fact.id, "answer")
    }
    verdicts = yield from judged(case, texts)
    rows, errors = collect(
        case.facts, lambda fact: _outcome(case, fact, answers, verdicts)
    )
    return ProbeResult(table=Table(columns=_columns(case), rows=rows), errors=errors)


def _columns(case: Case) -> tuple[str, ...]:
    return (*COLUMNS, OUTDATED) if case.dated else COLUMNS


def _outcome(
    case: Case, fact: Fact, answers: Answers, verdicts: Mapping[str, Judged]
) -> Outcome:
    response = answers.generated(fact.id, "answer")
    text, verdict = response.text, verdicts[fact.id]
    unparsable = verdict.rule == UNPARSABLE
    missing = verdict.label == "uninformative" and not unparsable
    # What is a gold in another writing has the score of the variant that it is.
    plain = strip_wrapping(text)
    golds = (*fact.accepted, *([plain] if is_variant_of(case, fact, plain) else []))
    scores = {
        "correct": float(verdict.label == "correct" and not unparsable),
        "missing": float(missing),
        "f1": best_f1(plain, golds),
        "rouge_l": best_rouge_l(plain, golds),
        "em": float(exact_match(plain, fact.accepted)),
        "rules": float(judged_by_rules(case, fact, text).label == "correct"),
        "unparsable": float(unparsable),
        OUTDATED: float(verdict.label == OUTDATED),
    }
    if neither := missing or verdict.label == OUTDATED:
        # Such an answer earns nothing, or the rates would not add up to 1.
        scores = {
            name: value if name in ("missing", OUTDATED) else 0.0
            for name, value in scores.items()
        }
    right, answered = bool(scores["correct"]), not (neither or unparsable)
    scores |= probability_values(response, right=right, answered=answered)
    values = [scores[name] for name in _columns(case)]
    digest = digest_of(case, fact, [response])
    return outcome_of(case, fact, response, verdict, values, digest)
