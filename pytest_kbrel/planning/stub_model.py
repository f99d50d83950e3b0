"""Stub model for dry runs: returns canned responses that make every probe emit all its requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.probes.grading import judged_by_rules
from pytest_kbrel.probes.prompts import UNSURE
from pytest_kbrel.records import (
    Ask,
    Case,
    Fact,
    Generated,
    Outcome,
    Response,
    Scored,
    ScoreRequest,
    Step,
)

Scenario = Literal["fewest", "most", "baseline"]
"""Answers that make a probe ask least, answers that make it ask most, and the answers of a baseline."""

# No fact of any suite has this answer, and no rule judges it uninformative.
INVENTED = "Quillmere"


class StubModel:
    """Stub model for dry runs: returns canned responses that make every probe emit all its requests.

    In the scenario ``baseline`` each fact gets the answer it has in ``rows`` (by fact id), and a fact without
    one gets that of ``most``.
    """

    def __init__(self, case: Case, scenario: Scenario, rows: Mapping[str, Outcome] | None = None) -> None:
        self._case = case
        self._scenario = scenario
        self._rows = rows or {}
        self._facts = {fact.id: fact for fact in case.facts}

    def answer(self, asks: Sequence[Ask]) -> list[Response]:
        """Return one response for each ask, in order."""
        return [self._response(ask) for ask in asks]

    def _response(self, ask: Ask) -> Response:
        if isinstance(ask.request, ScoreRequest):
            return Scored(probabilities=(0.5,), token_ids=(0,), prompt_tokens=0, prompt_digest="")
        fact = self._facts[ask.fact_id]
        text = self._helper_reply(ask, fact) if ask.to else self._model_reply(ask, fact)
        step = Step(token_id=0, token=text, probability=0.5)
        return Generated(
            text=text,
            token_ids=(),
            finish="stop",
            prompt_tokens=0,
            prompt_digest="",
            steps=(step,) if ask.request.steps else (),
        )

    def _helper_reply(self, ask: Ask, fact: Fact) -> str:
        if ask.to == self._case.judge and ask.role == "judge":
            row = self._rows.get(fact.id)
            return "incorrect" if row is not None and row.label == "wrong" else "correct"
        settings = self._case.settings
        return "\n".join(f"{INVENTED} {number}" for number in range(getattr(settings, "distractors", 1)))

    def _model_reply(self, ask: Ask, fact: Fact) -> str:
        if PROBES[self._case.probe].drops_facts:
            return self._anchor_reply(fact)
        if ask.role != "answer":
            # No further question depends on which option is chosen.
            return "A"
        if self._scenario == "baseline" and fact.id in self._rows:
            return self._rows[fact.id].answer
        return UNSURE if self._scenario == "fewest" else self._assertion(fact)

    def _anchor_reply(self, fact: Fact) -> str:
        """Return an answer that keeps or drops a fact in the published variant of MONITOR."""
        stays = self._scenario != "fewest"
        if self._scenario == "baseline" and fact.id in self._rows:
            stays = any(self._rows[fact.id].values)
        return (fact.object or "") if stays else ""

    def _assertion(self, fact: Fact) -> str:
        # A judge is asked about every answer that is not equal to an accepted one.
        if self._case.judge == "rules" and fact.accepted:
            answer = fact.accepted[0]
            if judged_by_rules(self._case, fact, answer).label != "uninformative":
                return answer
        return INVENTED
