"""Steps beside running a case: examples and distractors by similarity, baseline model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel.baselines import Baseline, session_baseline
from pytest_kbrel.errors import ModelError
from pytest_kbrel.evaluation.model_pool import ModelPool
from pytest_kbrel.models.registry import open_encoder
from pytest_kbrel.records import (
    Case,
    Fact,
    settings_of,
)
from pytest_kbrel.settings import RULES

if TYPE_CHECKING:
    from pytest_kbrel.models.embedding import Encoder
    from pytest_kbrel.probes.base import ProbeResult


class Retrieval:
    """The encoders of one process, each opened at first use.

    ``args`` are --kb-judge-args, of which an encoder on a server takes its own. Relative paths start at the
    folder of the suite, which is relative to ``rootpath``.
    """

    def __init__(self, rootpath: Path, args: str) -> None:
        self._rootpath, self._args = rootpath, args
        self._encoders: dict[tuple[str, Path], Encoder] = {}

    def with_examples(self, case: Case) -> Case:
        """Return the case with the few-shot examples of its questions; most cases have none.

        Raises ``KbrelError`` if the encoder cannot be opened or a fact has too few examples.
        """
        if not sum(case.settings.shown):
            return case
        from pytest_kbrel.metrics.text import cosine, tfidf_cosine
        from pytest_kbrel.probes.reliability import with_shots

        if not case.settings.encoder:
            return with_shots(case, tfidf_cosine)
        encoder = self._encoder(case)

        def similar(questions: Sequence[str], examples: Sequence[str]) -> Any:
            return cosine(encoder.embed(questions), encoder.embed(examples))

        return with_shots(case, similar)

    def with_distractors(self, case: Case) -> Case:
        """Return the case with the distractors nearest to each answer, if the suite names an encoder.

        The suite has then drawn more than needed. Raises ``KbrelError`` if the encoder cannot be opened.
        """
        settings = case.settings
        if not settings.encoder:
            return case
        count = getattr(settings, "distractors", 0)
        # Only distractors that were drawn by kind are more than needed.
        drawn = {name for name, _ in case.alike}
        spare = [
            fact
            for fact in case.facts
            if fact.id in drawn and len(fact.negatives) > count
        ]
        if not spare:
            return case
        from pytest_kbrel.metrics.text import cosine
        from pytest_kbrel.probes.reliability import DIGITS

        encoder = self._encoder(case)
        # All texts at once, not in a call for each fact.
        encoder.embed(
            [
                text
                for fact in spare
                for text in (fact.object or "", *fact.negatives)
                if text
            ]
        )

        def nearest(fact: Fact) -> Fact:
            negatives = fact.negatives
            if fact.object is not None:
                row = cosine(encoder.embed([fact.object]), encoder.embed(negatives))[0]
                # Equal similarities keep their order, since sorting is stable.
                order = sorted(
                    range(len(negatives)),
                    key=lambda index: -round(float(row[index]), DIGITS),
                )
                negatives = tuple(negatives[index] for index in order)
            return replace(fact, negatives=negatives[:count])

        chosen = {fact.id: nearest(fact) for fact in spare}
        return replace(
            case, facts=tuple(chosen.get(fact.id, fact) for fact in case.facts)
        )

    def close(self) -> None:
        """Close what the encoders hold."""
        for encoder in self._encoders.values():
            encoder.close()

    def _encoder(self, case: Case) -> Encoder:
        from pytest_kbrel.models.embedding import Encoder

        spec, folder = case.settings.encoder, self._rootpath / Path(case.suite).parent
        if (spec, folder) not in self._encoders:
            opened = partial(open_encoder, spec, self._args, folder)
            self._encoders[spec, folder] = Encoder(spec, opened)
        return self._encoders[spec, folder]


def baseline_of(case: Case, result: ProbeResult, pool: ModelPool) -> Baseline:
    """Return the outcomes of the baseline model as a baseline.

    Raises ``ModelError`` if its responses cannot be measured.
    """
    from pytest_kbrel.gates import check_integrity
    from pytest_kbrel.probes.base import is_judged

    if broken := check_integrity(case, result.table, result.errors).broken:
        raise ModelError(
            f"{case.id}: nothing can be compared with --kb-baseline-model: {broken[0]}"
        )
    model = pool.base()
    assert model is not None
    answered = (case.suite, case.id, result.table, settings_of(case))
    if is_judged(case) and case.judge != RULES:
        # It is the judge of both models also if it was asked nothing yet.
        pool.helper(case.judge)
    return session_baseline(model, [answered], judge=case.judge, helpers=pool.helpers())
