"""How far the rules agree with a human, beside exact match and containment.

    python benchmarks/human_check.py qa_human_check.json
    python benchmarks/human_check.py qa_human_check.json --disagreements

The file is the human check of TrustScore (github.com/dannalily/TrustScore, MIT): a list of {"question",
"answers"} and for each model {"pred", "human_eval": "0" or "1"}. For other forms: ``kbrel judge --human``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.judges.agreement import Agreement
from pytest_kbrel.judges.rules import judge
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import Label

Judge = Callable[[str, Sequence[str], str], Label]


def main() -> None:
    """Print a table for each model, and a line for each way of matching."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--disagreements", action="store_true", help="print each answer judged otherwise")
    given = parser.parse_args()
    rows = json.loads(given.path.read_text(encoding="utf-8"))
    models = [key for key, value in rows[0].items() if isinstance(value, dict)]
    for model in models:
        print(f"{model}, rules")
        print(agreement_of(rows, model, by_rules).table())
        for name, other in (("exact match", exact), ("containment", contained)):
            print(f"{name}: {agreement_of(rows, model, other).table().splitlines()[-1]}")
        print()
    if given.disagreements:
        for model in models:
            print(*disagreements(rows, model), sep="\n")


def by_rules(prediction: str, answers: Sequence[str], question: str) -> Label:
    """Judge as a run does."""
    return judge(prediction, answers, question).label


def exact(prediction: str, answers: Sequence[str], question: str) -> Label:
    """Judge by equality after normalisation."""
    return "correct" if normalise(prediction) in map(normalise, answers) else "wrong"


def contained(prediction: str, answers: Sequence[str], question: str) -> Label:
    """Judge by whether an accepted answer stands in the prediction as whole words."""
    said = f" {normalise(prediction)} "
    return "correct" if any(f" {normalise(answer)} " in said for answer in answers) else "wrong"


def agreement_of(rows: Sequence[dict[str, Any]], model: str, judge_by: Judge) -> Agreement:
    """Count one model's answers by the human's verdict and by the judge's."""
    agreement = Agreement()
    for row in rows:
        label = judge_by(row[model]["pred"], row["answers"], row["question"])
        agreement.add(row[model]["human_eval"] == "1", label)
    return agreement


def disagreements(rows: Sequence[dict[str, Any]], model: str) -> Iterator[str]:
    """Yield a line for each answer that the rules and the human judge otherwise."""
    for row in rows:
        found = judge(row[model]["pred"], row["answers"], row["question"])
        if (found.label == "correct") != (row[model]["human_eval"] == "1"):
            human = "right" if row[model]["human_eval"] == "1" else "wrong"
            golds = " | ".join(row["answers"][:4])
            print_row = (model, f"human {human}", found.rule, row["question"], golds, row[model]["pred"])
            yield "; ".join(print_row)


if __name__ == "__main__":
    main()
