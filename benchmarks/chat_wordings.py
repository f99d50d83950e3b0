"""How many questions a model answers right in each form that a prompt may have.

    python benchmarks/chat_wordings.py ./model --model-args=apply_chat_template=True
    python benchmarks/chat_wordings.py reference

The questions are so many of each relation of the world suite, drawn by seed, half of them about its most
popular third, and its unanswerable ones. They are split in two halves: choose on one, confirm on the other.
Rules judge the first line of each answer.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.judges.rules import judge
from pytest_kbrel.models.registry import open_model, read_spec
from pytest_kbrel.printing import format_table
from pytest_kbrel.probes import prompts
from pytest_kbrel.records import Fact, Failed, GenerateRequest, Relation
from pytest_kbrel.suites import load_suite

SUITE = Path(__file__).parents[1] / "suites" / "world.kb.yaml"
TOKENS = 32
BRIEF, SHORT = (
    prompts.CHAT_INSTRUCTIONS[name] for name in ("head_to_tail", "reliability")
)
SHOTS = prompts.BRIEF_SHOTS


def _text(text: str, shots: prompts.Examples = ()) -> Callable[[str], dict[str, Any]]:
    return lambda question: {"prompt": prompts.template(text).in_text(question, shots)}


FORMS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "question": lambda question: {"prompt": question},
    "question, system brief": lambda question: {"prompt": question, "system": BRIEF},
    "question, system short": lambda question: {"prompt": question, "system": SHORT},
    "brief and question": lambda question: {"prompt": f"{BRIEF}\n\n{question}"},
    "turns": lambda question: {"prompt": question, "turns": SHOTS},
    "turns, system brief": lambda question: {
        "prompt": question,
        "turns": SHOTS,
        "system": BRIEF,
    },
    "few-shot, head_to_tail": _text(prompts.BRIEF, SHOTS),
    "few-shot, reliability": _text(prompts.QA, SHOTS),
    "zero-shot, head_to_tail": _text(prompts.BRIEF),
    "zero-shot, reliability": _text(prompts.QA),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--model-args", default="")
    parser.add_argument("--facts", type=int, default=20, help="of each relation")
    given = parser.parse_args(arguments)
    asked = questions(given.facts)
    model = open_model(read_spec(given.model, given.model_args))
    rows = [["form", "right", "halves", "wrong", "unsure", "unsure, unseen", "cut"]]
    for name, form in FORMS.items():
        answers = model.generate(
            [
                GenerateRequest(max_new_tokens=TOKENS, **form(question))
                for question, _ in asked
            ]
        )
        counts: Counter[object] = Counter()
        for at, ((question, fact), answer) in enumerate(
            zip(asked, answers, strict=True)
        ):
            if isinstance(answer, Failed):
                raise SystemExit(f"{fact.id}: {answer.error}")
            label = judge(answer.text, fact.accepted, question).label
            counts[bool(fact.accepted), label] += 1
            counts["half", at % 2] += label == "correct"
            counts["cut"] += answer.finish == "length"
        rows.append(
            [
                name,
                str(counts[True, "correct"]),
                f"{counts['half', 0]}, {counts['half', 1]}",
                str(counts[True, "wrong"]),
                str(counts[True, "uninformative"]),
                str(counts[False, "uninformative"]),
                str(counts["cut"]),
            ]
        )
    print("\n".join(format_table(rows)))
    model.close()
    return 0


def questions(count: int) -> list[tuple[str, Fact]]:
    """Return the questions with their facts: ``count`` of each relation, and 80 without an answer."""
    rng = random.Random("wordings")
    facts: dict[str, dict[str, Fact]] = {}
    relations: dict[str, Relation] = {}
    unseen: list[Fact] = []
    for case in load_suite(SUITE).cases:
        relations |= {relation.id: relation for relation in case.relations}
        for fact in case.facts:
            if fact.object is not None:
                facts.setdefault(fact.relation, {})[fact.id] = fact
            elif not unseen or fact.id != unseen[-1].id:
                unseen.append(fact)
    chosen: list[Fact] = []
    for name in sorted(facts):
        ranked = sorted(
            facts[name].values(), key=lambda fact: (-(fact.popularity or 0), fact.id)
        )
        third = len(ranked) // 3
        drawn = rng.sample(ranked[:third], count // 2)
        drawn += rng.sample(ranked[third:], count - count // 2)
        chosen += rng.sample(drawn, len(drawn))
    chosen += rng.sample(unseen, 80)
    return [(fact.questions(relations.get(fact.relation))[0], fact) for fact in chosen]


if __name__ == "__main__":
    raise SystemExit(main())
