"""The error of a judge, measured on labelled answers as the answers of a case are judged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.judge_error import measure_judge_error
from pytest_kbrel.facts.judge_labels import LabelledAnswer
from pytest_kbrel.records import Failed, Generated, JudgeError, Request, Response

SECRET = "the city of kings"


class Judge:
    """Replies by the number in the answer: ``wrongly`` are the numbers that it gets wrong."""

    def __init__(self, wrongly: Sequence[int] = (), fails: bool = False) -> None:
        self.wrongly, self.fails = wrongly, fails
        self.asked: list[str] = []

    def __call__(self, requests: Sequence[Request], to: str) -> Sequence[Response]:
        assert to == "scripted/judge.jsonl"
        self.asked += [request.prompt for request in requests]
        return [self._reply(request.prompt.splitlines()) for request in requests]

    def _reply(self, lines: list[str]) -> Response:
        if self.fails:
            return Failed(error="out of order")
        line = next(line for line in reversed(lines) if "number" in line)
        number = int(line.split("number ")[1].split()[0].strip('".'))
        says = (SECRET in line) != (number in self.wrongly)
        text = "correct" if says else "incorrect"
        return Generated(
            text=text, token_ids=(), finish="stop", prompt_tokens=1, prompt_digest=""
        )


def labelled(right: int, wrong: int) -> list[LabelledAnswer]:
    texts = [(f"{SECRET}, number {n}", True) for n in range(right)]
    texts += [(f"a village, number {n}", False) for n in range(right, right + wrong)]
    return [
        LabelledAnswer(
            question="What is the capital of Peru?",
            answers=("Lima",),
            prediction=text,
            right=is_right,
        )
        for text, is_right in texts
    ]


def measured(judge: Judge, answers: Sequence[LabelledAnswer]) -> JudgeError:
    return measure_judge_error(answers, "scripted/judge.jsonl", judge)


def test_the_judge_is_asked_about_every_answer_and_its_errors_are_counted() -> None:
    judge = Judge(wrongly=(3, 4, 30))
    assert measured(judge, labelled(25, 20)) == JudgeError(
        right_accepted=23, right=25, wrong_accepted=1, wrong=20
    )
    assert len(judge.asked) == 45
    assert "What is the capital of Peru?" in judge.asked[0]


def test_rules_decide_first_as_they_do_in_a_case() -> None:
    judge = Judge()
    plain = LabelledAnswer(
        question="?", answers=("Lima",), prediction="lima.", right=True
    )
    denied = LabelledAnswer(
        question="?", answers=("Lima",), prediction="I do not know.", right=True
    )
    silent = LabelledAnswer(
        question="?", answers=("Lima",), prediction="I have no idea.", right=False
    )
    result = measured(judge, [*labelled(20, 20), plain, denied, silent])
    assert result == JudgeError(right_accepted=21, right=22, wrong_accepted=0, wrong=20)
    assert len(judge.asked) == 40


def test_a_judge_no_better_than_chance_is_refused() -> None:
    at_random = Judge(wrongly=range(0, 40, 2))
    with pytest.raises(
        ModelError,
        match=r"finds 10 of 20 right .* accepts 10 of 20 .*no better than chance.*0\.00",
    ):
        measured(at_random, labelled(20, 20))
    contrary = Judge(wrongly=range(40))
    with pytest.raises(ModelError, match="no better than chance"):
        measured(contrary, labelled(20, 20))


def test_a_judge_that_fails_is_named_with_its_first_error() -> None:
    with pytest.raises(
        ModelError, match=r"--kb-judge-labels: 40 of 40 have no verdict: .*out of order"
    ):
        measured(Judge(fails=True), labelled(20, 20))


def test_labels_of_silence_alone_say_nothing_of_a_judge() -> None:
    silent = [
        LabelledAnswer(
            question=f"{n}?",
            answers=("Lima",),
            prediction="I do not know.",
            right=False,
        )
        for n in range(20)
    ]
    with pytest.raises(
        ModelError, match="found 20 answers labelled right and 0 labelled wrong"
    ):
        measured(Judge(), [*labelled(20, 0), *silent])
