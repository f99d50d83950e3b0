from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.facts.files import read_relations
from pytest_kbrel.facts.readers import read_own_facts

WORLD = Path(__file__).parents[2] / "suites" / "world"


@pytest.fixture(scope="session")
def world():
    return WORLD


@pytest.fixture(scope="session")
def facts():
    return read_own_facts(WORLD / "facts.jsonl")


@pytest.fixture(scope="session")
def relations():
    return {
        relation.id: relation for relation in read_relations(WORLD / "relations.yaml")
    }
