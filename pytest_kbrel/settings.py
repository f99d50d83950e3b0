"""The settings of one run, as one frozen record."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.catalogue.verdicts import failing
from pytest_kbrel.errors import ModelError
from pytest_kbrel.records import BASELINE, Judgement, Shard, is_published, record

if TYPE_CHECKING:
    from pytest_kbrel.models.base import Spec

# The judge that is no model.
RULES = "rules"
# Who writes distractors where no model does.
FACTS = "facts"
# What a report records, in any case or where it is given.
_RECORDED = (
    *("model", "model_args", "device", "dtype", "batch_size", "apply_chat_template"),
    *("judge", "judge_args", "baseline", "baseline_model", "inconclusive"),
    *("limit", "seed"),
)
_RECORDED_IF_GIVEN = ("top_k", "until_decided")


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """The spec of a model, parsed once when the settings are read, or the error that parsing raised.

    The error waits because settings of an ini file may be wrong as long as nobody needs the model.
    """

    spec: Spec | None = None
    error: ModelError | None = None

    def get(self) -> Spec:
        """Return the spec; raise the ``ModelError`` of its parsing."""
        if self.spec is None:
            raise ModelError(str(self.error or "no model is named"))
        return self.spec


@record
class Settings:
    """Everything the user asked for, from flags, environment and ini file, checked and with parsed specs."""

    model: str
    model_args: str = ""
    device: str = "auto"
    dtype: str = "auto"
    batch_size: str = "auto"
    apply_chat_template: bool = False
    judge: str = RULES
    judge_args: str = ""
    baseline: str = ""
    baseline_update: str | None = None
    inconclusive: str = "warn"
    limit: int | float | None = None
    seed: int | None = None
    output_path: Path = Path()
    # None keeps nothing.
    use_cache: Path | None = None
    from_run: Path | None = None
    # Recorded runs that are joined with it, since each is a shard.
    joined: tuple[Path, ...] = ()
    plan: bool = False
    # Where the requests are written that would be asked.
    export_requests: Path | None = None
    prices: tuple[float, float] | None = None
    # Whether the figures of cases are properties in the JUnit file, in place of output.
    junit_properties: bool = False
    baseline_model: str = ""
    baseline_reason: str = ""
    # The most facts that are asked where cases stop once they are decided, or a word for any number.
    until_decided: str = ""
    # How many of the most probable tokens are recorded at the positions of answers.
    top_k: int = 0
    # The GPUs that each worker gets for itself, where the user says so.
    gpus_per_worker: int | None = None
    # The share that is asked, where it is not all.
    shard: Shard | None = None
    today: datetime.date | None = None
    run: str = ""
    # Where pytest was called, with how many workers, and whether waivers have no effect.
    here: Path = Path()
    workers: str = "0"
    without_waivers: bool = False
    # Of the models by their names in ``Ask.to``: the one under test, the baseline model, the judge.
    specs: Mapping[str, ParsedSpec] = field(default_factory=dict)

    @property
    def budget(self) -> int | None:
        """The most facts that are asked, ``None`` for all of them."""
        return int(self.until_decided) if self.until_decided.isdecimal() else None

    @property
    def compared_with(self) -> str:
        """The baseline or the model that the run is compared with, as the user named it, or ``""``."""
        return self.baseline or self.baseline_model

    @property
    def recorded(self) -> tuple[Path, ...]:
        """The folders of the recorded runs that are decided again, empty where a model answers."""
        return () if self.from_run is None else (self.from_run, *self.joined)

    @property
    def has_max_cost(self) -> bool:
        """Whether the model under test may spend only so much money."""
        return "max_cost" in self.model_args

    @property
    def failing(self) -> set[Judgement]:
        """The verdicts that fail a case under these settings."""
        # A paper has not measured all that a suite may ask; a blessed run has.
        compared = bool(self.compared_with) and not is_published(self.compared_with)
        # A shard leaves all to the run that joins it.
        strict = self.inconclusive == "fail" and self.shard is None
        return failing(compared=compared, strict=strict)

    @property
    def texts(self) -> dict[str, str]:
        """The settings that a report records, as texts; an unset one is empty."""
        given = filter(lambda name: getattr(self, name), _RECORDED_IF_GIVEN)
        values = {name: getattr(self, name) for name in (*_RECORDED, *given)}
        texts = {name: "" if of is None else str(of) for name, of in values.items()}
        return texts | {"apply_chat_template": str(self.apply_chat_template).lower()}

    @property
    def own_specs(self) -> list[Spec]:
        """The specs of the models that the run is about; ``ModelError`` where one of them is wrong."""
        return [self.specs[to].get() for to in ("", BASELINE) if to in self.specs]
