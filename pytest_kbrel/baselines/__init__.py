"""Baselines: blessed runs read, checked and written, and the figures of papers read."""

from pytest_kbrel.baselines.base import (
    Baseline,
    BaselineCase,
    PublishedCase,
    PublishedFigure,
    session_baseline,
)
from pytest_kbrel.baselines.comparability import (
    MUST_BE_EQUAL,
    Asked,
    Differing,
    helper_differences,
    judge_differences,
    listed_differences,
    prompt_differences,
    same_draw,
    setting_differences,
)
from pytest_kbrel.baselines.format import case_key
from pytest_kbrel.baselines.reading import (
    baseline_directory,
    check_published,
    find_baseline,
    is_there,
    read_baseline,
)
from pytest_kbrel.baselines.writing import (
    check_target,
    commit_of,
    write_baseline,
    write_pack,
)
