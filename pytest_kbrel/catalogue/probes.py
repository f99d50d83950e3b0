"""Table of the probes: names, settings, keys of suite files, slices and headline metrics of each.

Questions and outcomes are made in ``probes/``, formulas are in ``metrics/``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal

from pytest_kbrel import bounds
from pytest_kbrel.bounds import COUNT, Bounds
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
    Case,
    CaseKind,
    EditsSettings,
    HeadToTailSettings,
    MonitorSettings,
    Pairs,
    ProbeName,
    ProbeSettings,
    ReliabilitySettings,
    record,
)
from pytest_kbrel.resources import tsv_rows

# What a probe's slices are: the relations of a suite, the popularity buckets of its domains, the facts' own
# groups, known and unseen knowledge in each prompt setting, or the roles of facts beside an edit.
Slicing = Literal["relation", "bucket", "group", "knowledge", "role"]
KINDS: tuple[Literal["known", "unseen"], ...] = ("known", "unseen")
# Paraphrases are wordings of others.
ROLE_KINDS: tuple[SliceKind, ...] = ("edit", "keep", "follow", "forget")
# The first one is that of slices whose names have no setting.
PROMPTS = ("auto", "zero-shot", "few-shot", "four-shot", "four-shot-2", "chat")
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
      one of ``any_part``. ``subsets``: parts whose facts are in another slice too, or are no knowledge to keep. ``overall_by``: the
      setting for each value of which there are figures over slices.
    """

    name: ProbeName
    title: str
    settings: type[ProbeSettings]
    slicing: Slicing
    kinds: tuple[SliceKind, ...]
    reads: Literal["question", "contexts", "distractors"]
    headline: Mapping[SliceKind, tuple[str, ...]]
    pairs: Pairs
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
        by_kind = self.slicing in ("knowledge", "role")
        return self.kind(slice_name) if by_kind else slice_name

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


# Plain settings and texts, by probe and key, in the order of reports.
_OPTIONS: dict[str, dict[str, Setting]] = {}
_WORDING: dict[str, dict[str, str]] = {}
for _probe, _key, _words, _bounds, _plain, _about in tsv_rows("catalogue/settings.tsv"):
    if _probe.endswith(" wording"):
        _WORDING.setdefault(_probe.split()[0], {})[_key] = _about
        continue
    _OPTIONS.setdefault(_probe, {})[_key] = Setting(
        help=_about,
        options=tuple(_words.split()),
        plain=tuple(_plain.split()),
        bounds=getattr(bounds, _bounds or "COUNT"),
    )
# These depend on the order of single answers, and not on a fact's mean over its wordings.
_ONE_WORDING = dict.fromkeys(
    ("auroc", "ece", "accuracy_at_80", "accuracy_at_50"), ("wordings", 1)
)
_QUESTION: Places = (("question",), ())
_EXAMPLES: Places = (("question",), ("examples",))
_SCORES = ("rules", "em", "f1", "rouge_l")


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
    options=_OPTIONS["monitor"],
    wording=_WORDING["monitor"],
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
    headline={
        "head_to_tail": (
            "accuracy",
            "hallucination",
            "missing",
            "outdated",
            "unparsable",
        )
    },
    pairs=tuple(
        (f"{name}_{score}", name)
        for name in ("accuracy", "hallucination")
        for score in _SCORES
    ),
    options=_OPTIONS["head_to_tail"],
    wording=_WORDING["head_to_tail"],
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
        "known": ("cr", "wr", "ncr", "c_correct", "nccr", "outdated", "unparsable"),
        "unseen": ("ur", "c_wrong", "iur"),
    },
    pairs=(("ncr", "ur"), ("nccr", "iur"), ("c_correct", "c_wrong")),
    options=_OPTIONS["reliability"],
    wording=_WORDING["reliability"],
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

# What an edit must change is right where it was wrong: no figure is over several roles.
EDITS = Probe(
    name="edits",
    title="Edits",
    settings=EditsSettings,
    slicing="role",
    kinds=ROLE_KINDS,
    reads="question",
    headline={kind: tuple(SLICE_METRICS[kind]) for kind in ROLE_KINDS},
    pairs=(),
    options=_OPTIONS["edits"],
    wording=_WORDING["edits"],
    places=RELIABILITY.places,
    prompts=("auto", "few-shot", "zero-shot", "chat"),
    own_keys=("also_as",),
    chunk=1024,
    subsets=ROLE_KINDS,
)

# In the order of suite files, runs and reports.
PROBES: Mapping[ProbeName, Probe] = {
    probe.name: probe
    for probe in (QUESTIONS, MONITOR, HEAD_TO_TAIL, RELIABILITY, EDITS)
}
# Where two probes share them, the later one stands for both.
_BY_SETTINGS = {probe.settings: probe for probe in PROBES.values()}


def probe_of_settings(settings: ProbeSettings) -> Probe:
    """Return the probe that asks under ``settings``."""
    return _BY_SETTINGS[type(settings)]


def is_scored(case: Case) -> bool:
    """Return True if a case asks how probable given texts are, which not all models can tell."""
    by_authors = getattr(case.settings, "scores", "") == "authors"
    return PROBES[case.probe].scored or by_authors


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
