from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.files import read_relations
from pytest_kbrel.records import Relation

TOP = "P36:\n  label: capital\n  domain: geography\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "relations.yaml"
    path.write_text(text, "utf-8")
    return path


def test_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        TOP
        + '  frames: ["Capital of [X]?", "[X]?"]\n  statements: ["[Y] is in [X]."]\n'
        + "A1: {label: b, domain: c}\n"
    )
    assert read_relations(write(tmp_path, text)) == (
        Relation(
            id="P36",
            label="capital",
            domain="geography",
            frames=("Capital of [X]?", "[X]?"),
            statements=("[Y] is in [X].",),
        ),
        Relation(id="A1", label="b", domain="c", frames=()),
    )


def test_an_empty_list_of_frames_is_none(tmp_path: Path) -> None:
    plain = Relation(id="P36", label="capital", domain="geography", frames=())
    assert read_relations(write(tmp_path, TOP + "  frames: []\n  statements: []\n")) == (plain,)


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ("- P36\n", 1, ("a relations file must be a mapping", "found a list")),
        ("{}\n", 1, ("at least one relation", "found an empty mapping")),
        ("P36: capital\n", 1, ("relation P36 must be a mapping", "found 'capital'")),
        (
            "P36:\n  label: x\n",
            2,
            ("relation P36 lacks the key 'domain'", "found: label", "needed: label, domain"),
        ),
        (TOP + "  frame: [a]\n", 4, ("unknown key 'frame' in relation P36", "did you mean 'frames'?")),
        (TOP.replace("geography", "a-b"), 3, ("domain must be ASCII letters", "found 'a-b'")),
        (TOP.replace("P36", '"Zü"'), 1, ("ASCII letters", "found 'Zü'")),
        (TOP + TOP, 4, ("key 'P36' stands twice", "line 1")),
        ("1: {label: x, domain: y}\n", 1, ("a key must be text, found 1", "quotes")),
        (TOP + "  frames: What of [X]?\n", 4, ("must be a list", "found 'What of [X]?'")),
        (
            TOP + "  frames:\n    - a [X]\n    - b\n",
            6,
            ("must contain [X] exactly once, found 0 times in 'b'",),
        ),
        (TOP + "  frames:\n    - a [X] [X]\n", 5, ("[X] exactly once, found 2 times",)),
        (TOP + "  frames:\n    - a [X] [Y]\n", 5, ("[Y] nowhere, found 1 times",)),
        (
            TOP + "  frames:\n    - a [X]\n    - a [X]\n",
            6,
            ("must differ", "found 'a [X]' again from line 5"),
        ),
        (TOP + "  statements:\n    - a [X]\n", 5, ("[Y] exactly once, found 0 times",)),
        (TOP + "  frames:\n    - 5\n", 5, ("text", "found 5")),
    ],
)
def test_errors(text: str, line: int, parts: tuple[str, ...], tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SuiteError) as caught:
        read_relations(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    for part in parts:
        assert part in str(caught.value)
