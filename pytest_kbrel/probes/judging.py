"""Whether answers are right: by rules alone, or with a model as judge where rules do not find them equal."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from pytest_kbrel.judges.rules import Judged, judge
from pytest_kbrel.probes.base import question_of
from pytest_kbrel.records import Ask, Case, Response

Judging = Generator[tuple[Ask, ...], tuple[Response, ...], dict[str, Judged]]


def judged(case: Case, answers: Mapping[str, str]) -> Judging:
    """Judge the answers, by fact id; a probe writes ``found = yield from judged(case, answers)``.

    Where ``case.judge`` names a model, it is asked about every informative answer that is not simply equal to
    an accepted one, in one round of asks with the role ``judge``.
    """
    facts = {fact.id: fact for fact in case.facts}
    yield from ()
    return {
        fact_id: judge(
            answer, facts[fact_id].accepted, question_of(case, facts[fact_id]), extra=case.uninformative
        )
        for fact_id, answer in answers.items()
    }
