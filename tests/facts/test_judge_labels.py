"""Files of labelled answers: what is read of them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.judge_labels import LabelledAnswer, read_labels

LIMA = {
    "question": "What is the capital of Peru?",
    "answers": ["Lima"],
    "prediction": "It is Lima.",
}


def rows(right: int = 20, wrong: int = 20) -> list[dict[str, object]]:
    labels = ["right"] * right + ["wrong"] * wrong
    return [
        {**LIMA, "prediction": f"Lima {number}", "label": label}
        for number, label in enumerate(labels)
    ]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "labels.jsonl"


def write(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    return path


def test_answers_are_read_with_their_labels(written: Path) -> None:
    first = {
        "id": 7,
        "language": "de",
        "slice": "x",
        **rows()[0],
        "answers": ["Lima", "Ciudad de los Reyes"],
    }
    missing = {
        **LIMA,
        "answers": "Lima",
        "prediction": "I do not know",
        "label": "missing",
    }
    labels = read_labels(write(written, [first, *rows()[1:], missing]))
    assert len(labels) == 41
    assert labels[0] == LabelledAnswer(
        question=LIMA["question"],  # type: ignore[arg-type]
        answers=("Lima", "Ciudad de los Reyes"),
        prediction="Lima 0",
        right=True,
        language="de",
    )
    assert [label.right for label in labels] == [True] * 20 + [False] * 21
    assert labels[-1].answers == ("Lima",)


def test_a_table_is_read_alike(tmp_path: Path) -> None:
    lines = ["question,answers,prediction,label"]
    lines += [
        f'"Which, then?","[""Lima"", ""Lima City""]","Lima, {n}",right'
        for n in range(20)
    ]
    lines += [f"Which?,Lima,Cusco {n},wrong" for n in range(20)] + [
        "Which?,Lima,,missing"
    ]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    labels = read_labels(tmp_path / "labels.csv")
    assert (labels[0].question, labels[0].answers) == (
        "Which, then?",
        ("Lima", "Lima City"),
    )
    assert (labels[-1].prediction, labels[-1].right) == ("", False)
    assert (labels[20].answers, labels[20].prediction, labels[20].right) == (
        ("Lima",),
        "Cusco 0",
        False,
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"label": "rigth"},
            r":41: 'label' must be right, wrong, missing, found 'rigth'; did you mean 'right'\?",
        ),
        ({"label": 1}, r":41: 'label' must be right, wrong, missing, found 1$"),
        (
            {},
            r":41: the key 'label' is missing; found: question, answers, prediction; needed: question, ",
        ),
        (
            {"label": "right", "answers": []},
            r":41: 'answers' must have an accepted answer",
        ),
        (
            {"label": "right", "prediction": 3},
            r":41: 'prediction' must be text, found 3",
        ),
        (
            {"label": "right", "question": " "},
            r":41: 'question' must be text or a number",
        ),
        (
            {"label": "right", "language": "German"},
            r":41: 'language' must be a language tag",
        ),
        (
            {"label": "wrong", "prediction": "Lima 4"},
            r":41: the same answer stands on line 5, .*each answer once",
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_named(
    written: Path, row: dict[str, object], message: str
) -> None:
    with pytest.raises(SuiteError, match=message):
        read_labels(write(written, [*rows(), {**LIMA, **row}]))


@pytest.mark.parametrize(("right", "wrong"), [(19, 50), (50, 19), (20, 0)])
def test_fewer_than_twenty_labels_of_either_kind_are_refused(
    written: Path, right: int, wrong: int
) -> None:
    with pytest.raises(
        SuiteError,
        match=rf"found {right} answers labelled right and {wrong} .* at least 20 of each",
    ):
        read_labels(write(written, rows(right, wrong)))


def test_a_table_whose_labels_or_header_are_missing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("question,answers,prediction,label\nWhich?,Lima,Lima,\n")
    with pytest.raises(
        SuiteError, match=r":2: 'label' must be right, wrong, missing, found ''"
    ):
        read_labels(path)
    path.write_text("question,answers,prediction\nWhich?,Lima,Lima\n")
    with pytest.raises(SuiteError, match=r":2: the key 'label' is missing"):
        read_labels(path)
    path.write_bytes(b"question,\xff\nWhich?,Lima\n")
    with pytest.raises(SuiteError, match=r":1: not UTF-8"):
        read_labels(path)


def test_a_file_that_is_not_there_or_no_json_is_refused(written: Path) -> None:
    with pytest.raises(SuiteError, match="cannot be read: No such file"):
        read_labels(written)
    written.write_text("question;answers\n")
    with pytest.raises(
        SuiteError, match=r":1: not JSON: .*a file of labels has one JSON object a line"
    ):
        read_labels(written)
