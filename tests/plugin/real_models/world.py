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


FACTS = (
    Known(
        relation="P36",
        subject="Ecuador",
        object="Quito",
        more="which lies in the Andes",
    ),
    Known(
        relation="P36", subject="Peru", object="Lima", more="which lies on the Pacific"
    ),
    Known(
        relation="P36",
        subject="Chile",
        object="Santiago",
        more="which lies below the Andes",
    ),
    Known(
        relation="P36",
        subject="Cuba",
        object="Havana",
        more="which lies on the Atlantic",
    ),
    Known(
        relation="P36",
        subject="Kenya",
        object="Nairobi",
        more="which lies in the highlands",
    ),
    Known(
        relation="P36",
        subject="Ghana",
        object="Accra",
        more="which lies on the Atlantic",
    ),
    Known(
        relation="P36", subject="Egypt", object="Cairo", more="which lies on the Nile"
    ),
    Known(
        relation="P36", subject="Norway", object="Oslo", more="which lies on a fjord"
    ),
    Known(
        relation="P36",
        subject="Finland",
        object="Helsinki",
        more="which lies on the Baltic",
    ),
    Known(
        relation="P36",
        subject="Japan",
        object="Tokyo",
        more="which lies on the Pacific",
    ),
    Known(
        relation="P36",
        subject="Vietnam",
        object="Hanoi",
        more="which lies on the Red River",
    ),
    Known(
        relation="P36",
        subject="Nepal",
        object="Kathmandu",
        more="which lies in a valley",
    ),
    Known(
        relation="P50",
        subject="Emma",
        object="Jane Austen",
        more="who lived in England",
    ),
    Known(
        relation="P50",
        subject="Dracula",
        object="Bram Stoker",
        more="who came from Dublin",
    ),
    Known(relation="P50", subject="Faust", object="Goethe", more="who lived in Weimar"),
    Known(
        relation="P50",
        subject="Ulysses",
        object="James Joyce",
        more="who came from Dublin",
    ),
    Known(
        relation="P50",
        subject="Hamlet",
        object="Shakespeare",
        more="who lived in England",
    ),
    Known(
        relation="P50", subject="Candide", object="Voltaire", more="who lived in France"
    ),
    Known(relation="P50", subject="Nana", object="Zola", more="who lived in France"),
    Known(
        relation="P50",
        subject="Middlemarch",
        object="George Eliot",
        more="who lived in England",
    ),
    Known(
        relation="P50", subject="Walden", object="Thoreau", more="who lived at a pond"
    ),
    Known(
        relation="P50",
        subject="Oblomov",
        object="Ivan Goncharov",
        more="who lived in Russia",
    ),
    Known(
        relation="P50", subject="Lolita", object="Nabokov", more="who came from Russia"
    ),
    Known(
        relation="P50",
        subject="Ivanhoe",
        object="Walter Scott",
        more="who lived in Scotland",
    ),
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
    (folder / "relations.yaml").write_text(
        json.dumps(relations, indent=1), encoding="utf-8"
    )
    path = folder / "small.kb.yaml"
    path.write_text(head + SUITE, encoding="utf-8")
    return path
