"""Who answers in one process: the model under test, and the models that help. Each is opened at first use."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation.specs import WHOSE, helper_spec, notes_of, role_of
from pytest_kbrel.records import BASELINE, Case, Fingerprint, Request, Response, Suite
from pytest_kbrel.settings import Settings

if TYPE_CHECKING:
    from pytest_kbrel.models.base import Model
    from pytest_kbrel.models.cache.caching_model import Asker, CachingModel
    from pytest_kbrel.models.cache.session import CacheSession, RunLock

# Whom the run itself is about, as ``Ask.to`` names them; all others are helping models.
_OWN = ("", BASELINE)


class ModelPool:
    """One process's answers. ``to`` is who is asked, as in :class:`pytest_kbrel.records.Ask`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._askers: dict[str, Asker] = {}
        self.helper_models = HelperModels(settings, threads=_threads())
        self._models: dict[str, Model] = {}
        self._failed: set[str] = set()
        self._load_seconds: dict[str, float] = {}
        self._again: Asker | None = None
        self._cache: CacheSession | None = None
        # Why no case can be decided: a model that all of them need cannot be opened or asked.
        self.unusable = ""

    def ask(self, requests: Sequence[Request], to: str, case: str = "") -> Sequence[Response]:
        """Return one response for each request, in order; ``case`` is the node id of the case that asks.

        ``ModelError`` says how a helping model is named.
        """
        from pytest_kbrel.models.cache.caching_model import Asker

        try:
            if to not in self._askers:
                model = self._caching(to) if to in _OWN else self.helper_models.model(to)
                self._askers[to] = Asker(model)
            return self._askers[to].ask(requests)
        except ModelError as error:
            if to in _OWN:
                self._note_unusable(error)
                raise
            raise self._of_helper(to, error) from None

    def ask_again(self, requests: Sequence[Request], to: str, case: str = "") -> Sequence[Response]:
        """Return responses as :meth:`ask` does, of the model under test asked anew under another batch plan.

        Helping models are asked as ever: what they said stays said. No answer comes from the store.
        """
        from pytest_kbrel.models.base import Replanned
        from pytest_kbrel.models.cache.caching_model import Asker

        if to:
            return self.ask(requests, to, case)
        if self._again is None:
            self._again = Asker(Replanned(self.model()))
        return self._again.ask(requests)

    def check_files(self) -> None:
        """Raise ``ModelError`` where a file of a checkpoint that was opened is not what it was."""
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
        """Return the model under test itself, loaded at the first call, with nothing kept of what it says.

        A failed load is told once, then named.
        """
        return self._opened("")

    def base(self) -> Fingerprint | None:
        """Say what the model is that this run compares with, ``None`` where it compares with none."""
        return self._opened(BASELINE).describe() if self._settings.baseline_model else None

    def opened(self) -> list[tuple[str, Fingerprint]]:
        """Say what all models are that were opened so far, each with its name in ``Ask.to``."""
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
        """Return an error of a helping model with the place where it is named."""
        named = ModelError(f"{role_of(self._settings, text)}: {error}")
        if text == self._settings.judge:
            self._note_unusable(named)
        return named

    def _note_unusable(self, error: ModelError) -> None:
        # A recorded run has answers of its own, whoever cannot be asked for more.
        if self._settings.from_run is None:
            self.unusable = self.unusable or str(error)

    def _caching(self, which: str) -> Model:
        if self._cache is None:
            from pytest_kbrel.models.cache.session import CacheSession

            self._cache = CacheSession(self._settings.use_cache, self._settings.run)
        return self._cache.wrap(self._opened(which))

    def rendered(self, request: Request, case: str = "") -> str:
        """Return a prompt as the model under test reads it, empty where it cannot be put to this model."""
        from pytest_kbrel.models.base import Renders
        from pytest_kbrel.models.chat import text_of

        model = self.model()
        if not isinstance(model, Renders):
            return text_of(request)
        try:
            return model.rendered(request)
        except Exception:
            # Whatever a chat template raises: the response to this request says what it was.
            return ""

    def fingerprint(self) -> Fingerprint:
        """Say what the model under test is."""
        return self.model().describe()

    def loading(self) -> tuple[float, str]:
        """Return how many seconds the checkpoint under test took to load, and how it computes answers.

        Zero and nothing where no weights are loaded here; nothing as long as it was not asked anything.
        """
        model = self._models.get("")
        if model is None or not model.describe().parameters:
            return 0.0, ""
        return self._load_seconds[""], str(getattr(model, "engine", ""))

    def unscorable(self) -> str:
        """Say why the model under test can score no answer; empty where it can."""
        return str(getattr(self.model(), "unscorable", ""))

    def notes(self) -> tuple[str, ...]:
        """Return what a reader should know of the models that were opened so far, a sentence each."""
        found = [f"{WHOSE[which]}{note}" for which, model in self._models.items() for note in notes_of(model)]
        return (*found, *self.helper_models.notes())

    def helper(self, text: str) -> Fingerprint:
        """Say what the helping model is that ``text`` names."""
        try:
            return self.helper_models.fingerprint(text)
        except ModelError as error:
            raise self._of_helper(text, error) from None

    def helpers(self) -> tuple[Fingerprint, ...]:
        """Say what all helping models are that took part so far."""
        return self.helper_models.fingerprints()

    def new_helper_counts(self) -> tuple[int, int]:
        """Return how many requests helping models got since the last call, and how many were known."""
        return self.helper_models.new_counts()

    def new_answer_counts(self) -> tuple[int, int]:
        """Return how many answers the run's own models were to give since the last call; how many were known.

        Known are those kept from an earlier run.
        """
        return self._cache.new_counts() if self._cache is not None else (0, 0)

    def cache_problem(self) -> str:
        """Say why answers of the run's own models are not kept, empty where they are or are not to be."""
        return self._cache.trouble if self._cache is not None else ""

    def with_examples(self, case: Case) -> Case | None:
        """Return the case with the examples it was asked with, ``None`` where they are to be chosen."""
        return None

    def missing_responses(self, case: str) -> str:
        """Say why a case got no answers that only a model could give; empty where models are asked."""
        return ""

    def close(self) -> None:
        """Free the models."""
        if self._cache is not None:
            self._cache.close()
        for model in self._models.values():
            model.close()
        self.helper_models.close()


def run_lock(settings: Settings) -> RunLock | None:
    """Return the journals of a run that asks served models, ``None`` where there are none to be kept."""
    from pytest_kbrel.models.registry import backend_of

    served = backend_of(settings.model).is_served or backend_of(settings.baseline_model).is_served
    if not served or settings.use_cache is None or settings.from_run is not None:
        return None
    from pytest_kbrel.models.cache.session import RunLock

    return RunLock(settings.use_cache, settings.run)


def let_threads_sleep() -> None:
    """Keep torch's waiting threads from spinning, as they do by default; to be called before torch loads."""
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

    def new_counts(self) -> tuple[int, int]:
        """Return how many requests came in, and how many the store answered, since this was last called."""
        models = self._models.values()
        now = (sum(model.asked for model in models), sum(model.reused for model in models))
        new_counts = (now[0] - self._told[0], now[1] - self._told[1])
        self._told = now
        return new_counts

    def close(self) -> None:
        """Free the models and close the store."""
        for model in self._models.values():
            model.close()


def writers_of(suite: Suite, members: Iterable[str]) -> tuple[str, ...]:
    """Return the specs of the models that write distractors for these cases of a suite."""
    cases = [case for case in suite.cases if case.id in set(members)]
    return tuple(dict.fromkeys(filter(None, (case.settings.writer for case in cases))))
