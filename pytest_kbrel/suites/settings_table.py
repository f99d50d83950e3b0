"""The keys of a suite file: the checks and the JSON Schema follow these lists."""

from __future__ import annotations

from pytest_kbrel.catalogue.probes import PROBES, Probe

SUITE_KEYS = (
    "suite",
    "facts",
    "format",
    "relations",
    "seed",
    "uninformative",
    "language",
    "integrity",
    *PROBES,
    "overall",
    "waivers",
)
COMMON_KEYS = ("slices", "limit", "gates", "overall", "integrity")
SLICE_KEYS = ("limit", "gates")
UNSEEN_KEYS = ("count", "as_of", "expires")
SHOT_KEYS = ("seen", "unseen")
# The sizes of the paper's two repositories (section 3.4).
SHOTS = {"seen": 280, "unseen": 40}


PROMPT_KEYS = ("setting", "text")


def probe_keys(probe: Probe) -> tuple[str, ...]:
    """Return all keys that may stand under a probe."""
    return (*COMMON_KEYS, *probe.wording, *probe.options, *probe.own_keys)
