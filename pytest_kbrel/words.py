"""Words of flags and node ids that pytest's plugin reads in every run, and other rooms as well."""

from __future__ import annotations

from pytest_kbrel.bounds import LIMIT

SUITE_SUFFIX = ".kb.yaml"
# The folder of the reports and that of the kept answers, where no flag says otherwise.
DEFAULT_OUTPUT, DEFAULT_CACHE = "kbrel-report", ".kbrel-cache"
# The value of --kb-use-cache for no cache.
NO_CACHE = "off"
# The values of --kb-until-decided for no budget, and for asking everything.
NO_BUDGET, ASK_ALL = "all", "off"


def is_misnamed(name: str) -> bool:
    """Return True if a file's name is that of a suite but for its ending: ``w.kb.yml``, ``w.KB.yaml``."""
    return name.lower().endswith((SUITE_SUFFIX, ".kb.yml")) and not name.endswith(
        SUITE_SUFFIX
    )


def in_suite(nodeid: str) -> bool:
    """Return True if a node id is that of a suite or of an item in one."""
    return nodeid.split("::", 1)[0].endswith(SUITE_SUFFIX)


def budget_value(text: str) -> str:
    """Read how many facts --kb-until-decided asks at most, or its word for any number; ``""`` for none."""
    if text in ("", ASK_ALL, NO_BUDGET):
        return "" if text == ASK_ALL else text
    return str(LIMIT.integer(text))
