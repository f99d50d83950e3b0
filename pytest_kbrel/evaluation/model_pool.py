"""Models of one process: their specs parsed from the settings, and each opened at first use."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import sub

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import BudgetError, ModelError
from pytest_kbrel.evaluation.answer_counts import AnswerCounts
from pytest_kbrel.models import registry
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.answers.spec import MISSING
from pytest_kbrel.models.base import Model, Spec
from pytest_kbrel.models.cache.caching_model import (
    CachingModel,
    DeduplicatingModel,
    new_counts,
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
    record,
)
from pytest_kbrel.settings import RULES, ParsedSpec, Settings

# Model under test and baseline model, as ``Ask.to`` names them; all others are helper models.
_OWN = ("", BASELINE)
_WHOSE = {"": "", BASELINE: "baseline model: "}


@record
class News:
    """What a process tells of its ``models`` (by their names in ``Ask.to``), since it last did.

    ``answered`` are the numbers of requests to the run's own models and of cache hits, ``helped`` those of
    helper models. ``spent`` has each model on a server, with the tokens that it read and wrote, and the
    number of replies that do not state them.
    ``cache_problem`` is why answers cannot be cached. ``load_seconds`` and ``engine`` are of a model under
    test whose weights are loaded here. ``notes`` are remarks about the models.
    """

    models: tuple[tuple[str, Fingerprint], ...] = ()
    answered: tuple[int, int] = (0, 0)
    helped: tuple[int, int] = (0, 0)
    spent: tuple[tuple[str, tuple[int, ...]], ...] = ()
    cache_problem: str = ""
    load_seconds: float = 0.0
    engine: str = ""
    notes: tuple[str, ...] = ()


class ModelPool:
    """Models of one process. ``to`` names a model as :class:`pytest_kbrel.records.Ask` does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._askers: dict[str, DeduplicatingModel] = {}
        self._models: dict[str, Model] = {}
        self._helpers: list[CachingModel] = []
        self._failed: set[str] = set()
        self._load_seconds: dict[str, float] = {}
        # Requests to the model under test by case, and those that a file of answers does not answer.
        self._requests: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        self._cache = CacheSession(settings.use_cache, settings.run)
        self._spent: dict[str, tuple[int, ...]] = {}
        self.counts = AnswerCounts()
        # The error of a model that all cases need, which cannot be opened or asked.
        self.unusable = ""

    def ask(
        self, requests: Sequence[Request], to: str, case: str = ""
    ) -> Sequence[Response]:
        """Return one response for each request, in order; ``case`` is the node id of the case that asks.

        Raises ``ModelError``, which says where the user named the model if it is not the one under test.
        """
        with self._naming(to):
            if to not in self._askers:
                self._askers[to] = DeduplicatingModel(self._caching(to))
            if to in _OWN:
                self.counts.begin(case)
            responses = self._askers[to].ask(requests)
        if not to:
            self._requests[case] += len(responses)
            self._missing[case] += responses.count(MISSING)
        return responses

    def check_files(self) -> None:
        """Raise ``ModelError`` where a file of an opened checkpoint has changed."""
        for to, model in self._models.items():
            with self._naming(to):
                model.check_files()

    def model(self) -> Model:
        """Return the model under test without a cache, loaded at the first call.

        Raises ``ModelError`` where it cannot be loaded; only the first error explains why.
        """
        return self._model("")

    def base(self) -> Fingerprint | None:
        """Return the fingerprint of the baseline model, ``None`` without one."""
        has_one = self._settings.baseline_model
        return self._model(BASELINE).describe() if has_one else None

    def opened(self) -> tuple[tuple[str, Fingerprint], ...]:
        """Return the fingerprints of all models opened so far, each with its name in ``Ask.to``."""
        own = [(to, of.describe()) for to, of in self._models.items() if to in _OWN]
        return (*own, *((helper.spec, helper) for helper in self.helpers()))

    def news(self) -> News:
        """Return what there is to tell since the last call."""
        seconds, engine = 0.0, ""
        model = self._models.get("")
        if model is not None and model.describe().parameters:
            seconds, engine = self._load_seconds.get("", 0.0), model.engine
        return News(
            models=self.opened(),
            answered=self._cache.new_counts(),
            helped=self._new_helper_counts(),
            spent=tuple(self._new_spent()),
            cache_problem=self._cache.trouble,
            load_seconds=seconds,
            engine=engine,
            notes=self.notes(),
        )

    def _model(self, to: str) -> Model:
        with self._naming(to):
            return self._opened(to)

    def _opened(self, to: str) -> Model:
        settings = self._settings
        parsed = settings.specs.get(to)
        if to in self._failed:
            name = to if parsed is None else parsed.get().text
            raise ModelError(
                f"the model {name!r} could not be opened; the first failure says why"
            )
        if to not in self._models:
            started = time.perf_counter()
            try:
                spec = (
                    helper_spec(to, settings.judge_args)
                    if parsed is None
                    else parsed.get()
                )
                self._models[to] = registry.open_model(spec, threads=_threads())
            except ModelError:
                self._failed.add(to)
                raise
            self._load_seconds[to] = time.perf_counter() - started
        return self._models[to]

    def _caching(self, to: str) -> CachingModel:
        if to in _OWN:
            model = self._cache.wrap(self._opened(to))
            model.on_answers = self.counts.add
            return model
        folder = self._settings.use_cache
        store = None if folder is None else Store(folder)
        self._helpers.append(CachingModel(self._opened(to), store))
        return self._helpers[-1]

    @contextlib.contextmanager
    def _naming(self, to: str) -> Iterator[None]:
        """Say in the error of a model where the user named it, and note that of one that all cases need."""
        try:
            yield
        except ModelError as error:
            if to:
                error = type(error)(f"{role_of(self._settings, to)}: {error}")
            # A recorded run has answers even where no model can be asked, and a budget is no fault of a model.
            blameless = self._settings.from_run or isinstance(error, BudgetError)
            if to in (*_OWN, self._settings.judge) and not blameless:
                self.unusable = self.unusable or str(error)
            raise error from None

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

    def unscorable(self) -> str:
        """Return why the model under test can score no answer, empty where it can."""
        return self.model().unscorable

    def notes(self) -> tuple[str, ...]:
        """Return remarks about the models opened so far, one sentence each."""
        return tuple(
            f"{_WHOSE.get(to, f'{to}: ')}{note}"
            for to, model in self._models.items()
            for note in model.notes
        )

    def helper(self, text: str) -> Fingerprint:
        """Return the fingerprint of the helper model that ``text`` names; opens it if necessary."""
        return dataclasses.replace(self._model(text).describe(), spec=text)

    def helpers(self) -> tuple[Fingerprint, ...]:
        """Return the fingerprints of all helper models used so far, by spec."""
        return tuple(
            dataclasses.replace(self._models[to].describe(), spec=to)
            for to in sorted(self._models.keys() - {*_OWN})
        )

    def _new_helper_counts(self) -> tuple[int, int]:
        return new_counts(self._helpers)

    def _new_spent(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for to, model in self._models.items():
            if (usage := model.usage) is not None:
                name = model.describe().spec
                if to:
                    spec = name if to == BASELINE else to
                    name = f"{spec} ({role_of(self._settings, to)})"
                now = (usage.read, usage.written, usage.unstated)
                before = self._spent.get(to, (0, 0, 0))
                yield name, tuple(map(sub, now, before))
                self._spent[to] = now

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
        for helper in self._helpers:
            helper.close_store()
        for model in self._models.values():
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

    def own(text: str, args: str) -> Spec:
        return registry.read_spec(
            text,
            args,
            device=settings.device,
            dtype=settings.dtype,
            batch_size=settings.batch_size,
            chat_template=settings.apply_chat_template,
        )

    def priced(text: str, args: str) -> Spec:
        spec = own(text, args)
        if isinstance(spec, OpenAISpec):
            return dataclasses.replace(spec, prices=settings.prices)
        return spec

    specs = {}
    if settings.from_run is None:
        specs[""] = _parsed(priced, settings.model, settings.model_args)
    if settings.baseline_model:
        text, _, args = settings.baseline_model.partition(",")
        specs[BASELINE] = _parsed(own, text, args)
    if settings.judge != RULES:
        specs[settings.judge] = _parsed(
            helper_spec, settings.judge, settings.judge_args
        )
    return dataclasses.replace(settings, specs=specs)


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
    """Return where the user named a model: its flag, or a suite's key for writers of distractors."""
    if text in _OWN:
        return "--kb-baseline-model" if text else "--kb-model"
    return "--kb-judge" if text == settings.judge else "distractors_from"


def spec_notes(settings: Settings) -> tuple[str, ...]:
    """Return remarks about model arguments without effect, one sentence each; nothing is opened."""
    return tuple(
        f"{_WHOSE.get(to, 'judge: ')}{note}"
        for to, parsed in settings.specs.items()
        if parsed.spec is not None
        for note in parsed.spec.notes
    )


def announcements_of(settings: Settings) -> tuple[str, ...]:
    """Return what opening the run's own models will load or ask, a line each; nothing is opened."""
    if settings.from_run is not None:
        return ()
    specs = [settings.specs[to].spec for to in _OWN if to in settings.specs]
    told = (
        registry.BACKENDS[spec.backend].announcement(spec)
        for spec in specs
        if spec is not None
    )
    return tuple(filter(None, told))


def no_probabilities(probe: ProbeName, why: str) -> ModelError:
    """Return the error of a probe that needs probabilities, for a model that cannot score answers."""
    title = PROBES[probe].title
    return ModelError(
        f"{title} cannot be run: {why}; allowed: -k 'not {probe}', or another template"
    )


def _parsed(parse: Callable[[str, str], Spec], text: str, args: str) -> ParsedSpec:
    try:
        return ParsedSpec(spec=parse(text, args))
    except ModelError as error:
        return ParsedSpec(error=error)
