"""The probe edits: how facts of each role are asked, and what they must be answered to count."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.probes import run_case
from pytest_kbrel.records import Case, EditsSettings, Fact, Failed
from tests.probes.conftest import Oracle

EDIT = Fact(
    id="e",
    relation="R",
    subject="Peru",
    question="The capital of Peru is",
    object="Cusco",
    old="Lima",
    wordings=("What is the capital of Peru?",),
    role="edit",
)
KEEP = Fact(
    id="k",
    relation="R",
    subject="Chile",
    question="The capital of Chile is",
    object="Santiago",
    role="keep",
)
FOLLOW = dataclasses.replace(
    KEEP,
    id="f",
    question="Which river is at the capital of Peru?",
    object="Huatanay",
    role="follow",
    needs=(("Which river is at Cusco?", ("Huatanay", "Watanay")),),
)
FORGET = dataclasses.replace(
    KEEP, id="g", role="forget", negatives=("Lima", "Quito", "Bogota", "Sucre")
)


def case_of(*facts: Fact, **settings: object) -> Case:
    return Case(
        id=f"edits[{facts[0].role}]",
        suite="s.kb.yaml",
        probe="edits",
        slice=facts[0].role,
        facts=facts,
        relations=(),
        settings=EditsSettings(**settings),  # type: ignore[arg-type]
        gates=(),
    )


def says(**by_ending: str):
    """Return an oracle that answers by what a prompt holds; of options it picks the one that is ``pick``."""

    def say(request):
        last = request.prompt.rpartition("\n\n")[2] + request.lead
        if "A) " in last:
            lines = last.rpartition("A) ")[2].splitlines()
            at = ["A) " + lines[0], *lines[1:]]
            return next((of for of in at if of.endswith(by_ending["pick"])), "unsure")
        known = (text for end, text in by_ending.items() if end in last)
        return next(known, "unsure")

    return Oracle(say=say)


def values_of(oracle: Oracle, case: Case) -> dict[str, float]:
    (row,) = (table := run_case(case, oracle, oracle.keep).table).rows
    return dict(zip(table.columns, row.values, strict=True))


def test_an_edit_took_where_all_wordings_bring_out_the_new_object():
    for sentence, question, right, old in (
        ("Cusco", "Cusco", 1, 0),
        ("Cusco", "Lima", 0, 0),
        ("Lima", "Cusco", 0, 1),
    ):
        oracle = says(**{"Peru is": sentence, "Peru?": question})
        values = values_of(oracle, case_of(EDIT))
        assert (values["right"], values["old"]) == (right, old)


def test_the_beginning_of_a_sentence_is_completed_and_a_question_answered():
    oracle = says()
    run_case(case_of(EDIT), oracle, oracle.keep)
    sentence, question = oracle.rounds[0]
    examples = "The planet that is closest to the Sun is Mercury\n\nThe river that "
    assert examples in sentence.prompt
    assert sentence.prompt.endswith("is unsure\n\nThe capital of Peru is")
    assert question.prompt.endswith("Question: What is the capital of Peru?\nAnswer:")
    bare, _ = asked(case_of(EDIT, prompt="zero-shot"))
    assert bare.prompt == "The capital of Peru is"
    chat, _ = asked(dataclasses.replace(case_of(EDIT), chat=True))
    assert (chat.lead, "Complete the sentence" in chat.prompt) == (EDIT.question, True)
    own, _ = asked(case_of(EDIT, prompt_text="Say: {question}"))
    assert own.prompt.endswith("Say: The capital of Peru is\nAnswer:")


def asked(case: Case):
    oracle = says()
    run_case(case, oracle, oracle.keep)
    return oracle.rounds[0]


def test_right_and_wrong_answers_are_scored_as_the_authors_do():
    """The oracle finds " Cusco" half as probable a token as " Lima", and "Santiago" four times as probable as others."""
    tokens = {"Cusco": (0.25, 0.25), "Lima": (0.5,), "Santiago": (0.8,)}

    def score(request):
        return tokens.get(request.continuation.strip(), (0.2,))

    for fact, expected in (
        (EDIT, {"preferred": 0, "reworded": 0, "rewordings": 1}),
        (
            dataclasses.replace(EDIT, object="Lima", old="Cusco"),
            {"preferred": 1, "reworded": 1, "rewordings": 1},
        ),
        (
            dataclasses.replace(KEEP, negatives=("Lima", "Quito")),
            {"preferred": 1, "rewordings": 0, "ratio": 1 - (0.5 + 0.2) / 2 / 0.8},
        ),
        (FORGET, {"ratio": (0.5 + 3 * 0.2) / 4 / 0.8}),
        (KEEP, {"compared": 0}),
    ):
        oracle = says(pick="Quito")
        oracle.believe = score
        values = values_of(oracle, case_of(fact, scores="authors"))
        assert {name: values[name] for name in expected} == pytest.approx(expected)


def test_a_fact_to_keep_counts_where_it_is_right():
    for answer, right in (("Santiago", 1), ("Cusco", 0)):
        values = values_of(says(**{"Chile is": answer}), case_of(KEEP))
        assert (values["right"], values["condition"]) == (right, right)


def test_a_fact_that_follows_counts_where_its_needs_are_right():
    for needed, condition in (("Watanay", 1), ("Nile", 0)):
        oracle = says(**{"Cusco?": needed, "Peru?": "Huatanay"})
        values = values_of(oracle, case_of(FOLLOW))
        assert (values["right"], values["condition"]) == (1, condition)


def test_one_right_wording_may_be_enough():
    fact = dataclasses.replace(FOLLOW, needs=(), wordings=("Its river?",))
    oracle = says(**{"Its river": "Huatanay"})
    assert values_of(oracle, case_of(fact))["right"] == 0
    either = dataclasses.replace(fact, any_wording=True)
    assert values_of(oracle, case_of(either))["right"] == 1


@pytest.mark.parametrize(
    ("sentence", "pick", "forgotten"),
    [
        ("Santiago", "none", 0),
        ("unsure", "Santiago", 0),
        ("unsure", "none", 1),
        ("Lima", "none", 1),
    ],
)
def test_what_is_to_be_forgotten_is_neither_said_nor_picked(sentence, pick, forgotten):
    oracle = says(**{"Chile is": sentence, "pick": pick})
    values = values_of(oracle, case_of(FORGET))
    assert (values["right"], values["condition"]) == (forgotten, 1 - forgotten)
    assert (values["choices"], values["missing"]) == (4, sentence == "unsure")
    assert values["choices_unread"] == 0
    # Options are drawn by the seed, and all of them are of the fact.
    for request in oracle.rounds[1]:
        assert "Santiago" in request.prompt


def test_half_of_the_choices_are_chance_and_three_quarters_are_not():
    for often, known in ((2, 0), (3, 1)):
        oracle = says(**{"pick": "Santiago"})
        once = oracle.say
        counted = iter(range(99))
        oracle.say = lambda request, once=once, counted=counted, often=often: (
            once(request)
            if "A) " not in request.prompt or next(counted) < often
            else "unsure"
        )
        assert values_of(oracle, case_of(FORGET))["condition"] == known


def test_rounding_is_asked_of_the_model_and_not_of_its_judge():
    oracle = says(**{"Peru is": "Cusco, they say"})
    case = case_of(EDIT, rounding="int4")
    run_case(dataclasses.replace(case, judge="openai/j"), oracle, oracle.keep)
    roundings = {one.ask.to: one.ask.request.rounding for one in oracle.kept}
    assert roundings == {"": "int4", "openai/j": ""}


def test_a_wording_without_an_answer_is_an_error_of_its_fact():
    oracle = Oracle(
        say=lambda request: Failed(error="lost") if "?" in request.prompt[-12:] else "x"
    )
    result = run_case(case_of(EDIT, KEEP), oracle, oracle.keep)
    assert result.errors == ("e (answer): lost",)
    assert [row.fact_id for row in result.table.rows] == ["k"]


def test_what_was_asked_otherwise_has_another_digest():
    def digest(fact: Fact) -> str:
        oracle = says()
        return run_case(case_of(fact), oracle, oracle.keep).table.rows[0].prompt_digest

    others = [
        FOLLOW,
        dataclasses.replace(FOLLOW, needs=(("Which river is at Cusco?", ("Nile",)),)),
        dataclasses.replace(FOLLOW, wordings=("Its river?",)),
        dataclasses.replace(FOLLOW, any_wording=True),
        dataclasses.replace(FOLLOW, old="Nile"),
        dataclasses.replace(FOLLOW, aliases=("Watanay",)),
    ]
    assert len({*map(digest, others)}) == len(others)
