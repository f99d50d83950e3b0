"""What the page shows besides the run: the baseline's outcomes, recorded responses, figures of a paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_kbrel.records import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """A model of a paper: its name, the setting it was asked in, and its figures over all slices."""

    name: str
    setting: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the page shows besides the run. Parts that are missing have no plot and no list on the page.

    ``baseline`` are the outcomes of the baseline by node id, ``responses`` is the file with the recorded
    responses of the run, ``published`` are the models of the paper on reliable knowledge bases.
    """

    baseline: Mapping[str, Table] = field(default_factory=dict)
    responses: Path | None = None
    published: tuple[PublishedModel, ...] = ()
