from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.files import read_shots
from pytest_kbrel.records import Shot


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "shots.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_examples(tmp_path: Path) -> None:
    text = '{"question": "Who wrote Emma?", "answer": "Jane Austen", "subject": "Emma"}\n\n'
    text += '{"question": "Who won in 2041?", "answer": null, "valid_until": "2041-01-01"}\n'
    assert read_shots(written(tmp_path, text)) == (
        Shot(question="Who wrote Emma?", answer="Jane Austen", subject="Emma"),
        Shot(question="Who won in 2041?", answer=None, valid_until="2041-01-01"),
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, ("no examples found", '{"question"')),
        ("nonsense\n", 1, ("not JSON", "'nonsense'")),
        ("[1]\n", 1, ("not a JSON object", "found a list")),
        ('\n{"question": "Q?"}\n', 2, ("the key 'answer' is missing", "found: question")),
        ('{"question": "Q?", "answr": "A"}\n', 1, ("unknown key 'answr'", "did you mean 'answer'?")),
        ('{"question": "", "answer": "A"}\n', 1, ("'question' must be text of one line", "found ''")),
        ('{"question": "Q?", "answer": 3}\n', 1, ("'answer' must be text", "or null", "found 3")),
        (
            '{"question": "Q?", "answer": null, "valid_until": "2041"}\n',
            1,
            ("'valid_until' must be a date such as", "found '2041'"),
        ),
        (
            '{"question": "Q?", "answer": "A", "valid_until": "2041-01-01"}\n',
            1,
            ("'valid_until' is for examples without an answer",),
        ),
        ('{"question": "Q?", "answer": "A"}\n' * 2, 2, ("stands twice", "the first is on line 1")),
    ],
)
def test_a_wrong_line_says_where_and_what(
    tmp_path: Path, text: str, line: int, words: tuple[str, ...]
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SuiteError) as caught:
        read_shots(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="cannot be read"):
        read_shots(tmp_path)
