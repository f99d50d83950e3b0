"""Hand-made answers in ten languages; half of them were written after the rules."""

import csv
from pathlib import Path

import pytest

from pytest_kbrel.judges.rules import judge

# "Written with Cyrillic letters" without a space before the verb, and a vowel that Hindi writes in two ways.
KNOWN = {"俄语用西里尔文书写。", "जोर्डन"}


def rows() -> list[list[str]]:
    text = Path(__file__).with_name("languages.tsv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("language", sorted({row[1] for row in rows()}))
def test_answers_are_judged_as_a_speaker_does(language: str) -> None:
    failed = {
        answer
        for _, of, label, question, accepted, answer in rows()
        if of == language
        and label
        != judge(
            answer, [*filter(None, accepted.split("|"))], question, language=language
        ).label
    }

    assert failed == KNOWN & {row[-1] for row in rows() if row[1] == language}
