"""Baselines: blessed runs read, checked and written, and the figures of papers read."""

from pytest_kbrel.baselines.base import (
    Baseline,
    BaselineCase,
    PublishedCase,
    PublishedFigure,
    fingerprint_differences,
    helper_differences,
    judge_differences,
)
from pytest_kbrel.baselines.layout import case_key
from pytest_kbrel.baselines.reading import baseline_directory, find_baseline, read_baseline
from pytest_kbrel.baselines.writing import check_target, write_baseline

__all__ = [
    "Baseline",
    "BaselineCase",
    "PublishedCase",
    "PublishedFigure",
    "baseline_directory",
    "case_key",
    "check_target",
    "find_baseline",
    "fingerprint_differences",
    "helper_differences",
    "judge_differences",
    "read_baseline",
    "write_baseline",
]
