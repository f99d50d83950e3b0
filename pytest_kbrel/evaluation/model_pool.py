"""The models of one process: model under test, baseline model and helper models, each opened at first use."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation.specs import WHOSE, helper_spec, notes_of, role_of
from pytest_kbrel.records import BASELINE, Case, Fingerprint, Request, Response
from pytest_kbrel.settings import Settings

if TYPE_CHECKING:
    from pytest_kbrel.models.base import Model
    from pytest_kbrel.models.cache.caching_model import CachingModel, DeduplicatingModel
    from pytest_kbrel.models.cache.session import CacheSession, RunLock

# Model under test and baseline model, as ``Ask.to`` names them; all others are helper models.
_OWN = ("", BASELINE)


class ModelPool:
    """Models of one process. ``to`` names a model as :class:`pytest_kbrel.records.Ask` does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._askers: dict[str, DeduplicatingModel] = {}
        self.helper_models = HelperModels(settings, threads=_threads())
        self._models: dict[str, Model] = {}
        self._failed: set[str] = set()
        self._load_seconds: dict[str, float] = {}
        self._again: DeduplicatingModel | None = None
        self._cache: CacheSession | None = None
        # The error of a model that all cases need, which cannot be opened or asked.
        self.unusable = ""

    def ask(self, requests: Sequence[Request], to: str, case: str = "") -> Sequence[Response]:
        """Return one response for each request, in order; ``case`` is the node id of the case that asks.

        Raises ``ModelError``; that of a helper model says where the user named it.
        """
        from pytest_kbrel.models.cache.caching_model import DeduplicatingModel

        try:
            if to not in self._askers:
                model = self._caching(to) if to in _OWN else self.helper_models.model(to)
                self._askers[to] = DeduplicatingModel(model)
            return self._askers[to].ask(requests)
        except ModelError as error:
            if to in _OWN:
                self._note_unusable(error)
                raise
            raise self._of_helper(to, error) from None

    def ask_again(self, requests: Sequence[Request], to: str, case: str = "") -> Sequence[Response]:
        """Return responses of the model under test under another batch plan and without the cache.

        Helper models answer as in :meth:`ask`.
        """
        from pytest_kbrel.models.base import Replanned
        from pytest_kbrel.models.cache.caching_model import DeduplicatingModel

        if to:
            return self.ask(requests, to, case)
        if self._again is None:
            self._again = DeduplicatingModel(Replanned(self.model()))
        return self._again.ask(requests)

    def check_files(self) -> None:
        """Raise ``ModelError`` where a file of an opened checkpoint has changed."""
        from pytest_kbrel.models.checkpoint.integrity import check_files

        try:
            for model in self._models.values():
                check_files(model)
        except ModelError as error:
            self._note_unusable(error)
            raise
        for text, helper in self.helper_models.opened():
            try:
                check_files(helper)
            except ModelError as error:
                raise self._of_helper(text, error) from None

    def model(self) -> Model:
        """Return the model under test without a cache, loaded at the first call.

        Raises ``ModelError`` where it cannot be loaded; only the first error explains why.
        """
        return self._opened("")

    def base(self) -> Fingerprint | None:
        """Return the fingerprint of the baseline model, ``None`` without one."""
        return self._opened(BASELINE).describe() if self._settings.baseline_model else None

    def opened(self) -> list[tuple[str, Fingerprint]]:
        """Return the fingerprints of all models opened so far, each with its name in ``Ask.to``."""
        own = [(which, model.describe()) for which, model in self._models.items()]
        return [*own, *((helper.spec, helper) for helper in self.helper_models.fingerprints())]

    def _opened(self, which: str) -> Model:
        if which in self._failed:
            name = self._settings.baseline_model if which else self._settings.model
            raise ModelError(f"the model {name!r} could not be loaded; the first failure says why")
        if which not in self._models:
            from pytest_kbrel.models.registry import open_model

            try:
                parsed = self._settings.baseline_spec if which else self._settings.model_spec
                assert parsed is not None
                started = time.perf_counter()
                folder = self._settings.use_cache
                self._models[which] = open_model(parsed.get(), threads=_threads(), folder=folder)
                self._load_seconds[which] = time.perf_counter() - started
            except ModelError as error:
                self._failed.add(which)
                named = ModelError(f"--kb-baseline-model: {error}") if which else error
                self._note_unusable(named)
                raise named from None
        return self._models[which]

    def _of_helper(self, text: str, error: ModelError) -> ModelError:
        """Return the error of a helper model with the flag or key that names it."""
        named = ModelError(f"{role_of(self._settings, text)}: {error}")
        if text == self._settings.judge:
            self._note_unusable(named)
        return named

    def _note_unusable(self, error: ModelError) -> None:
        # A recorded run has answers even where no model can be asked.
        if self._settings.from_run is None:
            self.unusable = self.unusable or str(error)

    def _caching(self, which: str) -> Model:
        if self._cache is None:
            from pytest_kbrel.models.cache.session import CacheSession

            self._cache = CacheSession(self._settings.use_cache, self._settings.run)
        return self._cache.wrap(self._opened(which))

    def rendered(self, request: Request, case: str = "") -> str:
        """Return a prompt as the model under test reads it, empty where it cannot be rendered."""
        from pytest_kbrel.models.chat import text_of

        model = self.model()
        try:
            return str(getattr(model, "rendered", text_of)(request))
        except Exception:
            # A chat template may raise anything; the response to this request has the error.
            return ""

    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of the model under test."""
        return self.model().describe()

    def loading(self) -> tuple[float, str]:
        """Return the load time of the model under test in seconds, and how it computes answers.

        Returns 0.0 and ``""`` where no weights are loaded here; ``""`` before the first request.
        """
        model = self._models.get("")
        if model is None or not model.describe().parameters:
            return 0.0, ""
        return self._load_seconds[""], str(getattr(model, "engine", ""))

    def unscorable(self) -> str:
        """Return why the model under test can score no answer, empty where it can."""
        return str(getattr(self.model(), "unscorable", ""))

    def notes(self) -> tuple[str, ...]:
        """Return remarks about the models opened so far, one sentence each."""
        own = [(WHOSE[which], model) for which, model in self._models.items()]
        helpers = [(f"{text}: ", model) for text, model in self.helper_models.opened()]
        return tuple(f"{prefix}{note}" for prefix, model in (*own, *helpers) for note in notes_of(model))

    def helper(self, text: str) -> Fingerprint:
        """Return the fingerprint of the helper model that ``text`` names."""
        try:
            return self.helper_models.fingerprint(text)
        except ModelError as error:
            raise self._of_helper(text, error) from None

    def helpers(self) -> tuple[Fingerprint, ...]:
        """Return the fingerprints of all helper models used so far."""
        return self.helper_models.fingerprints()

    def new_helper_counts(self) -> tuple[int, int]:
        """Return the numbers of helper requests and of cache hits since the last call."""
        return self.helper_models.new_counts()

    def new_answer_counts(self) -> tuple[int, int]:
        """Return the numbers of requests to the run's own models and of cache hits since the last call."""
        return self._cache.new_counts() if self._cache is not None else (0, 0)

    def cache_problem(self) -> str:
        """Return why answers of the run's own models cannot be cached, empty if they can."""
        return self._cache.trouble if self._cache is not None else ""

    def with_examples(self, case: Case) -> Case | None:
        """Return the case with recorded few-shot examples, ``None`` where they have to be chosen."""
        return None

    def missing_responses(self, case: str) -> str:
        """Return which responses of a case a recorded run lacks, in words; empty with real models."""
        return ""

    def close(self) -> None:
        """Free the models."""
        if self._cache is not None:
            self._cache.close()
        for model in self._models.values():
            model.close()
        self.helper_models.close()


def run_lock(settings: Settings) -> RunLock | None:
    """Return the lock of a run that asks served models, ``None`` where none or no cache is used."""
    from pytest_kbrel.models.registry import backend_of

    served = backend_of(settings.model).is_served or backend_of(settings.baseline_model).is_served
    if not served or settings.use_cache is None or settings.from_run is not None:
        return None
    from pytest_kbrel.models.cache.session import RunLock

    return RunLock(settings.use_cache, settings.run)


def let_threads_sleep() -> None:
    """Make torch's idle threads sleep instead of spin; to be called before torch is imported."""
    # With one other busy process on two cores, two spinning threads took 15 to 24 times as long as two
    # sleeping ones.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _threads() -> int | None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1 or "OMP_NUM_THREADS" in os.environ:
        return None
    # Two workers with as many threads each as there are cores take twice the time of sharing the cores.
    return max(1, (os.cpu_count() or 1) // workers)


class HelperModels:
    """The models of one process that judge answers or write distractors, opened lazily over one cache."""

    def __init__(self, settings: Settings, *, threads: int | None = None) -> None:
        self._settings = settings
        self._threads = threads
        self._models: dict[str, CachingModel] = {}
        self._failed: set[str] = set()
        self._counted = (0, 0)

    def model(self, text: str) -> CachingModel:
        """Return the model that ``text`` names, opened at the first call.

        Raises :class:`KbrelError` where it or the cache cannot be opened; only the first error explains why.
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
                self._models[text] = CachingModel(model, None if folder is None else Store(folder))
            except KbrelError:
                self._failed.add(text)
                raise
        return self._models[text]

    def opened(self) -> list[tuple[str, Model]]:
        """Return the models that were opened, with the texts that name them."""
        return [(text, model.model) for text, model in self._models.items()]

    def fingerprint(self, text: str) -> Fingerprint:
        """Return the fingerprint of the model that ``text`` names; opens it if necessary."""
        return replace(self.model(text).describe(), spec=text)

    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Return the fingerprints of all models that were opened."""
        return tuple(self.fingerprint(text) for text in sorted(self._models))

    def new_counts(self) -> tuple[int, int]:
        """Return the numbers of requests and of cache hits since the last call."""
        models = self._models.values()
        counts = (sum(model.requested for model in models), sum(model.reused for model in models))
        new = (counts[0] - self._counted[0], counts[1] - self._counted[1])
        self._counted = counts
        return new

    def close(self) -> None:
        """Free the models and close the cache."""
        for model in self._models.values():
            model.close()
