"""The models that help in a run: they judge answers or write distractors, and what they said is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_kbrel.errors import KbrelError, ModelError, nearest
from pytest_kbrel.options import KbOptions
from pytest_kbrel.records import Case, Fingerprint, ReliabilitySettings, Suite

if TYPE_CHECKING:
    from pytest_kbrel.models.base import Model
    from pytest_kbrel.models.registry import AnySpec
    from pytest_kbrel.models.remembering import RememberingModel

RULES = "rules"
# Who writes distractors where no model does.
FACTS = "facts"


class Helping:
    """One process's helping models, each opened when it is first needed, over one store of answers."""

    def __init__(self, options: KbOptions, *, threads: int | None = None) -> None:
        self._options = options
        self._threads = threads
        self._models: dict[str, RememberingModel] = {}
        self._failed: set[str] = set()
        self._opened: dict[str, object] = {}
        self._told = (0, 0)

    def model(self, text: str) -> RememberingModel:
        """Return the model that ``text`` names. A failure is explained once, then named.

        Raises :class:`KbrelError` where it cannot be opened, or where the store cannot.
        """
        if text in self._failed:
            raise ModelError(f"the model {text!r} could not be opened; the first failure says why")
        if text not in self._models:
            from pytest_kbrel.models.registry import open_model
            from pytest_kbrel.models.remembering import RememberingModel
            from pytest_kbrel.models.store import Store

            try:
                folder = self._options.use_cache
                spec = helper_spec(self._options, text)
                model = open_model(spec, threads=self._threads, folder=folder)
                self._opened[text] = model
                self._models[text] = RememberingModel(model, None if folder is None else Store(folder))
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


def notes_of(model: object) -> tuple[str, ...]:
    """Return what a reader should know of a model or a spec, a sentence each."""
    notes: tuple[str, ...] = getattr(model, "notes", ())
    return notes


def helper_spec(options: KbOptions, text: str) -> AnySpec:
    """Read the name of a helping model under those of ``--kb-judge-args`` that are for models of its kind.

    Raises ``ModelError`` if it is wrong.
    """
    from pytest_kbrel.models.registry import args_for, read_spec

    return read_spec(text, args_for(text, options.judge_args))


def role_of(options: KbOptions, text: str) -> str:
    """Return where the user named a helping model: the flag of the judge, or the writer's key in a suite."""
    return "--kb-judge" if text == options.judge else "distractors_from"


def is_recorded(options: KbOptions, text: str) -> bool:
    """Tell whether the run that is decided again has replies of the helping model ``text`` names."""
    if options.from_run is None:
        return False
    from pytest_kbrel.recorded import read_run

    return read_run(options.from_run).helper(text) is not None


def check_judge(options: KbOptions) -> None:
    """Find what can be found before a run about judge and store; raises :class:`KbrelError`."""
    from pytest_kbrel.models.registry import check_spec
    from pytest_kbrel.models.store import FILE, Store
    from pytest_kbrel.models.store_place import network_of

    if options.judge == RULES or is_recorded(options, options.judge):
        return
    try:
        _check_word(options.judge, RULES)
        check_spec(helper_spec(options, options.judge))
    except KbrelError as error:
        raise KbrelError(f"--kb-judge: {error}") from None
    folder = options.use_cache
    if folder is not None and ((folder / FILE).exists() or network_of(folder)):
        Store(folder).close()


def check_cases(options: KbOptions, cases: Iterable[Case]) -> None:
    """Find out before anything is asked that the models can answer what these cases ask.

    Raises :class:`KbrelError` for MONITOR with a model that shows no probabilities, and for a writer of
    distractors that cannot be opened.
    """
    from pytest_kbrel.answering import base_spec, model_spec
    from pytest_kbrel.models.registry import check_spec, gives_probabilities

    cases = list(cases)
    asked = [model_spec(options)] if options.from_run is None else []
    asked += [base_spec(options)] if options.baseline_model else []
    mute = next((spec.text for spec in asked if not gives_probabilities(spec)), "")
    for case in cases:
        if case.probe == "monitor" and mute:
            raise KbrelError(
                f"{case.suite}::{case.id}: MONITOR needs token probabilities, and {mute} gives "
                'none, it only writes; leave these cases out with -k "not monitor", or give a checkpoint'
            )
    for suite, text in dict.fromkeys((case.suite, writer_of(case)) for case in cases):
        if text and not is_recorded(options, text):
            try:
                _check_word(text, FACTS)
                check_spec(helper_spec(options, text))
            except KbrelError as error:
                raise KbrelError(f"{suite}: distractors_from: {error}") from None


def check_args(options: KbOptions, suites: Iterable[Suite]) -> None:
    """Refuse an argument of ``--kb-judge-args`` that is for no model that helps in these suites.

    Raises :class:`KbrelError`.
    """
    from pytest_kbrel.models.lm_eval_args import public
    from pytest_kbrel.models.openai_spec import is_openai
    from pytest_kbrel.models.registry import args_for
    from pytest_kbrel.models.spec import BACKENDS

    helpers = [] if options.judge == RULES else [options.judge]
    for case in (case for suite in suites for case in suite.cases):
        helpers += filter(None, [writer_of(case)])
        # An encoder on this machine takes none.
        if isinstance(case.settings, ReliabilitySettings) and is_openai(case.settings.retrieval):
            helpers += [case.settings.retrieval]
    helpers = list(dict.fromkeys(helpers))
    taken = {part for text in helpers for part in args_for(text, options.judge_args).split(",")}
    for part in (args_for(f"{backend}/", options.judge_args) for backend in BACKENDS):
        for unused in (one for one in part.split(",") if one and one not in taken):
            raise KbrelError(
                f"--kb-judge-args: {public(*unused.partition('=')[::2])} is for no model here; found: "
                f"{', '.join(helpers) or 'no judge, no writer of distractors and no encoder on a server'}; "
                "allowed: options of these (docs/models.md)"
            )


def writers_of(suite: Suite, members: Iterable[str]) -> tuple[str, ...]:
    """Return the specs of the models that write distractors for these cases of a suite."""
    cases = [case for case in suite.cases if case.id in set(members)]
    return tuple(dict.fromkeys(filter(None, map(writer_of, cases))))


def writer_of(case: Case) -> str:
    """Return the spec of the model that writes a case's distractors, empty where the facts have them."""
    settings = case.settings
    if isinstance(settings, ReliabilitySettings) and settings.distractors_from != FACTS:
        return settings.distractors_from
    return ""


def _check_word(text: str, default: str) -> None:
    """Refuse a word that can only be a typo: neither a name of ours nor a path nor a hub id.

    ``default`` is the word for no model at all, which may be meant.
    """
    from pathlib import Path

    from pytest_kbrel.models.spec import BACKENDS

    first = text.split("/")[0]
    hint = nearest(first, BACKENDS)
    if "/" in text and hint and first not in BACKENDS and not Path(text).expanduser().exists():
        raise ModelError(
            f"found {text!r}; allowed: {default}, openai/NAME, hf/PATH, hf/ORG/NAME, vllm/PATH or "
            f"scripted/FILE{hint}"
        )
    if "/" in text or text.split(":")[0] == "reference" or Path(text).expanduser().exists():
        return
    raise ModelError(
        f"found {text!r}; allowed: {default}, openai/NAME, hf/PATH, a checkpoint's folder, a hub id "
        f"org/name, scripted/FILE or reference{nearest(text, (default, 'reference'))}"
    )
