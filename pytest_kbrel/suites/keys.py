"""The settings a probe may have in a suite file: type, range, default and meaning of each.

The checks, the JSON Schema and the probes' settings records all follow this table.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.records import (
    HeadToTailSettings,
    MonitorSettings,
    ProbeName,
    ReliabilitySettings,
    record,
)

SUITE_KEYS = ("suite", "facts", "relations", "seed", "monitor", "head_to_tail", "reliability")
COMMON_KEYS = ("slices", "limit", "gates", "overall")
SLICE_KEYS = ("limit", "gates")
UNSEEN_KEYS = ("count", "as_of", "expires")


@record
class Setting:
    """One setting: a choice where ``options`` are given, otherwise a whole number of at least ``least``."""

    help: str
    options: tuple[str, ...] = ()
    least: int = 1
    default: str | int | None = None


SETTINGS: Mapping[ProbeName, Mapping[str, Setting]] = {
    "monitor": {
        "variant": Setting(
            help="definition: the paper's formulas, every fact. published: as the authors' script does it.",
            options=("definition", "published"),
            default=MonitorSettings().variant,
        ),
        "negatives": Setting(
            help="M, the number of misleading contexts a fact; fewer where the relation has fewer objects.",
            default=MonitorSettings().negatives,
        ),
        "max_new_tokens": Setting(help="Longest answer in tokens.", default=MonitorSettings().max_new_tokens),
    },
    "head_to_tail": {
        "bucket_by": Setting(
            help="Within what popularities can be compared.",
            options=("relation", "domain"),
            default="relation",
        ),
        "prompt": Setting(
            help="With two examples, one of them unanswerable, or without.",
            options=("few-shot", "zero-shot"),
            default=HeadToTailSettings().prompt,
        ),
        "max_new_tokens": Setting(
            help="Longest answer in tokens.", default=HeadToTailSettings().max_new_tokens
        ),
    },
    "reliability": {
        "choices": Setting(
            help="K, the number of multiple-choice questions a fact.", default=ReliabilitySettings().choices
        ),
        "distractors": Setting(
            help="How many wrong objects the questions draw their three from.",
            least=4,
            default=ReliabilitySettings().distractors,
        ),
        "max_new_tokens": Setting(
            help="Longest answer in tokens.", default=ReliabilitySettings().max_new_tokens
        ),
    },
}
# Keys of a probe that are no plain setting.
OWN_KEYS: Mapping[ProbeName, tuple[str, ...]] = {
    "monitor": (),
    "head_to_tail": (),
    "reliability": ("relations", "unseen"),
}


def probe_keys(probe: ProbeName) -> tuple[str, ...]:
    """Return all keys that may stand under a probe."""
    return (*COMMON_KEYS, *SETTINGS[probe], *OWN_KEYS[probe])
