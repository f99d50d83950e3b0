"""The models that help in a run: they judge answers or write distractors, and what they said is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_kbrel.errors import KbrelError, ModelError, nearest
from pytest_kbrel.options import KbOptions
from pytest_kbrel.records import Case, Fingerprint, ReliabilitySettings, Suite

if TYPE_CHECKING:
    from pytest_kbrel.models.opening import AnySpec
    from pytest_kbrel.models.remembering import RememberingModel

RULES = "rules"


class Helping:
    """One process's helping models, each opened when it is first needed, over one store of answers."""

    def __init__(self, options: KbOptions, *, threads: int | None = None) -> None:
        self._options = options
        self._threads = threads
        self._models: dict[str, RememberingModel] = {}
        self._failed: set[str] = set()
        self._told = (0, 0)

    def model(self, text: str) -> RememberingModel:
        """Return the model that ``text`` names. A failure is explained once, then named.

        Raises :class:`KbrelError` where it cannot be opened, or where the store cannot.
        """
        if text in self._failed:
            raise ModelError(f"the model {text!r} could not be opened; the first failure says why")
        if text not in self._models:
            from pytest_kbrel.models.opening import open_model
            from pytest_kbrel.models.remembering import RememberingModel
            from pytest_kbrel.models.store import Store

            try:
                model = open_model(helper_spec(self._options, text), threads=self._threads)
                self._models[text] = RememberingModel(model, Store(self._options.use_cache))
            except KbrelError:
                self._failed.add(text)
                raise
        return self._models[text]

    def fingerprint(self, text: str) -> Fingerprint:
        """Say what the model is that ``text`` names; it is opened if it was not yet."""
        return replace(self.model(text).describe(), spec=text)

    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Say what all models are that were opened."""
        return tuple(self.fingerprint(text) for text in sorted(self._models))

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


def helper_spec(options: KbOptions, text: str) -> AnySpec:
    """Read the name of a helping model under the run's ``--kb-judge-args``; ``ModelError`` if it is wrong."""
    from pytest_kbrel.models.opening import read_spec

    return read_spec(text, options.judge_args)


def check_judge(options: KbOptions) -> None:
    """Find what can be found before a run about judge and store; raises :class:`KbrelError`."""
    from pytest_kbrel.models.opening import check_spec
    from pytest_kbrel.models.store import FILE, Store

    if options.judge == RULES:
        return
    try:
        _check_word(options.judge)
        check_spec(helper_spec(options, options.judge))
    except KbrelError as error:
        raise KbrelError(f"--kb-judge: {error}") from None
    if (options.use_cache / FILE).exists():
        Store(options.use_cache).close()


def check_cases(options: KbOptions, cases: Iterable[Case]) -> None:
    """Find out before anything is asked that the models can answer what these cases ask.

    Raises :class:`KbrelError` for MONITOR with a model that shows no probabilities, and for a writer of
    distractors that cannot be opened.
    """
    from pytest_kbrel import bench
    from pytest_kbrel.models.opening import check_spec, gives_probabilities

    cases = list(cases)
    for case in cases:
        if case.probe == "monitor" and not gives_probabilities(bench.model_spec(options)):
            raise KbrelError(
                f"{case.suite}::{case.id}: MONITOR needs token probabilities, and {options.model} gives "
                'none, it only writes; leave these cases out with -k "not monitor", or give a checkpoint'
            )
    for suite, text in dict.fromkeys((case.suite, writer_of(case)) for case in cases):
        if text:
            try:
                check_spec(helper_spec(options, text))
            except KbrelError as error:
                raise KbrelError(f"{suite}: distractors_from: {error}") from None


def writers_of(suite: Suite, members: Iterable[str]) -> tuple[str, ...]:
    """Return the specs of the models that write distractors for these cases of a suite."""
    cases = [case for case in suite.cases if case.id in set(members)]
    return tuple(dict.fromkeys(filter(None, map(writer_of, cases))))


def writer_of(case: Case) -> str:
    """Return the spec of the model that writes a case's distractors, empty where the facts have them."""
    settings = case.settings
    if isinstance(settings, ReliabilitySettings) and settings.distractors_from != "facts":
        return settings.distractors_from
    return ""


def _check_word(text: str) -> None:
    """Refuse a word that can only be a typo: neither a name of ours nor a path nor a hub id."""
    from pathlib import Path

    first = text.split("/")[0]
    hint = nearest(first, ("openai", "hf"))
    if "/" in text and hint and first not in ("openai", "hf") and not Path(text).expanduser().exists():
        raise ModelError(f"found {text!r}; allowed: rules, openai/NAME, hf/PATH or hf/ORG/NAME{hint}")
    if "/" in text or text.split(":")[0] == "reference" or Path(text).expanduser().exists():
        return
    raise ModelError(
        f"found {text!r}; allowed: rules, openai/NAME, hf/PATH, a checkpoint's folder, a hub id org/name, or "
        f"reference{nearest(text, ('rules', 'reference'))}"
    )
