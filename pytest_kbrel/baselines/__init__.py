"""Blessed runs: read, checked and written."""

from pytest_kbrel.baselines.layout import case_key
from pytest_kbrel.baselines.reading import (
    Baseline,
    BaselineCase,
    baseline_directory,
    fingerprint_differences,
    read_baseline,
)
from pytest_kbrel.baselines.writing import check_target, write_baseline

__all__ = [
    "Baseline",
    "BaselineCase",
    "baseline_directory",
    "case_key",
    "check_target",
    "fingerprint_differences",
    "read_baseline",
    "write_baseline",
]
