from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pytest_kbrel.probes import run_case
from pytest_kbrel.probes.monitor import prompt_in
from pytest_kbrel.records import Failed, Generated, MonitorSettings, ScoreRequest, Step
from tests.probes.conftest import CAPITAL, FRANCE, NORWAY, Oracle, make_case

DEFINITION = MonitorSettings(negatives=2)
PUBLISHED = MonitorSettings(negatives=2, variant="published")


def believe(request: ScoreRequest) -> tuple[float, float]:
    """Two tokens: the second falls with the frame and after wrong contexts."""
    by_prompt = {
        "Paris. What is the capital of France?": (0.9, 0.8),
        "What is the capital of France?": (0.7, 0.8),
        "Which city governs France?": (0.5, 0.6),
        "Where does France have its seat?": (0.9, 0.2),
        "Rome. What is the capital of France?": (0.1, 0.8),
        "Oslo. What is the capital of France?": (0.9, 0.6),
    }
    return by_prompt[request.prompt]


@pytest.mark.parametrize(
    ("settings", "chat", "prompt", "lead"),
    [
        (
            DEFINITION,
            False,
            "Question: Rome. What is the capital of France?\nAnswer: The capital of France is",
            "",
        ),
        (
            replace(DEFINITION, prompt_text="Q: {question}", answer_cue="A:"),
            False,
            "Q: Rome. What is the capital of France?\nA: The capital of France is",
            "",
        ),
        (
            DEFINITION,
            True,
            "Rome. What is the capital of France?",
            "The capital of France is",
        ),
    ],
)
def test_behind_a_lead_the_answer_is_scored_and_written_alike(
    settings, chat, prompt, lead
):
    relation = replace(CAPITAL, lead="The capital of [X] is")
    case = replace(make_case(settings, FRANCE), relations=(relation,), chat=chat)
    oracle = Oracle()
    run_case(case, oracle, oracle.keep)
    asked = {
        exchange.ask.role: exchange.ask.request
        for exchange in oracle.kept
        if exchange.ask.role.startswith("negative1:0")
    }
    assert len(asked) == 2
    assert {(of.prompt, of.lead) for of in asked.values()} == {(prompt, lead)}


def test_the_published_variant_asks_without_the_lead():
    relation = replace(CAPITAL, lead="The capital of [X] is")
    case = replace(make_case(PUBLISHED, FRANCE), relations=(relation,))
    oracle = Oracle()
    run_case(case, oracle, oracle.keep)
    assert "Paris. What is the capital of France?" in {
        exchange.ask.request.prompt for exchange in oracle.kept
    }


def test_the_definition_variant_gives_the_hand_worked_figures(columns_of):
    oracle = Oracle(
        say=lambda request: "Paris" if "Rome" not in request.prompt else "Rome",
        believe=believe,
    )
    result = run_case(make_case(DEFINITION, FRANCE), oracle, oracle.keep)
    columns = columns_of(result.table)
    # eq. 1: frames differ from (0.9, 0.8) by (0.2, 0), (0.4, 0.2), (0, 0.6)
    pfd = (0.2 / 2 + 0.6 / 2 + 0.6 / 2) / 3
    # eq. 2: wrong contexts differ by (0.8, 0) and (0, 0.2)
    ird = (0.8 / 2 + 0.2 / 2) / 2
    assert columns["pfd"] == pytest.approx(pfd)
    assert columns["ird"] == pytest.approx(ird)
    assert columns["term"] == pytest.approx(
        math.sqrt((pfd**2 + ird**2 + pfd * ird) / 3)
    )
    assert columns["anchor"] == pytest.approx(0.85)
    assert columns["kept"] == 1
    assert {
        name: value for name, value in columns.items() if name.startswith("cell:")
    } == {
        "cell:positive:0": 1,
        "cell:none:0": 1,
        "cell:none:1": 1,
        "cell:none:2": 1,
        "cell:negative1:0": 0,
        "cell:negative2:0": 1,
    }


def test_the_cells_are_kept_in_which_the_probability_moved_most():
    oracle = Oracle(
        say=lambda request: "Paris" if "Rome" not in request.prompt else "Rome",
        believe=believe,
    )
    case = make_case(DEFINITION, FRANCE)
    (moved,) = run_case(case, oracle, oracle.keep).moved
    cells = (moved.anchor, moved.frame, moved.context)
    assert moved.fact_id == FRANCE.id
    assert [of.cell for of in cells] == ["positive:0", "none:1", "negative1:0"]
    assert [of.answer for of in cells] == ["Paris", "Paris", "Rome"]
    assert [of.probability for of in cells] == pytest.approx([0.85, 0.55, 0.45])
    assert [prompt_in(case, FRANCE, of.cell) for of in cells] == [
        "Paris. What is the capital of France?",
        "Which city governs France?",
        "Rome. What is the capital of France?",
    ]


@pytest.mark.parametrize(
    ("written", "first"),
    [((0,), 1), ((0, 8), 1), ((3, 0), 1), ((3, 4, 0), 0), ((1, 3), 0)],
)
def test_the_scored_token_is_one_of_the_first_two_that_the_model_wrote(
    columns_of, written, first
):
    fields = {"finish": "stop", "prompt_tokens": 1, "prompt_digest": "d"}
    # The oracle scores tokens 0 and 1.
    oracle = Oracle(
        say=lambda request: Generated(text="Paris", token_ids=written, **fields),
        believe=believe,
    )
    result = run_case(make_case(DEFINITION, FRANCE), oracle, oracle.keep)
    assert columns_of(result.table)["first_token"] == first


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (" Paris, France", 1),
        ("Paris", 1),
        ("the City of Paris", 0),
        ("It is Paris", 0),
        ("", 0),
    ],
)
def test_without_tokens_the_first_word_stands_for_them(columns_of, text, first):
    fields = {"finish": "stop", "prompt_tokens": 1, "prompt_digest": "d"}
    oracle = Oracle(
        say=lambda request: Generated(text=text, token_ids=(), **fields),
        believe=believe,
    )
    result = run_case(make_case(DEFINITION, FRANCE), oracle, oracle.keep)
    assert columns_of(result.table)["first_token"] == first


def test_one_answer_in_all_cells_is_judged_by_the_question_of_each(columns_of):
    hinting = replace(CAPITAL, frames=(*CAPITAL.frames, "Is Paris the capital of [X]?"))
    case = replace(make_case(DEFINITION, FRANCE), relations=(hinting,))
    oracle = Oracle(say=lambda request: "Many like Paris a lot")
    columns = columns_of(run_case(case, oracle, oracle.keep).table)
    # What only repeats a word of the question is no answer to it.
    assert [columns[f"cell:none:{frame}"] for frame in range(4)] == [1, 1, 1, 0]
    assert [columns["cell:positive:0"], columns["cell:negative1:0"]] == [1, 1]


def test_a_failed_response_is_an_error_and_no_row():
    def fail_on_norway(request: ScoreRequest) -> tuple[float, ...] | Failed:
        return Failed(error="not a number") if "Norway" in request.prompt else (0.5,)

    oracle = Oracle(believe=fail_on_norway)
    result = run_case(make_case(DEFINITION, FRANCE, NORWAY), oracle, oracle.keep)
    assert [row.fact_id for row in result.table.rows] == ["P36-FR"]
    assert len(result.errors) == 1
    assert "P36-NO" in result.errors[0]
    assert "not a number" in result.errors[0]


def test_a_gold_object_that_is_tokenised_differently_after_a_context_is_an_error():
    oracle = Oracle(
        believe=lambda request: (0.5,) if "Rome" in request.prompt else (0.5, 0.5)
    )
    result = run_case(make_case(DEFINITION, FRANCE), oracle, oracle.keep)
    assert result.table.rows == ()
    assert "tokenised" in result.errors[0]


def generated(text: str, *steps: tuple[str, float, float | None]) -> Generated:
    return Generated(
        text=text,
        token_ids=(),
        finish="stop",
        prompt_tokens=3,
        prompt_digest=text,
        steps=tuple(
            Step(token_id=ord(token[0]), token=token, probability=top, watched=watched)
            for token, top, watched in steps
        ),
    )


def test_the_published_variant_takes_free_running_steps_and_pads_short_runs_with_zeros(
    columns_of,
):
    def say(request):
        if request.prompt.startswith("Paris. "):
            return generated(
                "Paris.",
                ("P", 0.9, None),
                ("aris", 0.7, None),
                (".", 0.9, None),
                ("</s>", 1, None),
            )
        if request.prompt.startswith("Rome. "):
            return generated("Rome", ("R", 0.9, 0.1))
        return generated("Paris", ("P", 0.8, 0.8), ("aris", 0.7, 0.7), (".", 0.5, 0.5))

    oracle = Oracle(say=say)
    result = run_case(make_case(PUBLISHED, FRANCE), oracle, oracle.keep)
    columns = columns_of(result.table)
    # L = 2: the full stop and the end token are trimmed; the foreign run after Rome is padded to (0.1, 0).
    assert columns["anchor"] == pytest.approx(0.8)
    assert columns["pfd"] == pytest.approx(0.1 / 2)
    assert columns["ird"] == pytest.approx(((0.8 + 0.7) / 2 + 0.1 / 2) / 2)
    assert columns["cell:negative1:0"] == 0
    assert columns["cell:negative2:0"] == 1
    assert oracle.rounds[1][0].watch == (ord("P"), ord("a"))
    assert {request.num_beams for request in oracle.rounds[0]} == {5}


def test_the_published_variant_trims_every_run_by_its_own_steps(columns_of):
    def say(request):
        if request.prompt.startswith("Paris. "):
            # It ends a second time: its full stop is not the last step but one, and stays.
            ends = (".", 0.5, None), ("</s>", 1, None), ("</s>", 1, None)
            return generated("Paris.", ("Paris", 0.75, None), *ends)
        if request.prompt.startswith("Rome. "):
            return generated(
                "Rome.", ("Rome", 1, 0.25), (".", 0.5, 0.5), ("</s>", 1, 0.0)
            )
        if request.prompt.startswith("Oslo. "):
            return generated("", (".", 0.5, 0.25), ("</s>", 1, 0.5))
        return generated(
            "Paris", ("Paris", 0.75, 0.75), ("\n", 0.25, 0.5), ("Q", 1, 0.0)
        )

    oracle = Oracle(say=say)
    columns = columns_of(
        run_case(make_case(PUBLISHED, FRANCE), oracle, oracle.keep).table
    )
    # L = 2. The frames stop at their newline: (0.75, 0). After Rome the full stop goes: (0.25, 0). After
    # Oslo nothing remains: (0, 0).
    assert (columns["anchor"], columns["pfd"]) == (0.625, 0.5 / 2)
    assert columns["ird"] == ((0.5 + 0.5) / 2 + (0.75 + 0.5) / 2) / 2


def test_an_anchor_of_which_nothing_remains_keeps_its_first_step(columns_of):
    def say(request):
        return generated("Paris", (".", 0.5, 0.25), ("</s>", 1, 1))

    oracle = Oracle(say=say)
    columns = columns_of(
        run_case(make_case(PUBLISHED, FRANCE), oracle, oracle.keep).table
    )
    assert (columns["anchor"], columns["pfd"], columns["ird"]) == (0.5, 0.5, 0.5)


def test_the_published_variant_drops_facts_whose_positive_answer_is_not_exactly_the_gold(
    columns_of,
):
    oracle = Oracle(say=lambda request: generated("paris", ("p", 0.9, None)))
    result = run_case(make_case(PUBLISHED, FRANCE), oracle, oracle.keep)
    assert set(columns_of(result.table).values()) == {0.0}
    # A dropped fact costs one base question and nothing else.
    assert len(oracle.rounds[1]) == 1


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("I do not know.", "unsure"),
        ("", "none"),
        ("What is the capital of France?", "none"),
        ("No comment", "silent"),
        ("Rome", ""),
        ("Paris", ""),
    ],
)
def test_the_published_variant_has_no_third_label_and_says_by_the_rule_what_is_uninformative(
    text, rule
):
    oracle = Oracle(say=lambda request: generated(text, ("P", 0.9, None)))
    case = replace(
        make_case(PUBLISHED, FRANCE), uninformative=(("silent", "no comment"),)
    )
    (row,) = run_case(case, oracle, oracle.keep).table.rows
    assert (row.label, row.rule) == ("correct" if text == "Paris" else "wrong", rule)
    assert (row.fact_id, row.question) == ("P36-FR", "What is the capital of France?")
    assert (row.expected, row.answer) == ("Paris", text)
