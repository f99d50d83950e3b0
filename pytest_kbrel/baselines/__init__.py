"""Baselines: blessed runs read, checked and written, and the figures of papers read."""

from pytest_kbrel.baselines.base import (
    Baseline,
    BaselineCase,
    PublishedCase,
    PublishedFigure,
)
from pytest_kbrel.baselines.comparability import (
    another_tokenizer,
    fingerprint_differences,
    helper_differences,
    incomparable,
    judge_differences,
    listed_differences,
)
from pytest_kbrel.baselines.format import case_key
from pytest_kbrel.baselines.in_session import session_baseline
from pytest_kbrel.baselines.prompt_differences import Asked, asked_differently, setting_differences
from pytest_kbrel.baselines.provenance import commit_of
from pytest_kbrel.baselines.reading import baseline_directory, find_baseline, read_baseline
from pytest_kbrel.baselines.writing import changed_labels, check_target, measured_floor, write_baseline

__all__ = [
    "Asked",
    "Baseline",
    "BaselineCase",
    "PublishedCase",
    "PublishedFigure",
    "another_tokenizer",
    "asked_differently",
    "baseline_directory",
    "case_key",
    "changed_labels",
    "check_target",
    "commit_of",
    "find_baseline",
    "fingerprint_differences",
    "helper_differences",
    "incomparable",
    "judge_differences",
    "listed_differences",
    "measured_floor",
    "read_baseline",
    "session_baseline",
    "setting_differences",
    "write_baseline",
]
