"""What the models said that a run is about, kept for the next run; a run never fails for want of that.

What a served model said is kept as long as the run is unfinished; see
:mod:`pytest_kbrel.models.resume.journal`.
"""

from __future__ import annotations

from pathlib import Path

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.cache.caching_model import RememberingModel
from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.models.rates import keep_rates
from pytest_kbrel.models.resume import journal


class Keeping:
    """One process's way to the answers kept in ``folder``; ``None`` keeps nothing. ``run`` is the run's id.

    ``trouble`` says why answers are not kept, or no longer: the first reason there was. It is empty where
    they are kept, and where nobody wants them kept.
    """

    def __init__(self, folder: Path | None, run: str) -> None:
        self._folder = folder
        self._run = run
        self._models: list[RememberingModel] = []
        self._told = (0, 0)
        self.trouble = ""

    def remembering(self, model: Model) -> RememberingModel:
        """Return the model with its answers kept, where they can be.

        Raises :class:`ModelError` where a server does not answer what is to tell its model from another.
        """
        store, kept = self._store(model), None
        if store is not None and not model.describe().weights_digest:
            try:
                kept = journal.begin(store, self._run, model)
            except StoreError as error:
                self._note(error)
                store.close()
                store = None
            except BaseException:
                store.close()
                raise
        found = RememberingModel(model, store, on_trouble=self._note, journal=kept)
        self._models.append(found)
        return found

    def news(self) -> tuple[int, int]:
        """Return how many requests came in, and how many the store answered, since this was last called."""
        now = (sum(one.asked for one in self._models), sum(one.reused for one in self._models))
        news = (now[0] - self._told[0], now[1] - self._told[1])
        self._told = now
        return news

    def close(self) -> None:
        """Keep how fast the models were, and close the store; the models are their owner's."""
        for model in self._models:
            if self._folder is not None and model.store is not None:
                keep_rates(self._folder, model.describe(), model.meter.rates())
            model.close_store()

    def _store(self, model: Model) -> Store | None:
        if self._folder is None:
            return None
        try:
            return Store(self._folder)
        except StoreError as error:
            self._note(error)
            return None

    def _note(self, error: StoreError) -> None:
        self.trouble = self.trouble or str(error)
