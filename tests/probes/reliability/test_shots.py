from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.metrics.text import tfidf_cosine
from pytest_kbrel.probes import run_case
from pytest_kbrel.probes.reliability import with_shots
from pytest_kbrel.records import Case, Fact, ReliabilitySettings, Shot
from tests.probes.conftest import FRANCE, Oracle, make_case

FOUR = ReliabilitySettings(prompt="four-shot")
TWO_UNSURE = ReliabilitySettings(prompt="four-shot-2")
ANSWERED = tuple(
    Shot(question=f"What is the capital of {land}?", answer=city, subject=land)
    for land, city in (
        ("Peru", "Lima"),
        ("Chile", "Santiago"),
        ("Egypt", "Cairo"),
        ("Japan", "Tokyo"),
    )
)
UNSURE = tuple(
    Shot(question=f"Where was {name} born?", answer=None, subject=name)
    for name in ("Aev Dusk", "Bryz Cold", "Elv Amber")
)


def case_with(
    settings: ReliabilitySettings, *shots: Shot, facts: tuple[Fact, ...] = (FRANCE,)
) -> Case:
    return dataclasses.replace(make_case(settings, *facts), repository=shots)


def shown(case: Case, fact: Fact = FRANCE) -> list[str]:
    return [shot.question for shot in dict(case.shots)[fact.id]]


def by_length(questions, examples):
    return [[float(len(example)) for example in examples] for _ in questions]


def test_the_four_nearest_come_first_to_last() -> None:
    far = Shot(question="Who?", answer="Nobody", subject="x")
    chosen = shown(with_shots(case_with(FOUR, far, *ANSWERED, *UNSURE), by_length))
    lengths = [len(question) for question in chosen]
    assert lengths == sorted(lengths, reverse=True)
    assert set(chosen) == {shot.question for shot in ANSWERED}


def test_an_alias_without_a_spelling_gives_nothing_away() -> None:
    # Such an alias stands in PopQA beside each of many countries.
    question = "In what country is Cave?"
    fact = dataclasses.replace(
        FRANCE,
        subject=question,
        question=question,
        object="Italy",
        aliases=("\U0001f1ee\U0001f1f9", "!!!"),
    )
    case = with_shots(
        case_with(TWO_UNSURE, *ANSWERED, *UNSURE, facts=(fact,)), by_length
    )
    assert [shot.answer is None for shot in dict(case.shots)[fact.id]] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("settings", [FOUR, TWO_UNSURE], ids=lambda s: s.prompt)
def test_too_few_examples_left_is_an_error_that_names_the_fact(
    settings: ReliabilitySettings,
) -> None:
    own = Shot(question="What is the capital of France?", answer="Paris")
    needed = (
        "4 examples with an answer, found 3"
        if settings is FOUR
        else "2 examples with an answer, found 1"
    )
    with pytest.raises(SuiteError, match=rf"'P36-FR' needs {needed} .*'shots'"):
        with_shots(
            case_with(
                settings, own, *ANSWERED[: 3 if settings is FOUR else 1], *UNSURE
            ),
            tfidf_cosine,
        )


def test_too_few_examples_without_an_answer_are_told_from_those_with_one() -> None:
    with pytest.raises(
        SuiteError, match=r"'P36-FR' needs 2 examples without an answer, found 1 "
    ):
        with_shots(case_with(TWO_UNSURE, *ANSWERED, UNSURE[0]), tfidf_cosine)


def test_the_prompt_shows_them_and_the_digest_tells() -> None:
    oracle = Oracle(say=lambda request: "unsure")
    case = with_shots(case_with(TWO_UNSURE, *ANSWERED, *UNSURE), tfidf_cosine)
    first = run_case(case, oracle, oracle.keep).table.rows[0]
    prompt = oracle.rounds[0][0].prompt
    assert prompt.count("Question:") == 5
    # Equally near ones come in the order of their texts: Chile, Egypt.
    assert [
        prompt.count(f"{shot.question}\nAnswer: {shot.answer}\n") for shot in ANSWERED
    ] == [0, 1, 1, 0]
    assert [prompt.count(f"{shot.question}\nAnswer: unsure\n") for shot in UNSURE] == [
        1,
        1,
        0,
    ]
    assert prompt.endswith("Question: What is the capital of France?\nAnswer:")
    other = with_shots(case_with(TWO_UNSURE, *ANSWERED[1:], *UNSURE), by_length)
    assert (
        run_case(other, oracle, oracle.keep).table.rows[0].prompt_digest
        != first.prompt_digest
    )


def test_a_case_that_lacks_its_examples_is_an_error() -> None:
    oracle = Oracle()
    with pytest.raises(SuiteError, match=r"shows 4 examples, found 0 for 'P36-FR'"):
        run_case(case_with(FOUR, *ANSWERED), oracle, oracle.keep)
