"""The settings a probe may have in a suite file: type, range, default and meaning of each.

The checks, the JSON Schema and the probes' settings records all follow this table.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_kbrel.bounds import COUNT, DISTRACTORS, NEW_TOKENS, Bounds
from pytest_kbrel.catalogue.metrics import SLICE_BY
from pytest_kbrel.records import (
    HeadToTailSettings,
    MonitorSettings,
    ProbeName,
    ReliabilitySettings,
    record,
)

SUITE_KEYS = (
    "suite",
    "facts",
    "format",
    "relations",
    "seed",
    "uninformative",
    "language",
    "integrity",
    "monitor",
    "head_to_tail",
    "reliability",
    "overall",
    "waivers",
)
COMMON_KEYS = ("slices", "limit", "gates", "overall", "integrity")
SLICE_KEYS = ("limit", "gates")
UNSEEN_KEYS = ("count", "as_of", "expires")
SHOT_KEYS = ("seen", "unseen")
# The sizes of the paper's two repositories (section 3.4).
SHOTS = {"seen": 280, "unseen": 40}


@record
class Setting:
    """One setting: a choice where ``options`` are given, otherwise a whole number within ``bounds``.

    With ``plain`` it is one of these words or the spec of a model.
    """

    help: str
    options: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    bounds: Bounds = COUNT
    default: str | int | None = None


# What stands around a question; texts with places to fill in, or of more lines.
_SYSTEM = "The system message."
_CUE = "What stands behind a question, on a line of its own."
_STOP = "The texts at which an answer ends; an empty list: none."
_STYLE = Setting(
    help="Whether examples stand in the prompt's text or are earlier turns of a conversation.",
    options=("text", "turns"),
    default=HeadToTailSettings().example_style,
)
WORDING: Mapping[ProbeName, Mapping[str, str]] = {
    "monitor": {
        "prompt": "The text around a frame, with {question}; default: the frame alone.",
        "system": _SYSTEM,
        "answer_cue": _CUE,
        "stop": _STOP,
    },
    "head_to_tail": {
        "prompt": "Which examples are shown, the text with {examples} and {question}, or both.",
        "system": _SYSTEM,
        "answer_cue": _CUE,
        "stop": _STOP,
    },
    "reliability": {
        "prompt": "The text around a question, with {examples} and {question}.",
        "choice_prompt": "The text of a multiple-choice question, with {question} and {options}.",
        "system": _SYSTEM,
        "answer_cue": _CUE,
        "stop": _STOP,
    },
}
# The places in a text that must be filled in, and those that may be.
PLACES: Mapping[ProbeName, Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "monitor": {"prompt": (("question",), ())},
    "head_to_tail": {"prompt": (("question",), ("examples",))},
    "reliability": {
        "prompt": (("question",), ("examples",)),
        "choice_prompt": (("question", "options"), ()),
    },
}
# What a head_to_tail prompt may be by name.
H2T_PROMPTS = ("few-shot", "zero-shot", "in-domain", "concise")
PROMPT_KEYS = ("setting", "text")


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
        "max_new_tokens": Setting(
            help="Longest answer in tokens.", bounds=NEW_TOKENS, default=MonitorSettings().max_new_tokens
        ),
        "formats": Setting(
            help="Questions only, or word prediction and fact checking of the relation's statements as well.",
            options=("questions", "all"),
            default=MonitorSettings().formats,
        ),
        "study": Setting(
            help="The cells MONITOR needs, or all frames after all contexts, with the cost of both counted.",
            options=("monitor", "full"),
            default=MonitorSettings().study,
        ),
        "ablation": Setting(
            help="How many frames monitor_ablated is computed over, the first one among them.",
            default=MonitorSettings().ablation,
        ),
    },
    "head_to_tail": {
        "bucket_by": Setting(
            help="Subjects within a relation or a domain by popularity, or predicates within a domain.",
            options=("relation", "domain", "predicate"),
            default="relation",
        ),
        "example_style": _STYLE,
        "max_new_tokens": Setting(
            help="Longest answer in tokens.",
            bounds=NEW_TOKENS,
            default=HeadToTailSettings().max_new_tokens,
        ),
    },
    "reliability": {
        "slice_by": Setting(
            help="Whether slices are made by the answers' type or by the facts' dataset as well.",
            options=SLICE_BY,
            default="none",
        ),
        "choices": Setting(
            help="K, the number of multiple-choice questions a fact.", default=ReliabilitySettings().choices
        ),
        "distractors": Setting(
            help="How many wrong objects the questions draw their three from.",
            bounds=DISTRACTORS,
            default=ReliabilitySettings().distractors,
        ),
        "distractors_from": Setting(
            help="Who writes the wrong options: facts, or the spec of a model such as openai/NAME.",
            plain=("facts",),
            default=ReliabilitySettings().distractors_from,
        ),
        "retrieval": Setting(
            help="What finds what is most alike: tfidf, or an encoder: hf/PATH, openai/NAME.",
            plain=("tfidf",),
            default=ReliabilitySettings().retrieval,
        ),
        "example_style": _STYLE,
        "controls": Setting(
            help="counted: controls that ask nothing. asked: the subject-shuffled one as well.",
            options=("counted", "asked"),
            default=ReliabilitySettings().controls,
        ),
        "max_new_tokens": Setting(
            help="Longest answer in tokens.",
            bounds=NEW_TOKENS,
            default=ReliabilitySettings().max_new_tokens,
        ),
    },
}
# Keys of a probe that are no plain setting.
OWN_KEYS: Mapping[ProbeName, tuple[str, ...]] = {
    "monitor": (),
    "head_to_tail": (),
    "reliability": ("relations", "unseen", "shots"),
}


def probe_keys(probe: ProbeName) -> tuple[str, ...]:
    """Return all keys that may stand under a probe."""
    return (*COMMON_KEYS, *WORDING[probe], *SETTINGS[probe], *OWN_KEYS[probe])
