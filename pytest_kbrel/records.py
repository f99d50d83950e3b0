"""The records that travel through the house.

The way is ``Fact -> Ask -> Response -> Outcome -> Metric value -> Verdict -> Run``. All records are frozen;
a layer makes new ones and never fills in another layer's fields.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Literal, TypeVar, dataclass_transform

T = TypeVar("T")

ProbeName = Literal["monitor", "head_to_tail", "reliability"]
Label = Literal["correct", "wrong", "uninformative"]
Rule = Literal["min", "max", "max_drop", "recovery"]
Judgement = Literal["pass", "fail", "inconclusive", "not comparable", "no baseline", "invalid"]
PROBES: tuple[ProbeName, ...] = typing.get_args(ProbeName)
RULES: tuple[Rule, ...] = typing.get_args(Rule)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make a class a frozen, slotted, keyword-only dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


# --- what is asked about ---------------------------------------------------------------------------------


@record
class Relation:
    """One kind of fact and its wordings. ``[X]`` stands for the subject, ``[Y]`` for the object.

    ``frames`` are paraphrased questions, the first is the base frame; ``statements`` are declarative.
    ``id`` is a Wikidata property id where there is one.
    """

    id: str
    label: str
    domain: str
    frames: tuple[str, ...]
    statements: tuple[str, ...] = ()


@record
class Fact:
    """One thing to know. ``object`` is ``None`` where no answer exists (unseen knowledge).

    ``negatives`` are wrong objects of the same kind: MONITOR's interfering contexts, or the distractors of
    multiple-choice questions. ``question`` overrides the relation's base frame. ``popularity`` is in the
    source's own unit, comparable within a relation only.
    """

    id: str
    relation: str
    subject: str
    object: str | None
    aliases: tuple[str, ...] = ()
    popularity: float | None = None
    negatives: tuple[str, ...] = ()
    question: str | None = None
    source: str = ""
    licence: str = ""

    @property
    def accepted(self) -> tuple[str, ...]:
        """The right answers: the object and its aliases; empty for unseen knowledge."""
        return () if self.object is None else (self.object, *self.aliases)


@record
class MonitorSettings:
    """How MONITOR asks. ``negatives`` is M, the number of interfering contexts per fact."""

    variant: Literal["definition", "published"] = "definition"
    negatives: int = 5
    max_new_tokens: int = 15


@record
class HeadToTailSettings:
    """How Head-to-Tail asks."""

    prompt: Literal["few-shot", "zero-shot"] = "few-shot"
    max_new_tokens: int = 32


@record
class ReliabilitySettings:
    """How Reliable KB asks: K = ``choices`` questions of five options, 3 of ``distractors`` in each."""

    choices: int = 20
    distractors: int = 20
    max_new_tokens: int = 32


Settings = MonitorSettings | HeadToTailSettings | ReliabilitySettings


@record
class Gate:
    """One demand on one metric. ``line`` is where the suite file states it."""

    metric: str
    rule: Rule
    bound: float
    line: int = 0


@record
class Case:
    """One slice of a suite with one probe: what one pytest item runs.

    ``facts`` are those of this slice after sampling, each with its negatives filled in; ``relations`` are the
    ones these facts use. ``seed`` fixes every draw the probe makes.
    """

    id: str
    suite: str
    probe: ProbeName
    slice: str
    facts: tuple[Fact, ...]
    relations: tuple[Relation, ...]
    settings: Settings
    gates: tuple[Gate, ...]
    seed: int = 0
    line: int = 0


@record
class AggregateCase:
    """A figure over several cases, decided when all of ``members`` (case ids) have run."""

    id: str
    suite: str
    probe: ProbeName
    slice: str
    members: tuple[str, ...]
    gates: tuple[Gate, ...]
    line: int = 0


@record
class Suite:
    """A suite file, read and checked."""

    name: str
    path: str
    cases: tuple[Case, ...]
    aggregates: tuple[AggregateCase, ...]
    warnings: tuple[str, ...] = ()


# --- what is asked, and what comes back ----------------------------------------------------------------


@record
class ScoreRequest:
    """Ask for the probability of each token of ``continuation`` after ``prompt``, teacher-forced."""

    prompt: str
    continuation: str


@record
class GenerateRequest:
    """Ask for a greedy (or beam) continuation of ``prompt`` up to one of the ``stop`` strings.

    With ``steps`` the response carries, per step of the first beam, the most probable token and its
    probability, and the probability of ``watch[k]`` at step ``k``.
    """

    prompt: str
    max_new_tokens: int
    stop: tuple[str, ...] = ("\n",)
    num_beams: int = 1
    steps: bool = False
    watch: tuple[int, ...] = ()


Request = ScoreRequest | GenerateRequest


@record
class Ask:
    """A request with its place: the fact it is about and its role in the probe (``anchor``, ``frame:3``)."""

    fact_id: str
    role: str
    request: Request


@record
class Step:
    """One free-running step: top-1 token id and probability; ``watched`` is that of the watched token."""

    token_id: int
    token: str
    probability: float
    watched: float | None = None


@record
class Scored:
    """Probabilities (0..1, float32 softmax) of the continuation's tokens, in order."""

    probabilities: tuple[float, ...]
    token_ids: tuple[int, ...]
    prompt_tokens: int
    prompt_digest: str


@record
class Generated:
    """Generated text without prompt, stop string and special tokens. ``finish`` tells why it ended."""

    text: str
    token_ids: tuple[int, ...]
    finish: Literal["stop", "length"]
    prompt_tokens: int
    prompt_digest: str
    steps: tuple[Step, ...] = ()


@record
class Failed:
    """A request that got no usable answer. Never a score."""

    error: str


Response = Scored | Generated | Failed


@record
class Exchange:
    """One request and its response, as ``responses.jsonl`` keeps them."""

    case: str
    ask: Ask
    response: Response


# --- what it means -----------------------------------------------------------------------------------------


@record
class Outcome:
    """What one fact yields in one case. ``values`` has one number for each of the table's columns.

    ``prompt_digest`` covers the way the fact was asked, apart from what depends on the model's answers:
    token ids of the prompts, settings, accepted answers and draws. Two outcomes are comparable only where it
    is equal. ``truncated``: the answer was cut at ``max_new_tokens``.
    """

    fact_id: str
    question: str
    expected: str
    answer: str
    label: Label
    values: tuple[float, ...]
    prompt_digest: str
    truncated: bool = False


@record
class Table:
    """The outcomes of one case: ``len(rows)`` facts by ``len(columns)`` values."""

    columns: tuple[str, ...]
    rows: tuple[Outcome, ...]


@record
class MetricValue:
    """A metric with its interval and, against a baseline, the paired difference candidate - baseline.

    ``value`` is ``None`` where the metric is undefined, and ``note`` says why. ``low``/``high`` and
    ``delta_low``/``delta_high`` are two-sided 95 % intervals, clustered by fact; ``p`` is one-sided (worse).
    ``mde`` is the drop found with 80 % power.
    """

    name: str
    better: Literal["higher", "lower"]
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    baseline: float | None = None
    delta: float | None = None
    delta_low: float | None = None
    delta_high: float | None = None
    p: float | None = None
    mde: float | None = None
    paired: int = 0
    note: str = ""


@record
class GateResult:
    """The judgement of one gate, with the reason in words."""

    metric: str
    rule: Rule
    bound: float
    verdict: Judgement
    reason: str
    line: int = 0


@record
class Change:
    """A fact that was lost or gained against the baseline."""

    fact_id: str
    question: str
    expected: str
    old_answer: str
    new_answer: str


@record
class CaseResult:
    """One decided case. ``table`` is empty for aggregates; ``truncated`` counts the answers cut short."""

    id: str
    suite: str
    probe: ProbeName
    slice: str
    verdict: Judgement
    n: int
    duration: float
    metrics: tuple[MetricValue, ...]
    gates: tuple[GateResult, ...]
    lost: tuple[Change, ...] = ()
    gained: tuple[Change, ...] = ()
    errors: tuple[str, ...] = ()
    aggregate: bool = False
    requests: int = 0
    truncated: int = 0
    table: Table = Table(columns=(), rows=())

    @property
    def nodeid(self) -> str:
        """The pytest node id of the case."""
        return f"{self.suite}::{self.id}"


@record
class Fingerprint:
    """What a model is: digests are sha256 over contents, never names or paths."""

    spec: str
    backend: str
    backend_version: str
    architecture: str
    parameters: int
    weights_digest: str
    tokenizer_digest: str
    dtype: str
    device: str
    derived: str = ""
    chat_template: bool = False
    adds_bos: bool = False
    scoring_version: int = 0


@record
class Run:
    """A finished session: all that reports are made from."""

    kbrel_version: str
    created: str
    model: Fingerprint | None
    environment: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    cases: tuple[CaseResult, ...]
    baseline: str = ""
    complete: bool = True
    problems: tuple[str, ...] = ()
    exit_status: int = 0
