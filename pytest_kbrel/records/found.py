"""What the answers mean: outcomes, measurements, verdicts, runs."""

from __future__ import annotations

from typing import Literal

from pytest_kbrel.records.base import Judgement, Label, ProbeName, Rule, record


@record
class Outcome:
    """What one fact yields in one case. ``values`` has one number for each of the table's columns.

    ``prompt_digest`` covers the way the fact was asked, apart from what depends on the model's answers:
    token ids of the prompts, settings, accepted answers and draws. Two outcomes are comparable only where it
    is equal. ``truncated``: the answer was cut at ``max_new_tokens``. ``rule`` is what decided the label: the
    judge's rule (``equal``, ``variant``, ``unsure``, ...) or ``judge``.
    """

    fact_id: str
    question: str
    expected: str
    answer: str
    label: Label
    values: tuple[float, ...]
    prompt_digest: str
    truncated: bool = False
    rule: str = ""


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
    ``mde`` is the drop found with 80 % power. ``unpaired``: the baseline is a published figure, not a run.
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
    unpaired: bool = False


@record
class Attribution:
    """How much each prompt token moved the answer's log-probability (Wang et al., section 6.1).

    ``scores`` are integrated gradients, one a token, in nats; they add up to the log-probability of
    ``target`` after the prompt (``log_probability``) minus that after the baseline input, plus ``error``.
    ``role`` is the cell of the prompt.
    """

    fact_id: str
    role: str
    prompt: str
    target: str
    tokens: tuple[str, ...]
    scores: tuple[float, ...]
    log_probability: float
    error: float


@record
class Correlation:
    """How two figures move together over ``n`` slices or models; ``r`` is ``None`` where ``note`` says why.

    ``over`` says over what: ``slices``, ``models``.
    """

    x: str
    y: str
    method: Literal["pearson", "spearman"]
    over: str
    r: float | None
    p: float | None
    n: int
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
    attributions: tuple[Attribution, ...] = ()

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
    helpers: tuple[Fingerprint, ...] = ()
    correlations: tuple[Correlation, ...] = ()
