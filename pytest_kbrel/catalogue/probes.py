"""Table of the probes: names, settings, keys of suite files, slices and headline metrics of each.

Questions and outcomes are made in ``probes/``, formulas are in ``metrics/``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal

from pytest_kbrel.bounds import COUNT, DISTRACTORS, NEW_TOKENS, Bounds
from pytest_kbrel.catalogue.metrics import (
    OVERALL_METRICS,
    SLICE_METRICS,
    Metric,
    SliceKind,
)
from pytest_kbrel.records import (
    ANSWER_CUE,
    ANSWER_TYPES,
    BUCKETS,
    CaseKind,
    HeadToTailSettings,
    MonitorSettings,
    ProbeName,
    ProbeSettings,
    ReliabilitySettings,
    record,
)

# What a probe's slices are: the relations of a suite, the popularity buckets of its domains, the facts' own
# groups, or known and unseen knowledge in each prompt setting.
Slicing = Literal["relation", "bucket", "group", "knowledge"]
KINDS: tuple[Literal["known", "unseen"], ...] = ("known", "unseen")
# The first one is that of slices whose names have no setting.
PROMPTS = ("auto", "zero-shot", "few-shot", "four-shot", "four-shot-2", "chat")
SLICE_BY = ("none", "answer_type", "dataset")
# The most popular tenth of a domain's head; the other buckets share out all facts.
TOP10 = "top10"


@record
class Setting:
    """One setting: a choice where ``options`` are given, otherwise a whole number within ``bounds``.

    With ``plain`` it is one of these words or the spec of a model.
    """

    help: str
    options: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    bounds: Bounds = COUNT


# The places in a text that must be filled in, and those that may be.
Places = tuple[tuple[str, ...], tuple[str, ...]]


@record
class Probe:
    """One probe: an experiment that asks a model about facts in its own way.

    - ``name`` is its key in suite files and node ids, ``title`` what reports call it, ``settings`` the record
      of how it asks.
    - ``slicing``: what its slices are. ``kinds``: the kinds of slice that have metrics of their own; where
      there are several, a slice's name begins with its kind.
    - ``reads``: what each fact needs: a ``question``; ``contexts``, which are frames of its relation and
      wrong objects (``Fact.negatives``); or ``distractors``: a question and wrong objects like the right one.
    - ``headline``: the metrics that tell most, by kind of slice. ``brief_overall``: of the figures over
      slices the terminal shows these only. ``pairs``: the figures whose correlation is reported.
    - ``scored``: it asks how probable given texts are, so that models without token probabilities cannot be
      asked. ``judged``: a model as judge may decide whether answers are right. ``brief_answers``: answers are
      short on purpose, and being cut off is no fault. ``drops_facts``: the first answer may drop a fact.
      ``chunk``: facts asked at once, so many that a round has about 20,000 requests; shorter rounds share
      less, and leave a model with little to do at the end of each.
    - ``options``, ``wording`` and ``own_keys`` are its keys in a suite file: plain settings, texts with their
      meaning, and others. ``places``: what the texts hold, by key. ``prompts``: the settings that the key
      ``prompt`` may name beside a text. ``cue``: what stands behind a question where the suite is silent.
    - ``setting_needs``: metrics of slices that there are only with a setting: (key, value).
      ``overall_needs``: figures over slices that mean nothing unless these parts are there; all others need
      one of ``any_part``. ``subsets``: parts whose facts are in another slice too. ``overall_by``: the
      setting for each value of which there are figures over slices.
    """

    name: ProbeName
    title: str
    settings: type[ProbeSettings]
    slicing: Slicing
    kinds: tuple[SliceKind, ...]
    reads: Literal["question", "contexts", "distractors"]
    headline: Mapping[SliceKind, tuple[str, ...]]
    pairs: tuple[tuple[str, str], ...]
    options: Mapping[str, Setting]
    wording: Mapping[str, str]
    places: Mapping[str, Places]
    chunk: int
    brief_overall: bool = False
    scored: bool = False
    judged: bool = True
    brief_answers: bool = False
    drops_facts: bool = False
    own_keys: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    cue: str = ANSWER_CUE
    setting_needs: Mapping[str, tuple[str, str | int]] = dataclasses.field(
        default_factory=dict
    )
    overall_needs: Mapping[str, tuple[str, ...]] = dataclasses.field(
        default_factory=dict
    )
    any_part: tuple[str, ...] = ()
    subsets: tuple[str, ...] = ()
    overall_by: str = ""

    def default(self, option: str) -> str | int:
        """Return what a plain setting is where the suite is silent: the first of its words, or a number."""
        of = self.options[option]
        words: tuple[str | int, ...] = of.options or of.plain
        return words[0] if words else int(getattr(self.settings(), option))

    def kind(self, slice_name: str) -> SliceKind:
        """Return the kind of a slice by its name; the first kind where the name says none."""
        first = slice_name.partition("-")[0]
        return next((kind for kind in self.kinds if kind == first), self.kinds[0])

    def part(self, slice_name: str) -> str:
        """Return the part of a slice's name that figures over slices ask for: its bucket, or its kind."""
        if self.slicing == "bucket":
            return slice_name.rpartition("-")[2]
        return self.kind(slice_name) if self.slicing == "knowledge" else slice_name

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics that some slice of the probe has."""
        return {
            name: metric
            for kind in self.kinds
            for name, metric in SLICE_METRICS[kind].items()
        }

    def is_overall(self, slice_name: str) -> bool:
        """Return True for the name of figures over slices; of several settings each has some of its own."""
        of_setting = bool(self.overall_by) and slice_name.startswith("overall-")
        return slice_name == "overall" or of_setting

    @property
    def overall_metrics(self) -> Mapping[str, Metric]:
        """The metrics over slices of the probe."""
        return OVERALL_METRICS[self.name]

    @property
    def headlines(self) -> tuple[str, ...]:
        """The metrics that tell most, of all kinds of slice."""
        return tuple(name for kind in self.kinds for name in self.headline[kind])


_STYLE = Setting(
    help="Whether examples stand in the prompt's text or are earlier turns of a conversation.",
    options=("text", "turns"),
)
_WORDINGS = Setting(
    help="In how many wordings each fact is asked: its question, its other ones, its relation's other frames.",
)
# These depend on the order of single answers, and not on a fact's mean over its wordings.
_ONE_WORDING = dict.fromkeys(
    ("auroc", "ece", "accuracy_at_80", "accuracy_at_50"), ("wordings", 1)
)
# What stands around a question; texts with places to fill in, or of more lines.
_AROUND = {
    "system": "The system message.",
    "answer_cue": "What stands behind a question, on a line of its own.",
    "stop": "The texts at which an answer ends; an empty list: none.",
}
_QUESTION: Places = (("question",), ())
_EXAMPLES: Places = (("question",), ("examples",))
_SCORES = ("rules", "em", "f1", "rouge_l")


_NEW_TOKENS = Setting(help="Longest answer in tokens.", bounds=NEW_TOKENS)


MONITOR = Probe(
    name="monitor",
    title="MONITOR",
    settings=MonitorSettings,
    slicing="relation",
    kinds=("monitor",),
    reads="contexts",
    headline={"monitor": ("monitor", "pfd", "ird", "anchor_prob", "accuracy")},
    brief_overall=True,
    pairs=(
        ("monitor", "accuracy"),
        ("monitor", "accuracy_std"),
        ("monitor", "monitor_ablated"),
    ),
    options={
        "variant": Setting(
            help="definition: the paper's formulas, every fact. published: as the authors' script does it.",
            options=("definition", "published"),
        ),
        "negatives": Setting(
            help="M, the number of misleading contexts a fact; fewer where the relation has fewer objects.",
        ),
        "max_new_tokens": _NEW_TOKENS,
        "formats": Setting(
            help="Questions only, or word prediction and fact checking of the relation's statements as well.",
            options=("questions", "all"),
        ),
        "study": Setting(
            help="The cells MONITOR needs, or all frames after all contexts, with the cost of both counted.",
            options=("monitor", "full"),
        ),
        "ablation": Setting(
            help="How many frames monitor_ablated is computed over, the first one among them.",
        ),
    },
    wording={
        "prompt": "The text around a frame, with {question}; default: the frame alone.",
        **_AROUND,
    },
    places={"prompt": _QUESTION},
    cue="",
    chunk=1024,
    scored=True,
    judged=False,
    brief_answers=True,
    drops_facts=True,
    setting_needs={
        **dict.fromkeys(
            ("accuracy_wp", "accuracy_fc_pos", "accuracy_fc_neg"), ("formats", "all")
        ),
        **dict.fromkeys(
            ("calls_study", "tokens_study", "saving_calls", "saving_tokens"),
            ("study", "full"),
        ),
    },
)

HEAD_TO_TAIL = Probe(
    name="head_to_tail",
    title="Head-to-Tail",
    settings=HeadToTailSettings,
    slicing="bucket",
    kinds=("head_to_tail",),
    reads="question",
    headline={"head_to_tail": ("accuracy", "hallucination", "missing", "unparsable")},
    pairs=tuple(
        (f"{name}_{score}", name)
        for name in ("accuracy", "hallucination")
        for score in _SCORES
    ),
    options={
        "bucket_by": Setting(
            help="Subjects within a relation or a domain by popularity, or predicates within a domain.",
            options=("relation", "domain", "predicate"),
        ),
        "example_style": _STYLE,
        "wordings": _WORDINGS,
        "max_new_tokens": _NEW_TOKENS,
    },
    wording={
        "prompt": "Which examples are shown, the text with {examples} and {question}, or both; auto: chat "
        "under a chat template, few-shot without.",
        **_AROUND,
    },
    places={"prompt": _EXAMPLES},
    prompts=("auto", "few-shot", "zero-shot", "in-domain", "concise", "chat"),
    chunk=16384,
    setting_needs=_ONE_WORDING,
    overall_needs={
        "gap": ("head", "tail"),
        "accuracy_head": ("head",),
        "accuracy_torso": ("torso",),
        "accuracy_tail": ("tail",),
        "accuracy_top10": (TOP10,),
    },
    # The top tenth is part of the head and counts in no figure over all facts.
    any_part=BUCKETS,
    subsets=(TOP10,),
)

RELIABILITY = Probe(
    name="reliability",
    title="Reliable KB",
    settings=ReliabilitySettings,
    slicing="knowledge",
    kinds=KINDS,
    reads="distractors",
    # Of unseen knowledge the question is whether the model says so: nothing it answers is right.
    headline={
        "known": ("cr", "wr", "ncr", "c_correct", "nccr", "unparsable"),
        "unseen": ("ur", "c_wrong", "iur"),
    },
    pairs=(("ncr", "ur"), ("nccr", "iur"), ("c_correct", "c_wrong")),
    options={
        "slice_by": Setting(
            help="Whether slices are made by the answers' type or by the facts' dataset as well.",
            options=SLICE_BY,
        ),
        "choices": Setting(
            help="K, the number of multiple-choice questions a fact.",
        ),
        "distractors": Setting(
            help="How many wrong objects the questions draw their three from.",
            bounds=DISTRACTORS,
        ),
        "distractors_from": Setting(
            help="Who writes the wrong options: facts, or the spec of a model such as openai/NAME.",
            plain=("facts",),
        ),
        "retrieval": Setting(
            help="What finds what is most alike: tfidf, or an encoder: hf/PATH, openai/NAME.",
            plain=("tfidf",),
        ),
        "example_style": _STYLE,
        "wordings": _WORDINGS,
        "controls": Setting(
            help="counted: controls that ask nothing. asked: the subject-shuffled one as well.",
            options=("counted", "asked"),
        ),
        "max_new_tokens": _NEW_TOKENS,
    },
    wording={
        "prompt": "The text around a question, with {examples} and {question}.",
        "choice_prompt": "The text of a multiple-choice question, with {examples}, {question} and {options}.",
        **_AROUND,
    },
    places={
        "prompt": _EXAMPLES,
        "choice_prompt": (("question", "options"), ("examples",)),
    },
    own_keys=("relations", "unseen", "shots"),
    chunk=512,
    setting_needs=_ONE_WORDING,
    overall_needs={
        **dict.fromkeys(("nccr", "ncr"), ("known",)),
        **dict.fromkeys(("ur", "iur"), ("unseen",)),
        **dict.fromkeys(("c_wrong", "avg"), ("known", "unseen")),
    },
    overall_by="prompt",
)

# Head-to-Tail's questions about facts of which nobody knows how popular they are.
QUESTIONS = dataclasses.replace(
    HEAD_TO_TAIL,
    name="questions",
    title="Questions",
    slicing="group",
    pairs=(),
    options={
        name: setting
        for name, setting in HEAD_TO_TAIL.options.items()
        if name != "bucket_by"
    },
    overall_needs={},
    any_part=(),
    subsets=(),
)

# In the order of suite files, runs and reports.
PROBES: Mapping[ProbeName, Probe] = {
    probe.name: probe for probe in (QUESTIONS, MONITOR, HEAD_TO_TAIL, RELIABILITY)
}
# Where two probes share them, the later one stands for both.
_BY_SETTINGS = {probe.settings: probe for probe in PROBES.values()}


def probe_of_settings(settings: ProbeSettings) -> Probe:
    """Return the probe that asks under ``settings``."""
    return _BY_SETTINGS[type(settings)]


def probe_named(kind: CaseKind | str) -> Probe | None:
    """Return the probe of this name; ``None`` for kinds of cases that are of all probes or of none."""
    return next((probe for name, probe in PROBES.items() if name == kind), None)


_RELIABILITY_SLICE = re.compile(
    rf"({'|'.join(KINDS)})(?:-(.+?))??(?:-({'|'.join(PROMPTS[1:])}))?"
)


@record
class ReliabilitySlice:
    """The parts of a reliability slice's name; ``group`` is empty where the suite makes no groups.

    ``prompt`` is ``auto`` where the name has no setting.
    """

    group: str
    prompt: str


def reliability_slice(name: str) -> ReliabilitySlice | None:
    """Return the parts of a reliability slice's name; ``None`` where it is no such name."""
    match = _RELIABILITY_SLICE.fullmatch(name)
    if match is None:
        return None
    return ReliabilitySlice(group=match[2] or "", prompt=match[3] or PROMPTS[0])


def slice_name(kind: str, group: str, prompt: str) -> str:
    """Return the name of a reliability slice."""
    setting = "" if prompt == PROMPTS[0] else prompt
    return "-".join(part for part in (kind, group, setting) if part)


def reliability_slices(slice_by: str) -> tuple[str, ...]:
    """Return the slices whose names need no facts: with datasets, those of facts that belong to none."""
    groups: tuple[str, ...] = ANSWER_TYPES if slice_by == "answer_type" else ("",)
    return tuple(
        slice_name(kind, group, prompt)
        for prompt in PROMPTS
        for group in groups
        for kind in KINDS
    )
