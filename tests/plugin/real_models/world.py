"""A world of 24 facts, and the suite about them."""

import json

from pytest_kbrel.records import record


@record
class Known:
    """A fact of the world; ``more`` is what a chatty model has to add to it."""

    relation: str
    subject: str
    object: str
    more: str


_FACTS = """\
P36|Ecuador|Quito|which lies in the Andes
P36|Peru|Lima|which lies on the Pacific
P36|Chile|Santiago|which lies below the Andes
P36|Cuba|Havana|which lies on the Atlantic
P36|Kenya|Nairobi|which lies in the highlands
P36|Ghana|Accra|which lies on the Atlantic
P36|Egypt|Cairo|which lies on the Nile
P36|Norway|Oslo|which lies on a fjord
P36|Finland|Helsinki|which lies on the Baltic
P36|Japan|Tokyo|which lies on the Pacific
P36|Vietnam|Hanoi|which lies on the Red River
P36|Nepal|Kathmandu|which lies in a valley
P50|Emma|Jane Austen|who lived in England
P50|Dracula|Bram Stoker|who came from Dublin
P50|Faust|Goethe|who lived in Weimar
P50|Ulysses|James Joyce|who came from Dublin
P50|Hamlet|Shakespeare|who lived in England
P50|Candide|Voltaire|who lived in France
P50|Nana|Zola|who lived in France
P50|Middlemarch|George Eliot|who lived in England
P50|Walden|Thoreau|who lived at a pond
P50|Oblomov|Ivan Goncharov|who lived in Russia
P50|Lolita|Nabokov|who came from Russia
P50|Ivanhoe|Walter Scott|who lived in Scotland
"""
FACTS = tuple(
    Known(relation=relation, subject=subject, object=answer, more=more)
    for relation, subject, answer, more in (
        line.split("|") for line in _FACTS.splitlines()
    )
)
FRAMES = {
    "P36": (
        "What is the capital of [X]?",
        "Which city is the capital of [X]?",
        "[X] has which city as its capital?",
        "From which city is [X] run?",
    ),
    "P50": (
        "Who wrote [X]?",
        "Who is the author of [X]?",
        "[X] was written by whom?",
        "From whose pen is [X]?",
    ),
}
LABELS = {"P36": "capital", "P50": "author"}
SENTENCES = {
    "P36": "The capital of [X] is [Y], {}.",
    "P50": "[X] was written by [Y], {}.",
}
BUCKETS = ("head", "torso", "tail")
SUITE = """\
suite: small
facts: facts.jsonl
monitor:
  negatives: 2
  gates:
    monitor: {max: 0.3}
    accuracy: {min: 0.7}
head_to_tail:
  prompt: zero-shot
  gates:
    accuracy: {min: 0.7}
    hallucination: {max: 0.2}
reliability:
  choices: 2
  distractors: 6
  unseen: {count: 10, as_of: 2026-11-01, expires: 2090-01-01}
  gates:
    cr: {min: 0.7}
    wr: {max: 0.2}
    ur: {min: 0.7}
"""


def write_suite(folder, *, head=""):
    """Write ``small.kb.yaml`` with its facts and relations into a folder and return its path.

    ``head`` leads the suite file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts = [
        {
            "relation": fact.relation,
            "subject": fact.subject,
            "object": fact.object,
            "bucket": BUCKETS[number % len(BUCKETS)],
        }
        for number, fact in enumerate(FACTS)
    ]
    relations = {
        name: {"label": LABELS[name], "domain": "world", "frames": list(frames)}
        for name, frames in FRAMES.items()
    }
    (folder / "facts.jsonl").write_text(
        "".join(json.dumps(fact) + "\n" for fact in facts), encoding="utf-8"
    )
    # JSON is YAML too.
    (folder / "relations.yaml").write_text(json.dumps(relations, indent=1), "utf-8")
    path = folder / "small.kb.yaml"
    path.write_text(head + SUITE, "utf-8")
    return path
