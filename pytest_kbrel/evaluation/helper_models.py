"""The models that help in a run: they judge answers or write distractors, and what they said is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation.specs import helper_spec, notes_of
from pytest_kbrel.records import Fingerprint, Suite
from pytest_kbrel.settings import Settings

if TYPE_CHECKING:
    from pytest_kbrel.models.base import Model
    from pytest_kbrel.models.cache.caching_model import CachingModel


class Helping:
    """One process's helping models, each opened when it is first needed, over one store of answers."""

    def __init__(self, settings: Settings, *, threads: int | None = None) -> None:
        self._settings = settings
        self._threads = threads
        self._models: dict[str, CachingModel] = {}
        self._failed: set[str] = set()
        self._opened: dict[str, object] = {}
        self._told = (0, 0)

    def model(self, text: str) -> CachingModel:
        """Return the model that ``text`` names. A failure is explained once, then named.

        Raises :class:`KbrelError` where it cannot be opened, or where the store cannot.
        """
        if text in self._failed:
            raise ModelError(f"the model {text!r} could not be opened; the first failure says why")
        if text not in self._models:
            from pytest_kbrel.models.cache.caching_model import CachingModel
            from pytest_kbrel.models.cache.store import Store
            from pytest_kbrel.models.registry import open_model

            try:
                folder = self._settings.use_cache
                spec = helper_spec(text, self._settings.judge_args)
                model = open_model(spec, threads=self._threads, folder=folder)
                self._opened[text] = model
                self._models[text] = CachingModel(model, None if folder is None else Store(folder))
            except KbrelError:
                self._failed.add(text)
                raise
        return self._models[text]

    def opened(self) -> list[tuple[str, Model]]:
        """Return the models that were opened, with the texts that name them."""
        return [(text, model.model) for text, model in self._models.items()]

    def fingerprint(self, text: str) -> Fingerprint:
        """Say what the model is that ``text`` names; it is opened if it was not yet."""
        return replace(self.model(text).describe(), spec=text)

    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Say what all models are that were opened."""
        return tuple(self.fingerprint(text) for text in sorted(self._models))

    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know of the models that were opened, a sentence each."""
        return tuple(f"{text}: {note}" for text, model in self._opened.items() for note in notes_of(model))

    def news(self) -> tuple[int, int]:
        """Return how many requests came in, and how many the store answered, since this was last called."""
        models = self._models.values()
        now = (sum(model.asked for model in models), sum(model.reused for model in models))
        news = (now[0] - self._told[0], now[1] - self._told[1])
        self._told = now
        return news

    def close(self) -> None:
        """Free the models and close the store."""
        for model in self._models.values():
            model.close()


def writers_of(suite: Suite, members: Iterable[str]) -> tuple[str, ...]:
    """Return the specs of the models that write distractors for these cases of a suite."""
    cases = [case for case in suite.cases if case.id in set(members)]
    return tuple(dict.fromkeys(filter(None, (case.settings.writer for case in cases))))
