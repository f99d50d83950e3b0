"""Models of one process: their specs parsed from the settings, and each opened at first use."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import sub

from pytest_kbrel import __version__
from pytest_kbrel.baselines import helper_differences
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import BudgetError, KbrelError, ModelError, ResponseError
from pytest_kbrel.evaluation.recorded_run import (
    NOT_RECORDED,
    RecordedModel,
    names_of,
    read_runs,
)
from pytest_kbrel.models import registry
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.answers.spec import MISSING
from pytest_kbrel.models.base import (
    Model,
    Spec,
    check_probabilities,
    check_size,
    responses_of,
)
from pytest_kbrel.models.cache.journal import RunLock
from pytest_kbrel.models.cache.session import CacheSession
from pytest_kbrel.models.cache.store import identity
from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.records import (
    BASELINE,
    Case,
    Failed,
    Fingerprint,
    ProbeName,
    Request,
    Response,
    record,
)
from pytest_kbrel.reports import RESPONSES
from pytest_kbrel.settings import RULES, ParsedSpec, Settings
from pytest_kbrel.store.run_store import AnswerCounts, RunStore

# Model under test and baseline model, as ``Ask.to`` names them; all others are helper models.
_OWN = ("", BASELINE)
_UNROUNDABLE = Failed(
    error="its weights cannot be rounded; allowed: a checkpoint that transformers runs, or a suite without "
    "'also_as'"
)
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
    """Models of one process, or of a recorded run. ``to`` names one as :class:`pytest_kbrel.records.Ask` does.

    A recorded model is never loaded; a helper model is where a reply of it is not recorded.
    """

    def __init__(self, settings: Settings, store: RunStore | None = None) -> None:
        self._settings = settings
        self._store = store or RunStore()
        # Each model by its name, what answers in its name, and those that are loaded.
        self._models: dict[str, Model] = {}
        self._askers: dict[str, Model] = {}
        self._live: dict[str, Model] = {}
        self._failed: set[str] = set()
        # How models differ from those that other processes of the run opened first.
        self._differing: dict[str, str] = {}
        self._load_seconds: dict[str, float] = {}
        # Requests by case, and those to which no file of answers and no recorded run has a response.
        self._requests: Counter[str] = Counter()
        self._missing: Counter[str] = Counter()
        # Recorded replies of helper models that were not told of yet.
        self._last_news: News | None = None
        self._replied = 0
        self._cache = CacheSession(settings.use_cache, settings.run)
        self._helpers = CacheSession(settings.use_cache)
        self._spent: dict[str, tuple[int, ...]] = {}
        self.counts = AnswerCounts()
        # The error of a model that all cases need, which cannot be opened or asked.
        self.unusable = ""
        self.run = read_runs(settings.recorded) if settings.recorded else None
        # None where the recorded responses could not be read.
        self._is_loaded: bool | None = False
        if self.run is not None:
            self._models[""] = RecordedModel(self.run.model, self.run.notes)
            if settings.baseline_model and self.run.base is not None:
                self._models[BASELINE] = RecordedModel(self.run.base)

    def ask(
        self, requests: Sequence[Request], to: str, case: str | Sequence[str] = ""
    ) -> Sequence[Response]:
        """Return one response for each request, in order.

        ``case`` is the node id of the case that asks, or those of all requests.

        What the store of the run has is not asked again; a request that failed is. Raises ``ModelError``,
        which says where the user named the model if it is not the one under test, and ``ResponseError`` where
        recorded responses cannot be read.
        """
        self._load()
        cases = [case] * len(requests) if isinstance(case, str) else case
        responses = dict(
            zip(requests, self._store.find(cases, to, requests), strict=True)
        )
        case = next(iter(cases), "")
        new = [request for request, response in responses.items() if response is None]
        if self.run is not None:
            if new and (why := self.run.unended.get(case)):
                # A suite may allow a few facts without a response, and these were never asked.
                raise ModelError(
                    f"not decided, since the recorded run did not end this case: {why}"
                )
            self._replied += (len(responses) - len(new)) * (to not in _OWN)
        with self._naming(to):
            if to in _OWN:
                case_of = dict(zip(requests, cases, strict=True))
                self.counts.begin([case_of[request] for request in new])
            if new:
                responses |= self._answers(new, to, case, len(responses))
        checked = [
            check_size(request, check_probabilities(response))
            for request in requests
            if (response := responses[request]) is not None
        ]
        if not to or (to == BASELINE and self.run is not None):
            # Where some can be missing, a call is of one case.
            self._requests[case] += len(checked)
            self._missing[case] += sum(map(checked.count, (MISSING, NOT_RECORDED)))
        return checked

    def _answers(
        self, new: Sequence[Request], to: str, case: str, total: int
    ) -> dict[Request, Response]:
        """Return the responses of a model to what it was not asked yet."""
        if self.run is not None and to in _OWN:
            return dict.fromkeys(new, NOT_RECORDED)
        try:
            model = self._known(to)
            if not model.rounds and any(request.rounding for request in new):
                return dict.fromkeys(new, _UNROUNDABLE)
            return responses_of(self._asker(to), new)
        except KbrelError as error:
            if self.run is None or self.run.helper(to) is None:
                raise
            raise ModelError(
                f"{len(new)} of {total} replies that {case} needs of {to} are not recorded in {self._folders}, "
                f"so that it has to be asked: {error}"
            ) from None

    def _load(self) -> None:
        if self.run is None or self._is_loaded:
            return
        if self._is_loaded is None:
            raise ResponseError(
                f"{self._folders}: the responses cannot be read; the first failure says why"
            )
        self._is_loaded = None
        sources = [source.folder / RESPONSES for source in self.run.sources]
        self._store.load(sources, self.run.lacks)
        self._is_loaded = True

    @property
    def _folders(self) -> str:
        return names_of(self._settings.recorded)

    def adopt(self, model: Model) -> None:
        """Ask a model that is in memory already as the one under test; who opened it closes it."""
        self._models[""] = model

    def check_files(self) -> None:
        """Raise ``ModelError`` where a file of an opened checkpoint has changed."""
        for to, model in self._live.items():
            with self._naming(to):
                model.check_files()

    def model(self) -> Model:
        """Return the model under test without a cache, loaded at the first call.

        Raises ``ModelError`` where it cannot be loaded; only the first error explains why.
        """
        return self._model("")

    def base(self) -> Fingerprint | None:
        """Return the fingerprint of the baseline model, ``None`` without one."""
        if not self._settings.baseline_model or (self.run and not self.run.base):
            return None
        return self._model(BASELINE).describe()

    def opened(self) -> tuple[tuple[str, Fingerprint], ...]:
        """Return the fingerprints of all models used so far, each with its name in ``Ask.to``."""
        return tuple(
            (to, of.describe() if to in _OWN else self.helper(to))
            for to, of in sorted(self._models.items())
        )

    def news(self) -> News:
        """Return what there is to tell since the last call; after closing, what there was then."""
        if (last := self._last_news) is not None:
            self._last_news = News()
            return last
        seconds, engine = 0.0, ""
        model = self._live.get("")
        if model is not None and model.describe().parameters:
            seconds, engine = self._load_seconds.get("", 0.0), model.engine
        requested, reused = self._helpers.new_counts()
        replied, self._replied = self._replied, 0
        return News(
            models=self.opened(),
            answered=self._cache.new_counts(),
            helped=(requested + replied, reused + replied),
            spent=tuple(self._new_spent()),
            cache_problem=self._cache.trouble or self._helpers.trouble,
            load_seconds=seconds,
            engine=engine,
            notes=self.notes(),
        )

    def _model(self, to: str) -> Model:
        with self._naming(to):
            return self._known(to)

    def _known(self, to: str) -> Model:
        if to not in self._models:
            recorded = self.run.helper(to) if self.run is not None else None
            self._models[to] = (
                self._opened(to) if recorded is None else RecordedModel(recorded)
            )
        return self._models[to]

    def _opened(self, to: str) -> Model:
        """Return a model that is loaded here."""
        settings = self._settings
        parsed = settings.specs.get(to)
        if to in self._failed:
            name = to if parsed is None else parsed.get().text
            raise ModelError(
                f"the model {name!r} could not be opened; the first failure says why"
            )
        if to not in self._live:
            started = time.perf_counter()
            try:
                spec = (
                    helper_spec(to, settings.judge_args)
                    if parsed is None
                    else parsed.get()
                )
                self._live[to] = registry.open_model(spec, threads=_threads())
            except ModelError:
                self._failed.add(to)
                raise
            self._load_seconds[to] = time.perf_counter() - started
            if why := self._difference(to, self._live[to].describe()):
                self._differing[to] = why
        if to in self._differing:
            raise KbrelError(self._differing[to])
        return self._live[to]

    def _difference(self, to: str, model: Fingerprint) -> str:
        """Return in words how a model differs from that of the process that opened it first, ``""`` if not."""
        now = identity(model)
        first = json.loads(self._store.first_model(to, json.dumps(now)))
        for key in (*first, *now):
            if first.get(key) != now.get(key):
                own = {"": "the model", BASELINE: "the baseline model"}
                return (
                    f"{own.get(to, to)} is not the same one in all workers: {key} "
                    f"({first.get(key)!s:.12} and {now.get(key)!s:.12}); its files changed before all had "
                    "read them: run again when nothing writes there, or gate a copy"
                )
        return ""

    def _asker(self, to: str) -> Model:
        """Return what answers in the name of a model: itself behind the cache, if it is loaded here."""
        if to not in self._askers:
            known = self._known(to)
            if to not in _OWN:
                live = self._opened(to)
                if isinstance(known, RecordedModel):
                    self._check_helper(live, known.describe())
                self._askers[to] = self._helpers.wrap(live)
            else:
                self._askers[to] = caching = self._cache.wrap(known)
                caching.on_answers = self.counts.add
        return self._askers[to]

    def _check_helper(self, live: Model, recorded: Fingerprint) -> None:
        now = dataclasses.replace(live.describe(), spec=recorded.spec)
        if differing := helper_differences("now and then", now, recorded):
            raise ModelError(
                f"it is not the model that was recorded: {differing[0]}; allowed: the same one, or one under "
                "another name, which is then asked everything"
            )

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

    def rendered(self, request: Request, case: str = "", fact: str = "") -> str:
        """Return a prompt as the model under test reads it, empty where it cannot be rendered."""
        if self.run is not None:
            # Of a joined run it is that of the shard with the first fact.
            source = self._store.source_of(case, "", request, fact)
            return self.run.prompt(source, case)
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
        return tuple(of for to, of in self.opened() if to not in _OWN)

    def _new_spent(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for to, model in self._live.items():
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
        """Return the case with recorded few-shot examples, ``None`` where they have to be chosen.

        An encoder is not needed where a run was recorded.
        """
        if self.run is None or not (case.settings.encoder and sum(case.settings.shown)):
            return None
        from pytest_kbrel.probes.reliability import shots_in

        self._load()
        nodeid = f"{case.suite}::{case.id}"
        return shots_in(case, self._store.recorded(nodeid, "answer"))

    def recorded_looks(self, case: str) -> int | None:
        """Return how many looks a recorded run took at a case; ``None`` without a record of any."""
        return None if self.run is None else self.run.looks.get(case)

    def missing_responses(self, case: str) -> str:
        """Return how many requests of a case have no response, and why, in words; empty if all have one.

        Models that are asked answer all; a file of answers and a recorded run may not.
        """
        missing, total = self._missing[case], self._requests[case]
        if not missing:
            return ""
        if self.run is None:
            return (
                f"{missing} of {total} requests of this case have no answer in "
                f"{self._settings.model.strip()}: type this command with --kb-export-requests=FILE to have them "
                "written, and then give a folder with the answers of all rounds (--kb-model=answers/FOLDER); "
                "allowed: the suites, facts and arguments with which the requests were written"
            )
        count = "all" if missing == total else f"{missing} of {total}"
        head = f"{count} requests of this case are not among the responses recorded in {self._folders}"
        if case not in self.run.cases:
            return (
                f"{head}: the recorded run did not ask this case; leave it out with -k as that run did, "
                "or record a run with it"
            )
        versions = (
            f"pytest-kbrel {self.run.kbrel_version} recorded it, this is {__version__}; "
            if self.run.kbrel_version != __version__
            else ""
        )
        return (
            f"{head}: {versions}the suite asks something else now than the run did (other facts, wordings, "
            "settings, distractors or seed, or an answer that now counts as one where it counted as none "
            "before); what a model was never asked can only be had by a run with --kb-model"
        )

    def close(self) -> None:
        """Free the models and close the cache and the store."""
        # A closed model tells nothing any more.
        self._last_news = self.news()
        self._cache.close()
        self._helpers.close()
        for model in self._live.values():
            model.close()
        self._store.close()


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
