"""What the answers mean: outcomes, measurements, verdicts, runs."""

from __future__ import annotations

from typing import Literal

from pytest_kbrel.records.suite import Waiver
from pytest_kbrel.records.vocabulary import UNMEASURED, CaseKind, Judgement, Label, Rule, record


@record
class Outcome:
    """What one fact yields in one case. ``values`` has one number for each of the table's columns.

    ``prompt_digest`` covers the way the fact was asked, apart from what depends on the model's answers:
    token ids of the prompts, settings, accepted answers and draws, each a part of its own
    (:class:`pytest_kbrel.records.Digest`). Two outcomes are comparable only where it is equal.
    ``truncated``: the answer was cut at ``max_new_tokens``. ``rule`` is what decided the label: the judge's
    rule (``equal``, ``variant``, ``unsure``, ...) or ``judge``.
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
    ``noise`` is how far the baseline's own model moved the figure when it was asked twice (A/A), where that
    was measured.
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
    noise: float | None = None


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
    """The judgement of one gate, with the reason in words.

    ``observed`` is what was held against ``bound``, with its two-sided 95 % interval: the metric (``min``,
    ``max``), the drop, the share recovered, the distance above the control. ``p`` is one-sided (worse than
    the baseline); ``p_sidak`` is corrected for all comparisons of the run, and is what decides; ``p_holm``
    and ``p_bh`` are Holm's and Benjamini and Hochberg's, known when the run has ended.
    """

    metric: str
    rule: Rule
    bound: float
    verdict: Judgement
    reason: str
    line: int = 0
    observed: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_sidak: float | None = None
    p_holm: float | None = None
    p_bh: float | None = None


@record
class Change:
    """A fact that was lost or gained against the baseline.

    ``old_probability`` and ``new_probability`` are those of MONITOR's primary anchor, where the case has it.
    """

    fact_id: str
    question: str
    expected: str
    old_answer: str
    new_answer: str
    relation: str = ""
    bucket: str = ""
    old_probability: float | None = None
    new_probability: float | None = None


@record
class Share:
    """One figure of integrity: ``value`` of ``total`` facts or replies, of which ``limit`` (0..1) is allowed.

    ``name`` is that of the limit in :class:`pytest_kbrel.records.Integrity`. ``limit`` is the most there may
    be; the least for ``answered``, and for ``below_random`` (right answers of the informative ones, against
    the share that random objects would be), where Wilson's interval must lie below it to break it. With
    ``constant``, ``value`` of ``total`` anchors have the same probability, and all of them are too many. With
    ``anchor_prob``, ``value`` is the sum of the probabilities of ``total`` anchors, and ``limit`` the least
    mean.
    """

    name: str
    value: int | float
    total: int
    limit: float
    broken: bool = False


@record
class Unmatched:
    """The facts of a case without a partner in the baseline: they are listed and left out of comparisons.

    ``added`` are not in the baseline, ``unasked`` not in this run, ``waived`` left out by the suite file;
    ``unanswered`` were asked in this run and have no usable response.
    """

    added: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()


@record
class CaseResult:
    """One decided case. ``table`` is empty for aggregates; ``truncated`` counts the answers cut short.

    ``settings`` are the probe's, by name. ``again`` are the outcomes of a second, differently batched pass of
    the same model (A/A), ``base`` those of the model that the run compares with. ``members`` are the ids of
    the cases that an aggregate is over. ``prompt`` is that of the first request, as the model read it.
    ``notes`` are those of the :class:`Case`. ``waiver`` is the one under which a failure of this case is let
    pass, or the first of the ``expired`` ones, of the case or of its facts, which fail it.
    """

    id: str
    suite: str
    probe: CaseKind
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
    settings: tuple[tuple[str, str], ...] = ()
    integrity: tuple[Share, ...] = ()
    unmatched: Unmatched = Unmatched()
    waiver: Waiver | None = None
    expired: tuple[Waiver, ...] = ()
    again: Table = Table(columns=(), rows=())
    base: Table = Table(columns=(), rows=())
    members: tuple[str, ...] = ()
    prompt: str = ""
    notes: tuple[str, ...] = ()

    @property
    def nodeid(self) -> str:
        """The pytest node id of the case."""
        return f"{self.suite}::{self.id}"

    @property
    def waived(self) -> bool:
        """Whether the case did not pass and a waiver lets that be; unsound responses are never waived."""
        given = self.waiver is not None and not self.waiver.expired
        return given and self.verdict not in ("pass", *UNMEASURED)


@record
class Fingerprint:
    """What a model is: digests are sha256 over contents, never names or paths.

    ``quantisation`` is how weights were made smaller while loading or in the checkpoint, ``derived`` all that
    was done to them while loading. ``decoding`` is how each token of an answer is chosen, ``prompting``
    (JSON) what the user says of chat template and thinking, empty where nothing.
    """

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
    quantisation: str = ""
    decoding: str = "greedy"
    prompting: str = ""


@record
class Run:
    """A finished session: all that reports are made from.

    ``base`` is the model compared with (a blessed run's or one of this run's own), ``differences`` what
    differs between the two and may, in words. ``recorded`` is the folder of the run that was decided again.
    ``comparisons`` is m, how many comparisons with a baseline the run was to make: what ``p_sidak`` counts.
    Those that could not be made have no p-value, and do not count in ``p_holm`` and ``p_bh``. ``files`` are
    the sha256 of the files that belong to the report, by name.
    """

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
    base: Fingerprint | None = None
    differences: tuple[str, ...] = ()
    recorded: str = ""
    comparisons: int = 0
    files: tuple[tuple[str, str], ...] = ()
