"""How far the rules agree with a human, beside exact match and containment.

    python benchmarks/human_check.py qa_human_check.json
    python benchmarks/human_check.py NQ.json TQ.json --half second --without qa_human_check.json
    python benchmarks/human_check.py NQ.json --half first --disagreements

Three forms of files are read. The human check of TrustScore (github.com/dannalily/TrustScore, MIT): a list of
{"question", "answers"} and for each model {"pred", "human_eval": "0" or "1"}. EVOUNA
(github.com/wangcunxiang/QA-Eval, Apache-2.0): a list of {"question", "golden_answer"} with its answers parted
by "/", for each model "answer_MODEL" and "judge_MODEL", and "improper" for questions that are left out. The
test set of EfficientQA (github.com/google-research-datasets/natural-questions, CC BY-SA 3.0): a line for each
question with "answer", "def_correct_predictions" and "def_incorrect_predictions"; what is possibly correct is
left out. For other forms: ``kbrel judge --human``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kbrel.judges.rules import judge
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.printing import format_table
from pytest_kbrel.records import Label
from pytest_kbrel.stats.intervals import wilson

Judge = Callable[[str, Sequence[str], str], Label]


_LABELS: Sequence[Label] = ("correct", "uninformative", "wrong")


class Agreement(Counter[tuple[bool, Label]]):
    """Counts of answers by (whether a human calls them right, the judge's label)."""

    @property
    def agreeing(self) -> int:
        """The number of answers that both call right, or neither."""
        return sum(
            n for (human, label), n in self.items() if human == (label == "correct")
        )

    @property
    def wrong(self) -> int:
        """The number of answers that the human calls wrong."""
        return sum(n for (human, _), n in self.items() if not human)

    @property
    def called_right(self) -> int:
        """The number of wrong answers that the judge calls right."""
        return self[False, "correct"]

    def table(self) -> str:
        """Return the counts as text of four lines, with a line of shares below where there is an answer."""
        rows: list[list[str]] = [["", *_LABELS]]
        for human, name in ((True, "human: correct"), (False, "human: wrong")):
            rows.append([name, *(str(self[human, label]) for label in _LABELS)])
        lines = format_table(rows, least=(16, 13, 13, 13))
        if answers := self.total():
            share = f"agreement {self.agreeing / answers:.3f} ({self.agreeing} of {answers})"
            if self.wrong:
                missed = f"{self.called_right / self.wrong:.3f} ({self.called_right} of {self.wrong})"
                share += f", wrong answers called right {missed}"
            lines.append(share)
        return "\n".join(lines)


class Row(NamedTuple):
    """An answer of a model to a question, with a human's verdict."""

    model: str
    question: str
    answers: tuple[str, ...]
    prediction: str
    right: bool


def main() -> None:
    """Print a table for each model, and a line for each way of matching."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("paths", type=Path, nargs="+", metavar="path")
    parser.add_argument(
        "--half", choices=("first", "second"), help="only one half of the questions"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the halves (default: 0)"
    )
    parser.add_argument(
        "--without", type=Path, help="a file whose questions are left out"
    )
    parser.add_argument(
        "--disagreements",
        action="store_true",
        help="print each answer judged otherwise",
    )
    given = parser.parse_args()
    left_out = (
        {plain(row.question) for row in read(given.without)} if given.without else set()
    )
    rows = [
        row
        for path in given.paths
        for row in read(path)
        if plain(row.question) not in left_out
        and (not given.half or half_of(row.question, given.seed) == given.half)
    ]
    models = list(dict.fromkeys(row.model for row in rows))
    for model in [*models, *(["all"] if len(models) > 1 and given.half else [])]:
        own = [row for row in rows if model in (row.model, "all")]
        print(f"{model}, rules")
        agreement = agreement_of(own, by_rules)
        print(agreement.table())
        print(intervals(agreement))
        for name, other in (("exact match", exact), ("containment", contained)):
            print(f"{name}: {agreement_of(own, other).table().splitlines()[-1]}")
        print()
    if given.disagreements:
        print(*disagreements(rows), sep="\n")


def read(path: Path) -> Iterator[Row]:
    """Yield all answers of a file in one of the three forms, one model after the other."""
    text = path.read_text(encoding="utf-8")
    rows = (
        json.loads(text)
        if text.startswith("[")
        else [json.loads(line) for line in text.splitlines()]
    )
    if "golden_answer" in rows[0]:
        yield from _evouna(rows)
    elif "def_correct_predictions" in rows[0]:
        yield from _efficient_qa(rows)
    else:
        for model in (key for key, value in rows[0].items() if isinstance(value, dict)):
            for row in rows:
                right = row[model]["human_eval"] == "1"
                yield Row(
                    model,
                    row["question"],
                    tuple(row["answers"]),
                    row[model]["pred"],
                    right,
                )


def _evouna(rows: Sequence[dict[str, Any]]) -> Iterator[Row]:
    for key in (key for key in rows[0] if key.startswith("answer_")):
        model = key.removeprefix("answer_")
        for row in rows:
            right = row[f"judge_{model}"]
            if (
                not row["improper"]
                and row["golden_answer"]
                and row[key]
                and right is not None
            ):
                yield Row(
                    model,
                    row["question"],
                    tuple(row["golden_answer"].split("/")),
                    row[key],
                    right,
                )


def _efficient_qa(rows: Sequence[dict[str, Any]]) -> Iterator[Row]:
    for row in rows:
        for name, right in (
            ("def_correct_predictions", True),
            ("def_incorrect_predictions", False),
        ):
            for prediction in row[name]:
                yield Row(
                    "EfficientQA",
                    row["question"],
                    tuple(row["answer"]),
                    prediction,
                    right,
                )


def plain(question: str) -> str:
    """Return what tells a question from others, whatever its capitals and its question mark."""
    return normalise(question)


def half_of(question: str, seed: int) -> str:
    """Return the half that a question belongs to; all answers to it are in the same one."""
    digest = hashlib.sha256(f"{seed} {plain(question)}".encode()).digest()
    return "second" if digest[0] % 2 else "first"


def intervals(agreement: Agreement) -> str:
    """Return agreement, wrong answers accepted and right ones refused, with Wilson's interval of each."""
    answers = agreement.total()
    right = answers - agreement.wrong
    refused = answers - agreement.agreeing - agreement.called_right
    shares = (
        ("agreement", agreement.agreeing, answers),
        ("wrong accepted", agreement.called_right, agreement.wrong),
        ("right refused", refused, right),
    )
    texts = []
    for name, count, of in shares:
        if of:
            low, high = wilson(count, of)
            texts.append(f"{name} {count / of:.3f} [{low:.3f}, {high:.3f}]")
    return "95 % intervals: " + ", ".join(texts)


def by_rules(prediction: str, answers: Sequence[str], question: str) -> Label:
    """Judge as a run does."""
    return judge(prediction, answers, question).label


def exact(prediction: str, answers: Sequence[str], question: str) -> Label:
    """Judge by equality after normalisation."""
    return "correct" if normalise(prediction) in map(normalise, answers) else "wrong"


def contained(prediction: str, answers: Sequence[str], question: str) -> Label:
    """Judge by whether an accepted answer stands in the prediction as whole words."""
    words = f" {normalise(prediction)} "
    return (
        "correct"
        if any(f" {normalise(answer)} " in words for answer in answers)
        else "wrong"
    )


def agreement_of(rows: Sequence[Row], judge_by: Judge) -> Agreement:
    """Count answers by the human's verdict and by the judge's."""
    agreement = Agreement()
    for row in rows:
        agreement[row.right, judge_by(row.prediction, row.answers, row.question)] += 1
    return agreement


def disagreements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each answer that the rules and the human judge otherwise."""
    for row in rows:
        verdict = judge(row.prediction, row.answers, row.question)
        if (verdict.label == "correct") != row.right:
            human = "right" if row.right else "wrong"
            golds = " | ".join(row.answers[:4])
            print_row = (
                row.model,
                f"human {human}",
                verdict.rule,
                row.question,
                golds,
                row.prediction,
            )
            yield "; ".join(print_row)


if __name__ == "__main__":
    main()
