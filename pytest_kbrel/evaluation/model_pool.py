"""Models of one process: their specs parsed from the settings, and each opened at first use."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import BudgetError, KbrelError, ModelError
from pytest_kbrel.evaluation.answer_counts import AnswerCounts
from pytest_kbrel.models import registry
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.answers.spec import MISSING
from pytest_kbrel.models.base import Model, Spec
from pytest_kbrel.models.cache.caching_model import (
    CachingModel,
    DeduplicatingModel,
    new_counts,
    uncounted_hits,
)
from pytest_kbrel.models.cache.session import CacheSession, RunLock
from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.records import (
    BASELINE,
    Case,
    Fingerprint,
    ProbeName,
    Request,
    Response,
)
from pytest_kbrel.settings import RULES, ParsedSpec, Settings

# Model under test and baseline model, as ``Ask.to`` names them; all others are helper models.
_OWN = ("", BASELINE)
_WHOSE = {"": "", BASELINE: "baseline model: "}
_SPENT_BY = {"": "{}", BASELINE: "{} (--kb-baseline-model)"}


class ModelPool:
    """Models of one process. ``to`` names a model as :class:`pytest_kbrel.records.Ask` does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._askers: dict[str, DeduplicatingModel] = {}
        self._models: dict[str, Model] = {}
        self._helpers: dict[str, CachingModel] = {}
        self._failed: set[str] = set()
        self._load_seconds = 0.0
        # Requests to the model under test by case, and those that a file of answers does not answer.
        self._requests: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        self._cache = CacheSession(settings.use_cache, settings.run)
        self._spent: dict[str, tuple[int, int]] = {}
        self.counts = AnswerCounts()
        # The error of a model that all cases need, which cannot be opened or asked.
        self.unusable = ""

    def ask(
        self, requests: Sequence[Request], to: str, case: str = ""
    ) -> Sequence[Response]:
        """Return one response for each request, in order; ``case`` is the node id of the case that asks.

        Raises ``ModelError``; that of a helper model says where the user named it.
        """
        try:
            if to not in self._askers:
                model = self._own(to) if to in _OWN else self._helper(to)
                self._askers[to] = DeduplicatingModel(model)
            if to in _OWN:
                self.counts.begin(case)
            responses = self._askers[to].ask(requests)
            if to in _OWN:
                self.counts.end(len(responses))
            if not to:
                self._requests[case] += len(responses)
                self._missing[case] += responses.count(MISSING)
            return responses
        except ModelError as error:
            if to in _OWN:
                self._note_unusable(error)
                raise
            raise self._of_helper(to, error) from None

    def check_files(self) -> None:
        """Raise ``ModelError`` where a file of an opened checkpoint has changed."""
        try:
            for model in self._models.values():
                model.check_files()
        except ModelError as error:
            self._note_unusable(error)
            raise
        for text, helper in self._helpers.items():
            try:
                helper.model.check_files()
            except ModelError as error:
                raise self._of_helper(text, error) from None

    def model(self) -> Model:
        """Return the model under test without a cache, loaded at the first call.

        Raises ``ModelError`` where it cannot be loaded; only the first error explains why.
        """
        return self._opened("")

    def base(self) -> Fingerprint | None:
        """Return the fingerprint of the baseline model, ``None`` without one."""
        return (
            self._opened(BASELINE).describe() if self._settings.baseline_model else None
        )

    def opened(self) -> list[tuple[str, Fingerprint]]:
        """Return the fingerprints of all models opened so far, each with its name in ``Ask.to``."""
        own = [(which, model.describe()) for which, model in self._models.items()]
        return [*own, *((helper.spec, helper) for helper in self.helpers())]

    def _opened(self, which: str) -> Model:
        if which in self._failed:
            name = self._settings.baseline_model if which else self._settings.model
            raise ModelError(
                f"the model {name!r} could not be loaded; the first failure says why"
            )
        if which not in self._models:
            try:
                parsed = (
                    self._settings.baseline_spec if which else self._settings.model_spec
                )
                assert parsed is not None
                started = time.perf_counter()
                self._models[which] = self._open(parsed.get())
                if not which:
                    self._load_seconds = time.perf_counter() - started
            except ModelError as error:
                self._failed.add(which)
                named = ModelError(f"--kb-baseline-model: {error}") if which else error
                self._note_unusable(named)
                raise named from None
        return self._models[which]

    def _own(self, which: str) -> CachingModel:
        model = self._cache.wrap(self._opened(which))
        model.on_answers = self.counts.add
        return model

    def _helper(self, text: str) -> CachingModel:
        if text in self._failed:
            raise ModelError(
                f"the model {text!r} could not be opened; the first failure says why"
            )
        if text not in self._helpers:
            try:
                folder = self._settings.use_cache
                model = self._open(helper_spec(text, self._settings.judge_args))
                self._helpers[text] = CachingModel(
                    model, None if folder is None else Store(folder)
                )
            except KbrelError:
                self._failed.add(text)
                raise
        return self._helpers[text]

    def _open(self, spec: Spec) -> Model:
        return registry.open_model(spec, threads=_threads())

    def _of_helper(self, text: str, error: ModelError) -> ModelError:
        """Return the error of a helper model with the flag or key that names it."""
        named = type(error)(f"{role_of(self._settings, text)}: {error}")
        if text == self._settings.judge:
            self._note_unusable(named)
        return named

    def _note_unusable(self, error: ModelError) -> None:
        # A recorded run has answers even where no model can be asked, and a budget is no fault of a model.
        if self._settings.from_run is None and not isinstance(error, BudgetError):
            self.unusable = self.unusable or str(error)

    def rendered(self, request: Request, case: str = "") -> str:
        """Return a prompt as the model under test reads it, empty where it cannot be rendered."""
        model = self.model()
        try:
            return model.rendered(request)
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
        return self._load_seconds, model.engine

    def unscorable(self) -> str:
        """Return why the model under test can score no answer, empty where it can."""
        return self.model().unscorable

    def notes(self) -> tuple[str, ...]:
        """Return remarks about the models opened so far, one sentence each."""
        own = [(_WHOSE[which], model) for which, model in self._models.items()]
        helpers = [
            (f"{text}: ", helper.model) for text, helper in self._helpers.items()
        ]
        return tuple(
            f"{prefix}{note}"
            for prefix, model in (*own, *helpers)
            for note in model.notes
        )

    def helper(self, text: str) -> Fingerprint:
        """Return the fingerprint of the helper model that ``text`` names; opens it if necessary."""
        try:
            return dataclasses.replace(self._helper(text).describe(), spec=text)
        except ModelError as error:
            raise self._of_helper(text, error) from None

    def helpers(self) -> tuple[Fingerprint, ...]:
        """Return the fingerprints of all helper models used so far, by spec."""
        return tuple(
            dataclasses.replace(helper.describe(), spec=text)
            for text, helper in sorted(self._helpers.items())
        )

    def new_helper_counts(self) -> tuple[int, int]:
        """Return the numbers of helper requests and of cache hits since the last call."""
        return new_counts(self._helpers.values())

    def new_answer_counts(self) -> tuple[int, int]:
        """Return the numbers of requests to the run's own models and of cache hits since the last call."""
        return self._cache.new_counts()

    def uncounted_hits(self) -> AbstractContextManager[None]:
        """Count no answer of a store meanwhile: the parts of a case got it earlier in this session."""
        return uncounted_hits(lambda: (*self._cache.models, *self._helpers.values()))

    def new_spent(self) -> list[tuple[str, int, int]]:
        """Return each model on a server, with the tokens that it read and wrote since the last call."""
        models = {
            _SPENT_BY[which].format(model.describe().spec): model
            for which, model in self._models.items()
        }
        for text, helper in self._helpers.items():
            models[f"{text} ({role_of(self._settings, text)})"] = helper.model
        spent = []
        for name, model in models.items():
            if (usage := model.usage) is not None:
                before, now = self._spent.get(name, (0, 0)), (usage.read, usage.written)
                spent.append((name, now[0] - before[0], now[1] - before[1]))
                self._spent[name] = now
        return spent

    def cache_problem(self) -> str:
        """Return why answers of the run's own models cannot be cached, empty if they can."""
        return self._cache.trouble

    def with_examples(self, case: Case) -> Case | None:
        """Return the case with recorded few-shot examples, ``None`` where they have to be chosen."""
        return None

    def recorded_looks(self, case: str) -> int | None:
        """Return how many looks a recorded run took at a case; ``None`` without a record of any."""
        return None

    def missing_responses(self, case: str) -> str:
        """Return how many requests of a case a file of answers does not answer, in words; empty if all are.

        Models that are asked answer all.
        """
        missing = self._missing[case]
        if not missing:
            return ""
        return (
            f"{missing} of {self._requests[case]} requests of this case have no answer in "
            f"{self._settings.model.strip()}: type this command with --kb-export-requests=FILE to have them "
            "written, and then give a folder with the answers of all rounds (--kb-model=answers/FOLDER); "
            "allowed: the suites, facts and arguments with which the requests were written"
        )

    def close(self) -> None:
        """Free the models and close the cache."""
        self._cache.close()
        for model in (*self._models.values(), *self._helpers.values()):
            model.close()


def run_lock(settings: Settings) -> RunLock | None:
    """Return the lock of a run that asks served models, ``None`` where none or no cache is used."""
    is_served = any(
        registry.backend_of(text).is_served
        for text in (settings.model, settings.baseline_model)
    )
    if not is_served or settings.use_cache is None or settings.from_run is not None:
        return None
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


def with_specs(settings: Settings) -> Settings:
    """Return the settings with the specs of model, baseline model and judge parsed; nothing is opened.

    The baseline model is ``SPEC`` or ``SPEC,KEY=VALUE,...`` with model args of its own; device, dtype, batch
    size and chat template are those of the model under test. With a recorded run there is no model.
    """
    model = baseline = judge = None
    if settings.from_run is None:
        model = _parsed(
            lambda: _priced(
                settings, _own_spec(settings, settings.model, settings.model_args)
            )
        )
    if settings.baseline_model:
        text, _, args = settings.baseline_model.partition(",")
        baseline = _parsed(lambda: _own_spec(settings, text, args))
    if settings.judge != RULES:
        judge = _parsed(lambda: helper_spec(settings.judge, settings.judge_args))
    return dataclasses.replace(
        settings, model_spec=model, baseline_spec=baseline, judge_spec=judge
    )


@functools.lru_cache(maxsize=64)
def helper_spec(text: str, judge_args: str) -> Spec:
    """Parse the spec of a helper model with those of ``--kb-judge-args`` that its backend takes.

    Raises ``ModelError`` if it is wrong.
    """
    if registry.backend_of(text) is ANSWERS:
        raise ModelError(
            f"found {text}, and what a helper model is asked is not written to a file; allowed: a model that "
            "can be asked"
        )
    return registry.read_spec(text, registry.args_for(text, judge_args))


def role_of(settings: Settings, text: str) -> str:
    """Return where the user named a helper model: the flag of the judge, or a suite's key for writers."""
    return "--kb-judge" if text == settings.judge else "distractors_from"


def spec_notes(settings: Settings) -> tuple[str, ...]:
    """Return remarks about model arguments without effect, one sentence each; nothing is opened."""
    parsed = (
        (_WHOSE[""], settings.model_spec),
        (_WHOSE[BASELINE], settings.baseline_spec),
        ("judge: ", settings.judge_spec),
    )
    return tuple(
        f"{whose}{note}"
        for whose, one in parsed
        if one is not None and one.spec is not None
        for note in one.spec.notes
    )


def announcements_of(settings: Settings) -> tuple[str, ...]:
    """Return what opening the run's own models will load or ask, a line each; nothing is opened."""
    if settings.from_run is not None:
        return ()
    parsed = (settings.model_spec, settings.baseline_spec)
    specs = [one.spec for one in parsed if one is not None and one.spec is not None]
    return tuple(filter(None, map(registry.announcement, specs)))


def no_probabilities(probe: ProbeName, why: str) -> ModelError:
    """Return the error of a probe that needs probabilities, for a model that cannot score answers."""
    title = PROBES[probe].title
    return ModelError(
        f"{title} cannot be run: {why}; allowed: -k 'not {probe}', or another template"
    )


def _own_spec(settings: Settings, text: str, args: str) -> Spec:
    return registry.read_spec(
        text,
        args,
        device=settings.device,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        chat_template=settings.apply_chat_template,
    )


def _priced(settings: Settings, spec: Spec) -> Spec:
    return (
        dataclasses.replace(spec, prices=settings.prices)
        if isinstance(spec, OpenAISpec)
        else spec
    )


def _parsed(parse: Callable[[], Spec]) -> ParsedSpec:
    try:
        return ParsedSpec(spec=parse())
    except ModelError as error:
        return ParsedSpec(error=error)
