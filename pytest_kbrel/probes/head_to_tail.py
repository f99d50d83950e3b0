"""Head-to-Tail: accuracy, hallucination and missing rate of one domain and popularity bucket.

Sun et al., "Head-to-Tail: How Knowledgeable are Large Language Models (LLM)?", arXiv 2308.10168.
"""

from __future__ import annotations

from pytest_kbrel.judges.rules import label
from pytest_kbrel.metrics.text import best_f1, best_rouge_l
from pytest_kbrel.probes.base import Answers, ProbeResult, ProbeRun, collect, digest_of, question_of
from pytest_kbrel.probes.prompts import brief
from pytest_kbrel.records import Ask, Case, Fact, GenerateRequest, HeadToTailSettings, Outcome, Table

COLUMNS = ("correct", "missing", "f1", "rouge_l")


def run(case: Case) -> ProbeRun:
    """Ask each fact's question once; columns as in :data:`COLUMNS` (section 3.3 of the paper)."""
    settings = case.settings
    assert isinstance(settings, HeadToTailSettings)
    asks = tuple(
        Ask(
            fact_id=fact.id,
            role="answer",
            request=GenerateRequest(
                prompt=brief(question_of(case, fact))
                if settings.prompt == "few-shot"
                else brief(question_of(case, fact), shots=()),
                max_new_tokens=settings.max_new_tokens,
            ),
        )
        for fact in case.facts
    )
    answers = Answers()
    answers.add(asks, (yield asks))
    rows, errors = collect(case.facts, lambda fact: _outcome(case, fact, answers))
    return ProbeResult(table=Table(columns=COLUMNS, rows=rows), errors=errors)


def _outcome(case: Case, fact: Fact, answers: Answers) -> Outcome:
    response = answers.generated(fact.id, "answer")
    question = question_of(case, fact)
    verdict = label(response.text, fact.accepted, question)
    missing = verdict == "uninformative"
    # A missing answer earns nothing, or accuracy, hallucination and missing rate would not add up to 1.
    f1 = 0.0 if missing else best_f1(response.text, fact.accepted)
    rouge = 0.0 if missing else best_rouge_l(response.text, fact.accepted)
    return Outcome(
        fact_id=fact.id,
        question=question,
        expected=fact.object or "",
        answer=response.text,
        label=verdict,
        values=(float(verdict == "correct"), float(missing), f1, rouge),
        prompt_digest=digest_of(case, fact, [response]),
        truncated=response.finish == "length",
    )
