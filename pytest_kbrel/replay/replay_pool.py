"""Who answers where a recorded run is decided again: the record, and helping models it does not know."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pytest_kbrel import __version__
from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation.model_pool import ModelPool
from pytest_kbrel.evaluation.specs import role_of
from pytest_kbrel.models.base import Model
from pytest_kbrel.records import BASELINE, Case, Fingerprint, Request, Response
from pytest_kbrel.replay.recorded_run import Record, not_recorded, read_run
from pytest_kbrel.settings import Settings


class ReplayPool(ModelPool):
    """One process's answers out of a recorded run. The model under test is never loaded.

    A judge or writer of distractors is opened only for what the record does not hold of it.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        super().__init__(settings)
        self.run = read_run(folder)
        self._record = Record(self.run)
        self._folder = os.path.relpath(folder)
        self._recalled: dict[str, Fingerprint] = {}
        self._told_replies = 0
        self._replies = 0
        self._missing: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()

    def ask(self, requests: Sequence[Request], to: str, case: str = "") -> Sequence[Response]:
        """Return one response for each request, in order: a failure where the model's is not recorded.

        Raises :class:`ResponseError` where the record cannot be read, and ``ModelError`` where a helping
        model is needed and cannot be opened, or is another one than in the record.
        """
        recorded = self._record.find(case, to, requests)
        missing = [request for request, response in zip(requests, recorded, strict=True) if response is None]
        if to in ("", BASELINE):
            self._asked[case] += len(requests)
            self._missing[case] += len(missing)
            new = iter(not_recorded(len(missing)))
        else:
            self._replies += len(requests) - len(missing)
            new = iter(self._live(missing, to, case, len(requests)) if missing else ())
        return [next(new) if response is None else response for response in recorded]

    def with_examples(self, case: Case) -> Case | None:
        """Return the case with the examples of its recorded prompts where an encoder chose them.

        So that encoder is not needed. Where words chose them, they do so again.
        """
        if not sum(case.settings.shown) or not case.settings.encoder:
            return None
        from pytest_kbrel.probes.reliability.shots import shots_in

        return shots_in(case, self._record.asked(f"{case.suite}::{case.id}", "answer"))

    def rendered(self, request: Request, case: str = "") -> str:
        """Return the prompt that the recorded run shows of a case, empty where it shows none."""
        return self.run.prompts.get(case, "")

    def unscorable(self) -> str:
        """Return nothing: what could not be scored has its error in the record."""
        return ""

    def notes(self) -> tuple[str, ...]:
        """Return what the recorded run said of its models."""
        return self.run.notes

    def missing_responses(self, case: str) -> str:
        """Say of a case how much of what it asks is not recorded and what that comes from, if any is."""
        missing = self._missing[case]
        if not missing:
            return ""
        total = self._asked[case]
        count = "all" if missing == total else f"{missing} of {total}"
        head = f"{count} requests of this case are not among the responses recorded in {self._folder}"
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

    def model(self) -> Model:
        """Raise ``ModelError``: no model is loaded here."""
        raise ModelError(
            f"no model is loaded where a recorded run is decided again (--kb-from-run={self._folder}); "
            "allowed: a run with --kb-model"
        )

    def fingerprint(self) -> Fingerprint:
        """Say what the model was that gave the recorded responses."""
        return self.run.model

    def base(self) -> Fingerprint | None:
        """Say what the model was that the recorded run compared with, where this one does so again."""
        return self.run.base if self._settings.baseline_model else None

    def helper(self, text: str) -> Fingerprint:
        """Say what the helping model is that ``text`` names: as recorded, or opened where it is new."""
        known = self.run.helper(text)
        if known is None:
            return super().helper(text)
        self._recalled[text] = known
        return known

    def helpers(self) -> tuple[Fingerprint, ...]:
        """Say what all helping models are that took part so far."""
        by_spec = {helper.spec: helper for helper in super().helpers()} | self._recalled
        return tuple(by_spec[spec] for spec in sorted(by_spec))

    def opened(self) -> list[tuple[str, Fingerprint]]:
        """Return nothing: all workers read one record."""
        return []

    def new_helper_counts(self) -> tuple[int, int]:
        """Return how many requests helping models got since the last call, and how many were known."""
        asked, reused = super().new_helper_counts()
        replies, self._told_replies = self._replies - self._told_replies, self._replies
        return asked + replies, reused + replies

    def close(self) -> None:
        """Free the index and the models."""
        self._record.close()
        super().close()

    def _live(self, requests: Sequence[Request], to: str, case: str, of: int) -> Sequence[Response]:
        known = self.run.helper(to)
        try:
            if known is not None:
                self._check_same(to, known)
            return super().ask(requests, to, case)
        except KbrelError as error:
            if known is None:
                raise
            said = str(error).removeprefix(f"{role_of(self._settings, to)}: ")
            raise ModelError(
                f"{role_of(self._settings, to)}: {len(requests)} of {of} replies that {case} needs of {to} "
                f"are not recorded in {self._folder}, so that it has to be asked: {said}"
            ) from None

    def _check_same(self, to: str, known: Fingerprint) -> None:
        """Refuse to join the replies of two models that go by one name."""
        from pytest_kbrel.baselines import helper_differences

        differing = helper_differences("now and then", self.helper_models.fingerprint(to), known)
        if differing:
            raise ModelError(
                f"it is not the model that was recorded: {differing[0]}; allowed: the same one, or one under "
                "another name, which is then asked everything"
            )
