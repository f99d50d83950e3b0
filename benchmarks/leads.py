"""Compare leads of MONITOR's relations on real models: where is the answer that a model knows its choice?

    python benchmarks/leads.py MODEL [--model-args ARGS] [--chat] [--half 0|1] [--contexts]

A fact is known if the model's answer to the bare question (behind two examples, without a chat template) is
right. Printed for each relation and lead: of how many known facts the first token behind the lead is the
model's choice, the area under the curve of the mean probability (known against unknown facts), and that
probability of known facts; with ``--contexts`` also behind a right and a wrong context. ``-`` is the question
without a lead. Leads are chosen on one half of the facts, and confirmed on the other. ``--candidates FILE.yaml``
lists more leads: ``P36: ["The capital city of [X] is"]``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from pytest_kbrel.facts.files import read_relations
from pytest_kbrel.facts.readers import read_jsonl
from pytest_kbrel.facts.readers.base import Relations
from pytest_kbrel.judges.rules import judge
from pytest_kbrel.models import registry
from pytest_kbrel.models.base import Model
from pytest_kbrel.probes.base import score_request
from pytest_kbrel.probes.prompts import LEAD_QUESTION, fill, template, with_context
from pytest_kbrel.records import (
    ANSWER_CUE,
    Fact,
    Generated,
    GenerateRequest,
    Relation,
    Scored,
)

SUITE = Path("suites/world")
SHOTS = (
    ("Which planet is closest to the Sun?", "Mercury"),
    ("What is the largest ocean?", "Pacific"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--model-args", default="")
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--facts", type=int, default=40)
    parser.add_argument("--half", type=int, choices=(0, 1), default=0)
    parser.add_argument("--relations", default="")
    parser.add_argument("--candidates", type=Path)
    parser.add_argument("--contexts", action="store_true")
    options = parser.parse_args()
    contexts = ("", "right", "wrong") if options.contexts else ("",)
    more = yaml.safe_load(options.candidates.read_text()) if options.candidates else {}
    spec = registry.read_spec(
        options.model,
        options.model_args,
        device="cpu",
        dtype="float32",
        batch_size="auto",
        chat_template=options.chat,
    )
    model = registry.open_model(spec, threads=None)
    facts = list(_facts())
    totals: dict[str, list[tuple[int, int, float]]] = {}
    for relation in read_relations(SUITE / "relations.yaml"):
        if options.relations and relation.id not in options.relations.split(","):
            continue
        drawn = _drawn(facts, relation, options.facts, options.half)
        known = _known(model, relation, drawn, options.chat)
        print(f"{relation.id} known {sum(known)} of {len(drawn)}")
        leads = dict.fromkeys(
            ["-", *filter(None, [relation.lead]), *more.get(relation.id, ())]
        )
        for lead in leads:
            cells = []
            for context in contexts:
                first, area, mean = _measured(
                    model, drawn, known, relation, lead, context, options.chat
                )
                cells.append(f"{first:3d} {area:.2f} {mean:.2f}")
                if not context and lead in ("-", relation.lead):
                    totals.setdefault("without" if lead == "-" else "with", []).append(
                        (first, sum(known), area)
                    )
            print(f"   {lead:50} {'   '.join(cells)}", flush=True)
    for name, rows in totals.items():
        areas = [area for _, _, area in rows if area == area]
        print(
            f"{name}: first token of {sum(row[0] for row in rows)} of {sum(row[1] for row in rows)} known, AUC {sum(areas) / max(len(areas), 1):.3f}"
        )


def _facts() -> Iterator[Fact]:
    for row in read_jsonl(SUITE / "facts.jsonl", Relations()):
        if row.fact is not None:
            yield row.fact


def _drawn(
    facts: Sequence[Fact], relation: Relation, count: int, half: int
) -> list[Fact]:
    own = sorted(
        (fact for fact in facts if fact.relation == relation.id),
        key=lambda fact: fact.id,
    )
    random.Random(7).shuffle(own)
    return own[half::2][:count]


def _request(question: str, lead: str, chat: bool) -> GenerateRequest:
    if lead == "-":
        return GenerateRequest(prompt=question, max_new_tokens=10)
    if chat:
        return GenerateRequest(prompt=question, max_new_tokens=10, lead=lead)
    return GenerateRequest(
        prompt=f"{template(LEAD_QUESTION, ANSWER_CUE).question(question)} {lead}",
        max_new_tokens=10,
    )


def _known(
    model: Model, relation: Relation, facts: Sequence[Fact], chat: bool
) -> list[bool]:
    around = template("{examples}\n\nQuestion: {question}", ANSWER_CUE)
    asked = [fill(relation.frames[0], fact.subject) for fact in facts]
    prompts = asked if chat else [around.in_text(question, SHOTS) for question in asked]
    answers = model.generate(
        [GenerateRequest(prompt=prompt, max_new_tokens=32) for prompt in prompts]
    )
    return [
        isinstance(answer, Generated)
        and judge(answer.text, fact.accepted, question).label == "correct"
        for fact, question, answer in zip(facts, asked, answers, strict=True)
    ]


def _measured(
    model: Model,
    facts: Sequence[Fact],
    known: Sequence[bool],
    relation: Relation,
    lead: str,
    context: str,
    chat: bool,
) -> tuple[int, float, float]:
    draws = random.Random(3)
    requests = []
    for fact in facts:
        question = fill(relation.frames[0], fact.subject)
        others = sorted({one.object or "" for one in facts} - set(fact.accepted))
        name = (
            (fact.object or "") if context == "right" else draws.choice(others or [""])
        )
        if context:
            question = with_context(name, question)
        requests.append(_request(question, fill(lead, fact.subject), chat))
    texts = model.generate(requests)
    scores = model.score(
        [
            score_request(one, fact.object or "")
            for one, fact in zip(requests, facts, strict=True)
        ]
    )
    first, of_known, of_others = 0, [], []
    for text, score, is_known in zip(texts, scores, known, strict=True):
        assert isinstance(text, Generated), text
        assert isinstance(score, Scored), score
        first += is_known and score.token_ids[0] in text.token_ids[:1]
        (of_known if is_known else of_others).append(
            sum(score.probabilities) / len(score.probabilities)
        )
    wins = sum((a > b) + (a == b) / 2 for a in of_known for b in of_others)
    pairs = len(of_known) * len(of_others)
    return (
        first,
        wins / pairs if pairs else float("nan"),
        sum(of_known) / max(len(of_known), 1),
    )


if __name__ == "__main__":
    main()
