"""Every prompt in full: a word that changes makes new answers incomparable with all older baselines."""

from __future__ import annotations

from pytest_kbrel.probes.prompts import (
    BRIEF_SHOTS,
    CONCISE,
    template,
)
from recipe.questions import brief, choice, qa

QUESTION = "Who wrote Hamlet?"
BRIEF = 'Reply in as few words as you can. Write "unsure" if you do not know.\n\n'
SUN = "Question: Which planet is closest to the Sun?\nAnswer: Mercury\n"
RIVER = (
    "Question: Which river flows through the town of Ombrelvane?\nAnswer: unsure\n\n"
)


def test_the_prompts_of_head_to_tail():
    question = "Question: Who wrote Hamlet?\nAnswer:"
    assert brief(QUESTION) == f"{BRIEF}{SUN}\n{RIVER}{question}"
    assert brief(QUESTION, shots=()) == BRIEF + question
    example = "Question: Who wrote Faust?\nAnswer: Goethe\n\n"
    assert (
        brief(QUESTION, (BRIEF_SHOTS[1], ("Who wrote Faust?", "Goethe")))
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
    assert qa(QUESTION, ()) == instruction + asked
    assert qa(QUESTION, [("A?", "b"), ("C?", "unsure")]) == (
        f"{instruction}Question: A?\nAnswer: b\nQuestion: C?\nAnswer: unsure\n{asked}"
    )
    assert choice(QUESTION, ["Goethe", "Shakespeare", "unsure"], ()) == (
        "Pick the option that answers the question. Reply with that option only.\n"
        "Question: Who wrote Hamlet?\nA) Goethe\nB) Shakespeare\nC) unsure\nAnswer:"
    )
