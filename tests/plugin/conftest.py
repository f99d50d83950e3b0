"""A suite small enough to run a real session over it in about a second."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.models.hf import load
from pytest_kbrel.models.spec import parse_spec
from pytest_kbrel.records import GenerateRequest, ScoreRequest

# Capitals the embedded checkpoint knows, with a popularity that makes all three buckets.
CAPITALS = (
    ("China", "Beijing", 70),
    ("India", "New Delhi", 26),
    ("United States", "Washington", 26),
    ("Russia", "Moscow", 48),
    ("Japan", "Tokyo", 40),
    ("Germany", "Berlin", 30),
    ("France", "Paris", 28),
    ("Italy", "Rome", 26),
    ("Spain", "Madrid", 24),
    ("Poland", "Warsaw", 20),
    ("Portugal", "Lisbon", 12),
    ("Norway", "Oslo", 8),
)
SUITE = """\
suite: mini
facts: facts.jsonl
monitor:
  negatives: 2
  gates:
    accuracy_base: {min: 0.3, max_drop: 0.1}
head_to_tail:
  prompt: zero-shot
  gates:
    accuracy: {min: 0.3}
  overall:
    gates:
      gap: {max: 1.0}
reliability:
  choices: 3
  distractors: 6
  unseen: {count: 6, as_of: 2026-11-01, expires: 2090-01-01}
  gates:
    cr: {min: 0.3}
"""
RELATIONS = """\
P36:
  label: capital
  domain: places
  frames:
    - What is the capital of [X]?
    - Which city is the capital of [X]?
"""


@pytest.fixture(scope="session", autouse=True)
def _warm() -> None:
    """Import all that a run imports: in-process sessions forget new modules, and torch loads only once."""
    import scipy.stats  # noqa: F401
    import yaml  # noqa: F401

    model = load(parse_spec("reference"))
    model.generate([GenerateRequest(prompt="Where?", max_new_tokens=2)])
    model.score([ScoreRequest(prompt="Where?", continuation=" Here")])
    model.close()


MiniSuite = Callable[..., Path]


@pytest.fixture
def mini_suite(pytester: pytest.Pytester) -> MiniSuite:
    """Write ``suites/mini.kb.yaml`` with its facts; ``text`` replaces the suite, ``facts`` the facts."""

    def write(text: str = SUITE, facts: str | None = None, name: str = "mini") -> Path:
        folder = pytester.path / "suites"
        folder.mkdir(exist_ok=True)
        lines = [
            {"relation": "P36", "subject": subject, "object": city, "popularity": people}
            for subject, city, people in CAPITALS
        ]
        found = "".join(json.dumps(line) + "\n" for line in lines) if facts is None else facts
        (folder / "facts.jsonl").write_text(found, encoding="utf-8")
        (folder / "relations.yaml").write_text(RELATIONS, encoding="utf-8")
        path = folder / f"{name}.kb.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def report(pytester: pytest.Pytester) -> Callable[[], dict[str, Any]]:
    """Read the report of the latest run."""

    def read(folder: str = "kbrel-report") -> dict[str, Any]:
        text = (pytester.path / folder / "report.json").read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(text)
        return found

    return read


@pytest.fixture(params=[pytest.param((), id="serial"), pytest.param(("-n2",), id="n2")])
def plugin_args(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Run the test serially and over two workers."""
    found: tuple[str, ...] = request.param
    return found
