"""The error of a model as judge, measured on answers that a human has labelled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_kbrel.errors import ModelError
from pytest_kbrel.facts.judge_labels import LabelledAnswer, too_few
from pytest_kbrel.records import (
    Case,
    Fact,
    HeadToTailSettings,
    JudgeError,
    Request,
    Response,
)

# Who asks, where a case would.
ASKED_FOR = "--kb-judge-labels"


def measure_judge_error(
    labelled: Sequence[LabelledAnswer],
    judge: str,
    ask: Callable[[Sequence[Request], str], Sequence[Response]],
) -> JudgeError:
    """Judge labelled answers as those of a case are judged: by rules, and by ``judge`` where these are open.

    ``ask(requests, to)`` returns one response for each request, in order. Wrong answers that the rules call
    uninformative are left out: no judge is asked about them. Raises ``ModelError`` where the judge gives no
    reply, or is no better than chance as far as the labels show.
    """
    from pytest_kbrel.probes.grading import judged

    facts = [
        Fact(
            id=f"label {number}",
            relation="label",
            subject="label",
            object=answer.answers[0],
            aliases=answer.answers[1:],
            question=answer.question,
            language=answer.language,
        )
        for number, answer in enumerate(labelled, start=1)
    ]
    case = Case(
        id="labels",
        suite=ASKED_FOR,
        probe="head_to_tail",
        slice="labels",
        facts=tuple(facts),
        relations=(),
        settings=HeadToTailSettings(),
        gates=(),
        judge=judge,
    )
    judging = judged(
        case,
        {fact.id: one.prediction for fact, one in zip(facts, labelled, strict=True)},
    )
    try:
        asks = next(judging)
        judging.send(tuple(ask([one.request for one in asks], judge)))
        raise AssertionError("a judge is asked in one round")
    except StopIteration as stop:
        verdicts = stop.value
    if verdicts.failures:
        first = next(iter(verdicts.failures.values()))
        raise ModelError(
            f"{ASKED_FOR}: {len(verdicts.failures)} of {len(facts)} have no verdict: {first}"
        )
    called = [
        (one.right, verdicts[fact.id].label)
        for fact, one in zip(facts, labelled, strict=True)
    ]
    error = JudgeError(
        right_accepted=called.count((True, "correct")),
        right=sum(right for right, _ in called),
        wrong_accepted=called.count((False, "correct")),
        wrong=sum(not right and label != "uninformative" for right, label in called),
    )
    _check(error, judge)
    return error


def _check(error: JudgeError, judge: str) -> None:
    """Raise ``ModelError`` unless the judge tells right answers from wrong ones."""
    # Imports scipy: at the top it was half of the time until a session's first line.
    from pytest_kbrel import stats

    counts = (
        f"{judge} finds {error.right_accepted} of {error.right} right answers and accepts "
        f"{error.wrong_accepted} of {error.wrong} wrong ones"
    )
    if problem := too_few(error.right, error.wrong):
        raise ModelError(
            f"{ASKED_FOR}: without wrong answers that rules call uninformative: {problem}"
        )
    index = stats.judge_index(
        error.right_accepted, error.right, error.wrong_accepted, error.wrong
    )
    if index.low is None or index.low <= 0:
        raise ModelError(
            f"{ASKED_FOR}: {counts}: by these labels it may be no better than chance (the difference of both "
            f"shares is {index.value:.2f}, with an interval from {index.low:.2f} to {index.high:.2f}); "
            "allowed: an interval above 0, by another judge or by more labels"
        )
