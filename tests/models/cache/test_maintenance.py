"""What `kbrel cache` shows, deletes and exports."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.maintenance import Maintenance
from pytest_kbrel.models.cache.store import Store
from tests.models.cache.stored import MODEL, hexed, text


@pytest.fixture
def maintenance(tmp_path):
    """Hold three answers of one model, made at 100, 200 and 300, and one of each of two others."""
    with contextlib.closing(Store(tmp_path)) as store:
        for name, count in (("one", 3), ("two", 1), ("three", 1)):
            model = replace(MODEL, weights_digest=name)
            answers = [
                (hexed(f"{name} {n}"), text(name * (n + 1))) for n in range(count)
            ]
            store.put(answers, model)
        store.query("UPDATE answers SET created = 100 * rowid")
    with contextlib.closing(Maintenance(tmp_path)) as made:
        yield made


def test_a_model_is_found_by_how_its_digest_begins(maintenance):
    (first, *_) = maintenance.models()
    for beginning in (first.digest, first.digest[:20], first.digest[:20].upper()):
        assert maintenance.model(beginning) == first
    for beginning, count in [
        ("", "3 models begin so"),
        ("xyz", "no model begins so"),
        (first.digest[1:], "no m"),
    ]:
        with pytest.raises(StoreError, match=f"found '{beginning}', and {count}"):
            maintenance.model(beginning)
    maintenance.prune(model=first)
    maintenance.prune(model=maintenance.models()[0])
    # Of one model alone it must be said all the same.
    with pytest.raises(StoreError, match="1 models begin so"):
        maintenance.model("")
    maintenance.prune()
    with pytest.raises(StoreError, match="allowed: none, for nothing is kept"):
        maintenance.model("a")


@pytest.mark.parametrize(
    ("of_first", "before", "gone", "rest"),
    [
        (True, None, 3, 2),
        (True, 200.0, 1, 4),
        (True, 200.9, 1, 4),
        (True, 201.0, 2, 3),
        (True, 0.0, 0, 5),
        (False, 0.0, 0, 5),
        (False, 301.0, 3, 2),
        (False, None, 5, 0),
    ],
)
def test_what_is_forgotten_is_of_that_model_and_older_than_that(
    maintenance, of_first, before, gone, rest
):
    model = maintenance.models()[0] if of_first else None
    assert maintenance.prune(model=model, before=before) == gone
    assert sum(one.answers for one in maintenance.models()) == rest
    assert all(one.answers for one in maintenance.models())


def test_more_answers_than_are_read_at_once_are_all_told(tmp_path):
    with contextlib.closing(Store(tmp_path)) as store:
        store.put(((hexed(str(n)), text(str(n))) for n in range(1001)), MODEL)
    with contextlib.closing(Maintenance(tmp_path)) as made:
        assert [json.loads(line)["answer"]["text"] for line in made.lines()] == [
            str(n) for n in range(1001)
        ]
