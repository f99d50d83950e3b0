"""Cases small enough to work out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pytest_kbrel.records import (
    Case,
    Exchange,
    Fact,
    Failed,
    Generated,
    GenerateRequest,
    HeadToTailSettings,
    MonitorSettings,
    Relation,
    ReliabilitySettings,
    Request,
    Response,
    Scored,
    ScoreRequest,
)

CAPITAL = Relation(
    id="P36",
    label="capital",
    domain="geography",
    frames=(
        "What is the capital of [X]?",
        "Which city governs [X]?",
        "Where does [X] have its seat?",
    ),
)
FRANCE = Fact(
    id="P36-FR",
    relation="P36",
    subject="France",
    object="Paris",
    aliases=("City of Paris",),
    negatives=("Rome", "Oslo"),
)
NORWAY = Fact(
    id="P36-NO",
    relation="P36",
    subject="Norway",
    object="Oslo",
    negatives=("Rome", "Paris", "Madrid"),
)


def make_case(
    settings: MonitorSettings | HeadToTailSettings | ReliabilitySettings, *facts: Fact
) -> Case:
    probe = {
        MonitorSettings: "monitor",
        HeadToTailSettings: "head_to_tail",
        ReliabilitySettings: "reliability",
    }[type(settings)]
    return Case(
        id=f"{probe}[P36]",
        suite="s.kb.yaml",
        probe=probe,  # type: ignore[arg-type]
        slice="P36",
        facts=facts,
        relations=(CAPITAL,),
        settings=settings,
        gates=(),
    )


class Oracle:
    """Answers by two functions and remembers what it was asked, round by round."""

    def __init__(
        self,
        say: Callable[[GenerateRequest], str | Generated | Failed] = lambda request: "",
        believe: Callable[[ScoreRequest], Sequence[float] | Failed] = lambda request: (
            0.5,
        ),
    ) -> None:
        self.say, self.believe = say, believe
        self.rounds: list[list[Request]] = []
        self.kept: list[Exchange] = []

    def __call__(self, requests: Sequence[Request], to: str = "") -> list[Response]:
        self.rounds.append(list(requests))
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Response:
        if isinstance(request, ScoreRequest):
            belief = self.believe(request)
            if isinstance(belief, Failed):
                return belief
            return Scored(
                probabilities=tuple(belief),
                token_ids=tuple(range(len(belief))),
                prompt_tokens=3,
                prompt_digest=str(hash(request.prompt)),
            )
        answer = self.say(request)
        if isinstance(answer, str):
            return Generated(
                text=answer,
                token_ids=(),
                finish="stop",
                prompt_tokens=3,
                prompt_digest=str(hash(request.prompt)),
            )
        return answer

    def keep(self, exchanges: Sequence[Exchange]) -> None:
        self.kept.extend(exchanges)


@pytest.fixture
def columns_of() -> Callable[..., dict[str, float]]:
    def read(table, row: int = 0) -> dict[str, float]:
        return dict(zip(table.columns, table.rows[row].values, strict=True))

    return read
