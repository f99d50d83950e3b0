from __future__ import annotations

import json

import pytest

from pytest_kbrel.cli import main

ROWS = [
    {
        "id": 1,
        "question": "What is the capital of Peru?",
        "answers": ["Lima"],
        "prediction": "It is Lima.",
        "hum": 1,
    },
    {
        "id": "b",
        "question": "How many moons has Mars?",
        "answers": [2, "two"],
        "prediction": 2,
        "hum": "correct",
    },
    {
        "question": "Who was it?",
        "answers": ["Ann Lee"],
        "prediction": "Bob Lee",
        "hum": "0",
        "more": {"é": [1]},
    },
    {
        "question": "Who was it?",
        "answers": ["Ann Lee"],
        "prediction": "I pass",
        "hum": False,
    },
    {"question": "Who was it?", "answers": [], "prediction": None, "hum": "wrong"},
]


@pytest.fixture
def judged(tmp_path):
    """Return a function that runs the command on rows: (exit code, rows written or None)."""
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"

    def run(rows, *more):
        lines = [
            row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
            for row in rows
        ]
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        code = main(["judge", str(source), "--output", str(target), *map(str, more)])
        written = (
            target.read_text(encoding="utf-8").splitlines() if target.exists() else None
        )
        return code, None if written is None else [json.loads(line) for line in written]

    return run


def test_each_row_gets_a_verdict_and_keeps_what_it_had(judged, capsys, tmp_path):
    code, rows = judged(ROWS)
    assert code == 0
    assert [(row["verdict"], row["rule"]) for row in rows] == [
        ("correct", "contained"),
        ("correct", "equal"),
        ("wrong", "no rule"),
        ("wrong", "no rule"),
        ("uninformative", "none"),
    ]
    assert [
        {key: row[key] for key in given} for row, given in zip(rows, ROWS, strict=True)
    ] == ROWS
    assert (
        "5 predictions: 2 correct, 2 wrong, 1 uninformative" in capsys.readouterr().out
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_a_range_of_numbers_decides(judged, capsys):
    row = {
        "question": "How many?",
        "answers": ["120,000"],
        "answer_range": [118000, 122000],
    }
    code, rows = judged(
        [{**row, "prediction": text} for text in ("119k", "117,000", "120,000")]
    )
    assert code == 0
    assert [(row["verdict"], row["rule"]) for row in rows] == [
        ("correct", "range"),
        ("wrong", "range"),
        ("correct", "equal"),
    ]
    for broken, error in (
        ({"answer_range": [2, 1]}, "found [2, 1]"),
        ({"answers": []}, "no 'answers'"),
    ):
        code, _ = judged([{**row, "prediction": "1", **broken}], "--force")
        assert code == 2
        assert error in capsys.readouterr().err


def test_a_users_patterns_count(judged, tmp_path):
    extra = tmp_path / "more.yaml"
    extra.write_text("unsure:\n  - i pass\n", encoding="utf-8")
    _, rows = judged(ROWS, "--uninformative", extra)
    assert (rows[3]["verdict"], rows[3]["rule"]) == ("uninformative", "unsure")


def test_a_row_may_say_its_language(judged, capsys):
    row = {
        "question": "Wie heißt die Hauptstadt von Peru?",
        "answers": ["Lima"],
        "prediction": "Die Hauptstadt ist nicht Lima.",
    }
    code, result = judged([row, {**row, "language": "de"}, {**row, "language": "sw"}])
    assert code == 0
    assert [one["verdict"] for one in result] == ["correct", "wrong", "correct"]
    output = capsys.readouterr().out
    assert (
        "1 of them in 'sw', for which there are no rules: judged by those for English; known are en, ar"
        in output
    )


def test_a_humans_verdicts_are_held_against_the_rules(judged, capsys):
    assert judged(ROWS, "--human", "hum")[0] == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "sensitivity 1.000 [0.342, 1.000]: right answers called right, 2 labels",
        "specificity 1.000 [0.439, 1.000]: others not called right, 3 labels",
    ]
    assert judged(ROWS[:2], "--human", "hum", "--force")[0] == 0
    assert "specificity" not in capsys.readouterr().out


GOOD = ROWS[0]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object: found an empty list"),
        (
            {"question": "q", "answers": []},
            "the key 'prediction' is missing; found: question, answers",
        ),
        (
            {"question": "q", "answer": ["a"], "prediction": "p"},
            "did you mean 'answer'?",
        ),
        (
            {**GOOD, "answers": "Lima"},
            "'answers' must be a list of texts, found 'Lima'",
        ),
        (
            {**GOOD, "answers": [None]},
            "'answers' must be texts or numbers, found nothing",
        ),
        ({**GOOD, "answers": [True]}, "found true"),
        (
            {**GOOD, "answers": [" "]},
            "each of 'answers' must say something, found a blank one",
        ),
        ({**GOOD, "question": ["q"]}, "'question' must be text, found a list"),
        (
            {**GOOD, "prediction": {}},
            "'prediction' must be text, found an empty mapping",
        ),
        ({**GOOD, "verdict": "correct"}, "the key 'verdict' is there already"),
    ],
)
def test_a_broken_row_is_named_with_its_line_and_nothing_is_written(
    judged, capsys, row, error, tmp_path
):
    assert judged([GOOD, "", row, GOOD]) == (2, None)
    message = capsys.readouterr().err
    assert "in.jsonl:3: " in message
    assert error in message
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({**GOOD, "hum": "maybe"}, "'hum' must be 0 or 1"),
        ({"hun": 1} | dict(list(GOOD.items())[:4]), "'hun'"),
    ],
)
def test_a_missing_or_strange_human_verdict_is_named(judged, capsys, row, error):
    assert judged([GOOD, row], "--human", "hum") == (2, None)
    message = capsys.readouterr().err
    assert "in.jsonl:2: " in message
    assert error in message


def test_an_empty_file_is_no_file_of_predictions(judged, capsys):
    assert judged([""]) == (2, None)
    assert "no predictions found" in capsys.readouterr().err


def test_what_is_there_is_replaced_only_when_told_to(judged, capsys):
    assert judged(ROWS)[0] == 0
    code, rows = judged(ROWS[:1])
    assert (code, len(rows)) == (2, 5)
    assert "exists already" in capsys.readouterr().err
    code, rows = judged(ROWS[:1], "--force")
    assert (code, len(rows)) == (0, 1)
    # A failure leaves the old file.
    assert judged(["{"], "--force")[0] == 2
    assert len(judged(["{"], "--force")[1]) == 1
