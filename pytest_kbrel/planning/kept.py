"""Which answers are kept from earlier runs, so that a run will not ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.keys import digest_of, key_of
from pytest_kbrel.models.cache.store import FILE, Store
from pytest_kbrel.planning.timing import Kept
from pytest_kbrel.records import Fingerprint, Request


def kept_in(folder: Path) -> Kept:
    """Return what looks for answers in the store of ``folder``. No store is made where there is none.

    Where a store cannot be read, a run goes on without it: nothing is kept from there on.
    """
    broken = False

    def known(who: Fingerprint, requests: Sequence[Request]) -> list[Request]:
        nonlocal broken
        if broken or not (folder / FILE).is_file():
            return []
        model = digest_of(who)
        keys = {key_of(model, request): request for request in requests}
        try:
            with closing(Store(folder)) as store:
                return [keys[key] for key in store.get(list(keys))]
        except StoreError:
            broken = True
            return []

    return known
