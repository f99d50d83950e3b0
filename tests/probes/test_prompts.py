"""Every prompt in full: a word that changes makes new answers incomparable with all older baselines."""

from __future__ import annotations

from pytest_kbrel.probes.prompts import (
    CONCISE,
    brief,
    check,
    choice,
    fill,
    in_domain_shots,
    qa,
    template,
    verdict,
    with_context,
    wrong_answers,
)

QUESTION = "Who wrote Hamlet?"
BRIEF = 'Reply in as few words as you can. Write "unsure" if you do not know.\n\n'
SUN = "Question: Which planet is closest to the Sun?\nAnswer: Mercury\n"
RIVER = (
    "Question: Which river flows through the town of Ombrelvane?\nAnswer: unsure\n\n"
)


def test_a_frame_leaves_its_object_open_and_a_statement_is_filled():
    assert fill("[X] lies in [Y].", "Lyon") == "Lyon lies in [Y]."
    assert (
        fill("[X] lies in [Y], says [X].", "Lyon", "France")
        == "Lyon lies in France, says Lyon."
    )
    assert with_context("Goethe", QUESTION) == "Goethe. Who wrote Hamlet?"
    assert check("Lyon lies in France.") == (
        "Statement: Lyon lies in France. Is the statement true or false?"
    )


def test_the_prompts_of_head_to_tail():
    question = "Question: Who wrote Hamlet?\nAnswer:"
    assert brief(QUESTION) == f"{BRIEF}{SUN}\n{RIVER}{question}"
    assert brief(QUESTION, shots=()) == BRIEF + question
    example = "Question: Who wrote Faust?\nAnswer: Goethe\n\n"
    assert (
        brief(QUESTION, in_domain_shots(("Who wrote Faust?", "Goethe")))
        == BRIEF + RIVER + example + question
    )
    assert (
        template(CONCISE).in_text(QUESTION)
        == f"Reply in as few words as you can.\n\n{question}"
    )


def test_the_prompts_of_reliable_kb():
    instruction = (
        'Give only the answer to the question. Write "unsure" if you do not know it.\n'
    )
    asked = "Question: Who wrote Hamlet?\nAnswer:"
    assert qa(QUESTION) == instruction + asked
    assert qa(QUESTION, [("A?", "b"), ("C?", "unsure")]) == (
        f"{instruction}Question: A?\nAnswer: b\nQuestion: C?\nAnswer: unsure\n{asked}"
    )
    assert choice(QUESTION, ["Goethe", "Shakespeare", "unsure"]) == (
        "Pick the option that answers the question. Reply with that option only.\n"
        "Question: Who wrote Hamlet?\nA) Goethe\nB) Shakespeare\nC) unsure\nAnswer:"
    )


def test_a_writer_of_wrong_answers_is_shown_how():
    assert wrong_answers(QUESTION, "Goethe", 5) == (
        "Write 5 wrong answers to the question, one a line. Each is of the same kind and form as the answer "
        f"that is given, and says something else.\n{SUN}Wrong answers:\n"
        "Venus\nEarth\nMars\nJupiter\nSaturn\nUranus\nNeptune\nPluto\n"
        "Question: Who wrote Hamlet?\nAnswer: Goethe\nWrong answers:"
    )


def test_a_judge_sees_eight_verdicts_before_its_own():
    blocks = verdict("Who?", ("Æsop", "B"), "<C>").split("\n\n")
    assert blocks[1] == (
        'Question: "Who wrote Faust?"\nAccepted: ["Goethe"]\n'
        'Answer: "It was Johann Wolfgang von Goethe."\nVerdict: correct'
    )
    assert [block.rpartition(" ")[2] for block in blocks[1:9]] == [
        "correct",
        "incorrect",
        "correct",
        "correct",
        "incorrect",
        "incorrect",
        "correct",
        "incorrect",
    ]
    # Letters of other languages stay as they are, so that a small model can read them.
    assert blocks[9:] == [
        'Question: "Who?"\nAccepted: ["Æsop", "B"]\nAnswer: "\\u003cC>"\nVerdict:'
    ]


def test_a_judge_is_shown_that_several_accepted_answers_are_right_and_a_mixture_of_them_is_not():
    blocks = verdict("Who?", ("A",), "B").split("\n\n")
    assert "It is also correct if it gives several of them." in blocks[0]
    several = [
        block for block in blocks if 'Accepted: ["Bill Gates", "Paul Allen"]' in block
    ]
    assert [block.partition("\nAnswer: ")[2] for block in several] == [
        '"P. Allen and Bill Gates"\nVerdict: correct',
        '"Paul Gates"\nVerdict: incorrect',
    ]
