"""What `kbrel cache` shows, deletes and exports."""

from __future__ import annotations

import contextlib
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
