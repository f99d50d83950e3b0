"""Model pool of a run that is decided again: recorded responses, and live helper models for those missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_kbrel import __version__
from pytest_kbrel.baselines import helper_differences
from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.evaluation.model_pool import ModelPool, role_of
from pytest_kbrel.models.base import Model
from pytest_kbrel.records import (
    BASELINE,
    Case,
    Failed,
    Fingerprint,
    Request,
    Response,
)
from pytest_kbrel.replay.joined import names_of, read_runs
from pytest_kbrel.replay.recorded_responses import RecordedResponses
from pytest_kbrel.settings import Settings


class ReplayPool(ModelPool):
    """Pool that answers from a recorded run; the model under test is never loaded.

    A helper model is opened only for requests whose responses are not recorded.
    """

    def __init__(self, settings: Settings, folders: Sequence[Path]) -> None:
        super().__init__(settings)
        self.run = read_runs(folders)
        self._responses = RecordedResponses(self.run)
        self._folder = names_of(folders)
        self._recorded_helpers: dict[str, Fingerprint] = {}
        # Recorded responses of helper models, and how many of them were reported.
        self._helper_responses = self._reported_responses = 0

    def ask(
        self, requests: Sequence[Request], to: str, case: str = ""
    ) -> Sequence[Response]:
        """Return one response for each request, in order: a failure where the model's is not recorded.

        Raises :class:`ResponseError` where the recorded responses cannot be read, and ``ModelError`` where
        the recorded run lacks some since it did not end the case, and where a helper model is needed and
        cannot be opened, or is not the recorded one.
        """
        recorded = self._responses.find(case, to, requests)
        missing = [
            request
            for request, response in zip(requests, recorded, strict=True)
            if response is None
        ]
        if missing and (why := self.run.unended.get(case)):
            # A suite may allow a few facts without a response, and these were never asked.
            raise ModelError(
                f"not decided, since the recorded run did not end this case: {why}"
            )
        if to in ("", BASELINE):
            self._requests[case] += len(requests)
            self._missing[case] += len(missing)
            return [
                Failed(error="not recorded") if response is None else response
                for response in recorded
            ]
        self._helper_responses += len(requests) - len(missing)
        live = iter(self._live(missing, to, case, len(requests)) if missing else ())
        return [next(live) if response is None else response for response in recorded]

    def with_examples(self, case: Case) -> Case | None:
        """Return the case with the examples of its recorded prompts, ``None`` where no encoder chose them.

        The encoder is then not needed.
        """
        if not sum(case.settings.shown) or not case.settings.encoder:
            return None
        from pytest_kbrel.probes.reliability.shots import shots_in

        return shots_in(
            case, self._responses.requests(f"{case.suite}::{case.id}", "answer")
        )

    def rendered(self, request: Request, case: str = "") -> str:
        """Return the prompt that the recorded report shows of a case, empty where it shows none."""
        # Of a joined run it is that of the shard with the first fact.
        source = self.run.sources[self._responses.source_of(case, request)]
        return source.prompts.get(case, "")

    def unscorable(self) -> str:
        """Return ``""``: what could not be scored has its error among the recorded responses."""
        return ""

    def notes(self) -> tuple[str, ...]:
        """Return the recorded remarks about the models."""
        return self.run.notes

    def recorded_looks(self, case: str) -> int | None:
        """Return how many looks the recorded run took at a case; ``None`` where it asked all at once."""
        return self.run.looks.get(case)

    def missing_responses(self, case: str) -> str:
        """Return how many requests of a case are not recorded, and why, in words; empty if all are."""
        missing, total = self._missing[case], self._requests[case]
        if not missing:
            return ""
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
        """Raise ``ModelError``, since no model is loaded."""
        raise ModelError(
            f"no model is loaded where a recorded run is decided again (--kb-from-run={self._folder}); "
            "allowed: a run with --kb-model"
        )

    def fingerprint(self) -> Fingerprint:
        """Return the recorded fingerprint of the model under test."""
        return self.run.model

    def base(self) -> Fingerprint | None:
        """Return the recorded fingerprint of the baseline model, ``None`` without one in this run."""
        return self.run.base if self._settings.baseline_model else None

    def helper(self, text: str) -> Fingerprint:
        """Return the fingerprint of the helper model that ``text`` names, as recorded if it is."""
        recorded = self.run.helper(text)
        if recorded is None:
            return super().helper(text)
        self._recorded_helpers[text] = recorded
        return recorded

    def helpers(self) -> tuple[Fingerprint, ...]:
        """Return the fingerprints of all helper models used so far, by spec."""
        by_spec = {
            helper.spec: helper for helper in super().helpers()
        } | self._recorded_helpers
        return tuple(by_spec[spec] for spec in sorted(by_spec))

    def opened(self) -> tuple[tuple[str, Fingerprint], ...]:
        """Return the recorded fingerprints, and those of helper models that had to be opened."""
        base = self.base()
        return (
            ("", self.run.model),
            *([] if base is None else [(BASELINE, base)]),
            *((helper.spec, helper) for helper in self.helpers()),
        )

    def _new_helper_counts(self) -> tuple[int, int]:
        requested, reused = super()._new_helper_counts()
        new = self._helper_responses - self._reported_responses
        self._reported_responses = self._helper_responses
        return requested + new, reused + new

    def close(self) -> None:
        """Free the index and the models."""
        self._responses.close()
        super().close()

    def _live(
        self, requests: Sequence[Request], to: str, case: str, total: int
    ) -> Sequence[Response]:
        """Return responses of the opened helper model ``to``, which must be the recorded one of this name."""
        recorded = self.run.helper(to)
        if recorded is None:
            return super().ask(requests, to, case)
        try:
            if differing := helper_differences(
                "now and then", super().helper(to), recorded
            ):
                raise ModelError(
                    f"it is not the model that was recorded: {differing[0]}; allowed: the same one, or one "
                    "under another name, which is then asked everything"
                )
            return super().ask(requests, to, case)
        except KbrelError as error:
            role = role_of(self._settings, to)
            raise ModelError(
                f"{role}: {len(requests)} of {total} replies that {case} needs of {to} are not recorded in "
                f"{self._folder}, so that it has to be asked: {str(error).removeprefix(f'{role}: ')}"
            ) from None
