"""What a suite may put around a question, and what of it makes answers incomparable."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes import prompts, run_case
from pytest_kbrel.probes.reliability import shots_in
from pytest_kbrel.records import (
    GenerateRequest,
    HeadToTailSettings,
    MonitorSettings,
    ReliabilitySettings,
    ScoreRequest,
    Shot,
    settings_of,
)
from tests.probes.conftest import FRANCE, Oracle, make_case
from tests.probes.monitor.test_monitor import generated
from tests.probes.test_base import same

GERMAN = "Antworte kurz.\n\n{examples}\n\nFrage: {question}"
FACT = replace(FRANCE, negatives=("Rome", "Oslo", "Bern", "Lima"))
SHOTS = tuple(
    Shot(question=f"What is the capital of {land}?", answer=city, subject=land)
    for land, city in (
        ("Peru", "Lima"),
        ("Chile", "Santiago"),
        ("Egypt", "Cairo"),
        ("Japan", "Tokyo"),
    )
)
QUESTION = "What is the capital of France?"


def requests(case):
    oracle = Oracle(say=lambda request: generated("Paris", ("P", 0.5, 0.5)))
    run_case(case, oracle, oracle.keep)
    return [request for asked in oracle.rounds for request in asked]


def first(settings, **more):
    return requests(replace(make_case(settings, FACT), **more))[0]


def test_head_to_tail_asks_in_the_suites_words():
    settings = HeadToTailSettings(
        prompt_text=GERMAN,
        system="Sei knapp.",
        answer_cue="Antwort:",
        stop=("\n", "."),
        prompt="zero-shot",
    )
    assert first(settings) == GenerateRequest(
        prompt=f"Antworte kurz.\n\nFrage: {QUESTION}\nAntwort:",
        max_new_tokens=32,
        stop=("\n", "."),
        system="Sei knapp.",
    )
    turns = first(
        HeadToTailSettings(
            prompt_text="{question}", answer_cue="", example_style="turns"
        )
    )
    assert (turns.prompt, turns.system, turns.stop) == (QUESTION, "", ("\n",))
    assert turns.turns == (
        ("Which planet is closest to the Sun?", "Mercury"),
        ("Which river flows through the town of Ombrelvane?", "unsure"),
    )


BRIEF, SHORT, PICK = (
    'Reply in as few words as you can. Write "unsure" if you do not know.',
    'Give only the answer to the question. Write "unsure" if you do not know it.',
    "Pick the option that answers the question. Reply with that option only.",
)


def test_a_chat_model_is_asked_the_question_alone_under_the_instruction():
    head = first(HeadToTailSettings(), chat=True)
    assert (head.prompt, head.system, head.turns) == (QUESTION, BRIEF, ())
    own = first(HeadToTailSettings(system="You know it."), chat=True)
    assert own.system == f"You know it.\n\n{BRIEF}"
    asked, *choices = requests(
        replace(make_case(ReliabilitySettings(choices=2), FACT), chat=True)
    )
    assert (asked.prompt, asked.system) == (QUESTION, SHORT)
    for choice in choices:
        question, *options = choice.prompt.splitlines()
        assert (question, len(options), choice.system) == (QUESTION, 5, PICK)


@pytest.mark.parametrize(
    "own",
    [
        {"prompt": "few-shot"},
        {"prompt_text": "{examples} {question}"},
        {"answer_cue": "A:"},
        {"example_style": "turns"},
    ],
    ids=str,
)
def test_what_the_suite_words_itself_is_asked_as_without_a_chat_template(own):
    for settings in (HeadToTailSettings(**own), ReliabilitySettings(choices=1, **own)):
        case = make_case(settings, FACT)
        assert requests(replace(case, chat=True)) == requests(case)


@pytest.mark.parametrize("style", ["text", "turns"])
def test_where_examples_are_shown_solved_choices_are_too(style):
    settings = ReliabilitySettings(choices=1, prompt="few-shot", example_style=style)
    asked, choice = requests(make_case(settings, FACT))
    shown = "\n".join(
        [*(text for turn in choice.turns for text in turn), choice.prompt]
    )
    assert shown.startswith(PICK)
    assert re.findall(r"Answer:\s+(\S.*)", shown) == [
        "C) Mercury",
        "A) seven",
        "E) unsure",
    ]
    assert "Ombrelvane" in str(asked)


@pytest.mark.parametrize("variant", ["definition", "published"])
def test_monitor_scores_behind_the_prompt_that_is_answered(variant):
    settings = MonitorSettings(
        negatives=2,
        variant=variant,
        prompt_text="Short! {question}",
        answer_cue="A:",
        system="s",
    )
    oracle = Oracle(
        say=lambda request: generated("Paris", ("P", 0.5, 0.5)),
        believe=lambda _: (0.5,),
    )
    case = make_case(settings, FACT)
    run_case(case, oracle, oracle.keep)
    requests_made = [request for requests in oracle.rounds for request in requests]
    prompts = [
        request.prompt
        for request in requests_made
        if isinstance(request, GenerateRequest)
    ]
    assert prompts[:2] == [f"Short! Paris. {QUESTION}\nA:", f"Short! {QUESTION}\nA:"]
    assert all(
        prompt.startswith("Short! ") and prompt.endswith("\nA:") for prompt in prompts
    )
    assert {request.system for request in requests_made} == {"s"}
    scored = [request for request in requests_made if isinstance(request, ScoreRequest)]
    assert [request.prompt for request in scored] == (
        prompts if variant == "definition" else []
    )


def test_other_formats_keep_their_words_under_the_suites_system_message():
    settings = MonitorSettings(
        negatives=2, prompt_text="Short! {question}", system="s", formats="all"
    )
    case = make_case(settings, FACT)
    relation = replace(case.relations[0], statements=("[X] is ruled from [Y].",))
    made = requests(replace(case, relations=(relation,)))
    others = [request for request in made if "Short!" not in request.prompt]
    assert [request.prompt for request in others[:2]] == [
        "France is ruled from",
        "Statement: France is ruled from Paris. Is the statement true or false?",
    ]
    assert {request.system for request in others} == {"s"}


CHANGES = [
    {"prompt_text": "Who knows: {question}"},
    {"system": "Be brief."},
    {"answer_cue": "A:"},
    {"stop": ("\n", ".")},
    {"stop": ("!",)},
]
CASES = [
    make_case(HeadToTailSettings(), FACT),
    make_case(MonitorSettings(negatives=2), FACT),
    make_case(MonitorSettings(negatives=2, variant="published"), FACT),
    make_case(ReliabilitySettings(choices=2), FACT),
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.probe)
def test_another_wording_is_not_comparable(case, change):
    assert same(case, case)
    assert not same(case, replace(case, settings=replace(case.settings, **change)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            HeadToTailSettings(prompt_text="What?"),
            r"prompt_text: \{question\} must stand in it once",
        ),
        (
            MonitorSettings(prompt_text="{examples} {question}"),
            r"unknown placeholder \{examples\}",
        ),
        (
            ReliabilitySettings(choice_prompt="{question}"),
            r"choice_prompt: \{options\} must stand in it once",
        ),
        (ReliabilitySettings(stop=("",)), "stop: found an empty text"),
    ],
)
def test_a_case_made_in_python_is_checked_too(settings, message):
    with pytest.raises(SuiteError, match=message):
        requests(make_case(settings, FACT))


STYLES = [
    {},
    {"prompt_text": GERMAN, "answer_cue": "Antwort:"},
    {"prompt_text": "{question}", "answer_cue": ""},
    {"example_style": "turns"},
    {"prompt_text": GERMAN, "example_style": "turns", "system": "s"},
]


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_examples_are_read_back_from_requests_in_any_wording(style):
    settings = ReliabilitySettings(prompt="four-shot", choices=1, **style)
    # One example is the beginning of another.
    short, long = (
        Shot(question="Who?", answer="A"),
        Shot(question="Who?", answer="A\n\nWho?\nB"),
    )
    bare = replace(make_case(settings, FACT), repository=(short, *SHOTS, long))
    for shown in (SHOTS, (long, *SHOTS[:3]), (SHOTS[0], short, *SHOTS[2:])):
        case = replace(bare, shots=((FACT.id, shown),))
        request = requests(case)[0]
        assert shots_in(bare, {FACT.id: request}) == case
    assert shots_in(replace(bare, repository=SHOTS[1:]), {FACT.id: request}) is None
    assert (
        shots_in(
            bare, {FACT.id: dataclasses.replace(request, prompt=request.prompt + " ")}
        )
        is None
    )


def test_settings_tell_a_wording_of_the_suites_own_and_no_other():
    settings = replace(HeadToTailSettings(), stop=("\n", "ü"), system="s")
    case, told = (
        make_case(settings, FACT),
        {"max_new_tokens": "32", "stop": '["\\n", "ü"]', "system": "s"},
    )
    assert dict(settings_of(case)) == told | {"prompt": "few-shot"}
    # The model that is asked chooses what the suite leaves open.
    assert dict(settings_of(replace(case, chat=True))) == told | {"prompt": "chat"}


@pytest.mark.parametrize(
    ("settings", "written"),
    [
        (HeadToTailSettings(), {"prompt_text": prompts.BRIEF}),
        (HeadToTailSettings(prompt="concise"), {"prompt_text": prompts.CONCISE}),
        (
            ReliabilitySettings(choices=2),
            {"prompt_text": prompts.QA, "choice_prompt": prompts.CHOICE},
        ),
        (MonitorSettings(negatives=2), {"prompt_text": "{question}"}),
    ],
)
def test_the_papers_wording_stands_in_the_documentation_as_a_suite_would_write_it(
    settings, written
):
    page = (Path(__file__).parents[2] / "docs" / "suites.md").read_text(
        encoding="utf-8"
    )
    for text in written.values():
        assert json.dumps(text) in page
    assert requests(make_case(replace(settings, **written), FACT)) == requests(
        make_case(settings, FACT)
    )
