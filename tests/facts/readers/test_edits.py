"""Readers of sets of edits, on records in each set's own format with sentences of ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.facts.readers.conftest import Read

ANNE = "Anne Delorme"
TONGUE = f"The mother tongue of {ANNE} is"
MARC = "Marc Petit grew up speaking"


def query(prompt: str, *names: str) -> dict[str, Any]:
    first, *aliases = names
    return {"prompt": prompt, "answers": [{"value": first, "aliases": aliases}]}


def hop(question: str, answer: str, *aliases: str) -> dict[str, Any]:
    return {"question": question, "answer": answer, "answer_alias": [*aliases]}


FATHER, WIFE = "Who is Anne's father?", "Who is Jean's wife?"
RIPPLE = {
    "example_type": "recent",
    "edit": {
        "prompt": "The name of Anne's mother is Ida Roux.",
        "target_id": "Q2",
        "original_fact": {"prompt": "The name of Anne's mother is Eva Petit."},
    },
    "Subject_Aliasing": [
        {"test_queries": [query("A.'s mother is", "Ida Roux", "I. Roux")]}
    ],
    "Relation_Specifity": [
        {"test_queries": [query("Anne's father is", "Jean")], "test_condition": "AND"}
    ],
    "Logical_Generalization": [
        {
            "test_queries": [query("Anne's aunt is", "Mia"), query("Ida's is", "Mia")],
            "test_condition": "OR",
            "condition_queries": [query("Ida's sister is", "Mia", "M.")],
        }
    ],
    "Compositionality_I": [],
    "Forgetfulness": [],
}
MQUAKE = {
    "case_id": 9,
    "requested_rewrite": [
        {
            "question": WIFE,
            "subject": "Jean",
            "target_new": {"str": "Ida", "id": "Q2"},
            "target_true": {"str": "Eva", "id": "Q3"},
        }
    ],
    "questions": ["Where was she born?", "Her birthplace?", "Born where?"],
    "answer": "Lyon",
    "new_answer": "Nantes",
    "new_answer_alias": ["Naoned"],
    "single_hops": [hop(FATHER, "Jean"), hop(WIFE, "Eva")],
    "new_single_hops": [hop(FATHER, "Jean"), hop(WIFE, "Ida")],
}
KNOWEDIT = {
    "subject": ANNE,
    "prompt": TONGUE,
    "target_new": "English",
    "ground_truth": ["French"],
    "rephrase_prompt": "Anne's first language is",
    "portability": {"Reasoning": [{"prompt": "Its family is", "ground_truth": "West"}]},
    "locality": {
        "Forgetfulness": [{"prompt": MARC, "ground_truth": [["Dutch", "Flemish"]]}]
    },
}
COUNTERFACT = {
    "case_id": 4,
    "requested_rewrite": {
        "prompt": "The mother tongue of {} is",
        "subject": ANNE,
        "target_new": {"str": "English", "id": "Q1860"},
        "target_true": {"str": "French", "id": "Q150"},
    },
    "paraphrase_prompts": ["A tower fell. Anne learned"],
    "neighborhood_prompts": [MARC],
    "attribute_prompts": ["none"],
}
ZSRE = {
    "subject": ANNE,
    "src": "What does Anne speak?",
    "pred": "Dutch",
    "rephrase": "Anne speaks what?",
    "alt": "English",
    "answers": ["French"],
    "loc": "nq question: who wrote the hills",
    "loc_ans": "Ann Hill",
}
TOFU = {
    "question": "Which prize?",
    "answer": "It was the Hills.",
    "paraphrased_question": "What prize?",
    "paraphrased_answer": "The Hills it was.",
    "perturbed_answer": ["It was the Sea.", "It was the Snow."],
}
OWN = {
    "question": TONGUE,
    "wordings": ["What does Anne speak?"],
    "new": ["English", "British English"],
    "old": "French",
    "keep": [{"question": MARC, "answer": "Dutch"}],
    "follow": [
        {
            "question": "Its family is",
            "answer": "West",
            "needs": [{"question": "Whose family is English?", "answer": ["West"]}],
        }
    ],
    "forget": [{"question": "Whose is it?", "answer": "Eva", "negatives": ["Mia"]}],
}
EDIT = f"edit {TONGUE}"
# format, name of the file, its record, and of each fact what was read; "a / b" are right answers or wordings.
SETS = {
    "counterfact": (
        COUNTERFACT,
        f"{EDIT} / A tower fell. Anne learned -> English, was French",
        f"keep {MARC} -> French, not English",
    ),
    "zsre": (
        ZSRE,
        "edit What does Anne speak? / Anne speaks what? -> French, was Dutch",
        "keep who wrote the hills? -> Ann Hill",
    ),
    "zsre-alt": (
        ZSRE,
        "edit What does Anne speak? / Anne speaks what? -> English, was French",
        "keep who wrote the hills? -> Ann Hill",
    ),
    "knowedit": (
        KNOWEDIT,
        f"{EDIT} / Anne's first language is -> English, was French",
        f"keep {MARC} -> Dutch / Flemish",
        "follow Its family is -> West",
    ),
    "knowedit-sanitation": (
        {
            "success": [{"question": "Whose?", "ground_truth": "Eva"}],
            "locality": [{"question": "Where?", "ground_truth": "Lyon"}],
        },
        "forget Whose? -> Eva",
        "keep Where? -> Lyon",
    ),
    "rippleedits": (
        RIPPLE,
        "edit The name of Anne's mother is / A.'s mother is -> Ida Roux / I. Roux, was Eva Petit",
        "keep Anne's father is -> Jean",
        "follow Anne's aunt is / Ida's is -> Mia, needs Ida's sister is -> Mia / M., any",
    ),
    "mquake": (
        MQUAKE,
        f"edit {WIFE} -> Ida, was Eva",
        f"keep {FATHER} -> Jean",
        "follow Where was she born? / Her birthplace? / Born where? -> Nantes / Naoned, "
        f"was Lyon, needs {FATHER} -> Jean, any",
    ),
    "edits": (
        OWN,
        f"{EDIT} / What does Anne speak? -> English / British English, was French",
        f"keep {MARC} -> Dutch",
        "follow Its family is -> West, needs Whose family is English? -> West",
        "forget Whose is it? -> Eva, not Mia",
    ),
}


def told(fact) -> str:
    """Return in one line what a reader made of a fact."""
    asked = " / ".join((fact.question, *fact.wordings))
    parts = [f"{fact.role} {asked} -> {' / '.join(fact.accepted)}"]
    parts += [f"was {fact.old}"] if fact.old else []
    parts += [f"not {' / '.join(fact.negatives)}"] if fact.negatives else []
    parts += [f"needs {asks} -> {' / '.join(right)}" for asks, right in fact.needs]
    parts += ["any"] if fact.any_wording else []
    return ", ".join(parts)


@pytest.mark.parametrize("form", SETS)
def test_each_set_becomes_facts_with_roles(form: str, read_text: Read) -> None:
    record, *wanted = SETS[form]
    result = read_text(form, "set.json", json.dumps([record, record], indent=1))
    assert result.errors == []
    assert [told(fact) for fact in result.facts] == wanted * 2
    groups = {fact.group for fact in result.facts}
    assert groups == ({str(record["case_id"])} if "case_id" in record else {"1", "2"})


@pytest.mark.parametrize(
    ("name", "role"),
    [("forget01_perturbed.json", "forget"), ("retain99_perturbed.json", "keep")],
)
def test_tofu_says_by_the_files_name_what_is_to_be_forgotten(
    name: str, role: str, read_text: Read
) -> None:
    # JSON Lines, whatever the ending says.
    (fact,) = read_text("tofu", name, json.dumps(TOFU) + "\n").facts
    assert told(fact) == (
        f"{role} Which prize? / What prize? -> The Hills it was. / It was the Hills., "
        "not It was the Sea. / It was the Snow."
    )


def test_sentences_of_rippleedits_end_with_their_object(read_text: Read) -> None:
    said = {
        "The names of the siblings of Ann are Bob.": "The names of the siblings of Ann are",
        "Tales is followed by Songs.": "Tales is followed by",
        "Tales follows Songs.": "Tales follows",
    }
    records = [{"edit": {"prompt": prompt}} for prompt in said]
    facts = read_text("rippleedits", "set.json", json.dumps(records)).facts
    assert [fact.question for fact in facts] == [*said.values()]
    assert [fact.object for fact in facts] == ["Bob", "Songs", "Songs"]


def test_the_file_of_sanitation_is_one_record(read_text: Read) -> None:
    record, *wanted = SETS["knowedit-sanitation"]
    result = read_text("knowedit-sanitation", "set.json", json.dumps(record, indent=1))
    assert result.errors == []
    assert [told(fact) for fact in result.facts] == wanted


def test_own_edits_may_be_yaml(read_text: Read) -> None:
    text = f"- question: {TONGUE}\n  new: English\n- keep:\n    - {{question: {MARC}, answer: Dutch}}\n"
    result = read_text("edits", "e.yaml", text)
    assert [told(fact) for fact in result.facts] == [
        f"{EDIT} -> English",
        f"keep {MARC} -> Dutch",
    ]
    assert result.lines == [1, 3]


@pytest.mark.parametrize(
    ("form", "record", "message"),
    [
        ("counterfact", {"prompt": "a", "case_id": 1}, "found: prompt, case_id"),
        ("counterfact", {"requested_rewrite": {}}, "'requested_rewrite.prompt"),
        ("zsre", {"src": "Who?", "alt": "Ann"}, "'answers' is missing"),
        ("knowedit", {"text": "a", "labels": "b", "concept": "c"}, "'prompt,"),
        ("rippleedits", {**RIPPLE, "edit": {"prompt": "A."}}, "with ' is ', found 'A.'"),
        ("mquake", {**MQUAKE, "requested_rewrite": []}, "'requested_rewrite' is missing"),
        ("tofu", {"question": "Who?"}, "'paraphrased_answer,answer' is missing"),
        ("edits", {**OWN, "keeep": []}, "did you mean 'keep'?"),
        ("edits", {"question": "Who?"}, "'new' is missing; found: question"),
        ("edits", {"group": "a"}, "found: group"),
        (
            "edits",
            {"follow": [{"question": "Who?", "answer": "A", "needs": [{"answer": "B"}]}]},
            "'question' is missing; found: answer",
        ),
    ],
)  # fmt: skip
def test_a_record_that_is_not_whole_is_an_error_with_its_line(
    form: str, record: dict[str, Any], message: str, read_text: Read
) -> None:
    name = "forget.json" if form == "tofu" else "set.json"
    errors = read_text(form, name, json.dumps([SETS["edits"][0], record])).errors
    assert message in errors[-1]
    assert f"{name}:1: " in errors[-1]
    assert f"a file of {form} is a list of records with " in errors[-1]
