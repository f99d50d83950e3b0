"""Records of results: outcomes, metric values, changes, verdicts with their reasons, shards, the run."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Literal, Self

from pytest_kbrel.records.exchange import Pairs, TopTokens, record, sparse
from pytest_kbrel.records.suite import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    UNMEASURED,
    WORDING_FIELDS,
    Case,
    CaseKind,
    Fact,
    Gate,
    Judgement,
    Label,
    ProbeSettings,
    Waiver,
    base_language,
)

# One that ends in a blank leads the next one.
SENTENCES: Mapping[str, str] = {
    "told": "{text}",
    "were_less": "were less of it better: ",
    "lost_rows": "with {rows} lost rows at {end:g}, ",
    "undefined": "{metric} is undefined: {note}",
    "not_compared": "{metric} cannot be compared: {note}",
    "not_blessed": "the baseline has not measured what {metric} needs: bless all suites anew",
    "value": "{metric} is {value:.3f}{within} over {over}{note}",
    "control": "{metric} is {value:.3f}{within} over {over}, {above:.3f} {where} its control {control}, "
    "{best:.3f}{best_within}",
    "no_control": "{metric} has no control to compare with: {note}",
    "recovered": "{metric} recovered {share}{within} of the baseline: ",
    "no_ratio": "{metric} has no ratio to a baseline of {before:.3f}",
    "same": "{metric} did not change{within} from {before:.3f} ({details})",
    "changed": "{metric} {verb} by {by:.3f}{within} from {before:.3f} to {now:.3f} ({details})",
    "left_out": "{facts} not in the baseline left out",
    "limit": "allowed: {limit} {bound:.3f}",
    "tolerance": "allowed: within {bound:.3f}, beyond {beyond:.3f}",
    "worse": "worse than the baseline; {beyond} is not shown",
    "few_groups": "not decided: its facts share so few answers that they count as {groups:.1f} groups, and a "
    "gate that compares needs {least}",
    "power": "a {change} of {effect:.3f} would be found with 80 % power",
    "no_power": "no {change} would be found with 80 % power",
    "needed": "about {needed:,} facts would decide, were the difference the same",
    "endless": "no number of facts below a million would decide",
    "empty": "with the empty answers counted against it",
    "looks": "{how} after {asked} of {facts} facts, at look {taken} of {of}, whose intervals are of {level:.2f} %",
}


@record
class Reason:
    """One reason of a verdict: ``kind``, one of :data:`SENTENCES`, and the numbers and names of its sentence."""

    kind: str
    values: tuple[tuple[str, str | int | float], ...] = ()


def reason(kind: str, **values: str | float) -> Reason:
    """Return a reason of this kind."""
    return Reason(kind=kind, values=tuple(values.items()))


def sentence(reasons: Iterable[Reason]) -> str:
    """Return reasons in words."""
    parts = (SENTENCES[of.kind].format(**dict(of.values)) for of in reasons)
    joined = (part if part.endswith(" ") else f"{part}; " for part in parts)
    return "".join(joined).removesuffix("; ")


ShardBy = Literal["fact", "case"]


@record
class Shard:
    """One share of a run: number ``index``, from 1, of ``count``.

    Facts are dealt out by sha256 of their ids, and with ``by`` "case" whole cases by that of their node ids.
    So a share depends on no machine, no order and no other fact.
    """

    index: int
    count: int
    by: ShardBy = "fact"

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, name: str) -> bool:
        """Return True if the fact with this id is in the share."""
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.index - 1

    def part(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of these fact ids that are in the share, in their order."""
        return tuple(name for name in names if self.has(name))

    def facts_of(self, case: Case) -> tuple[Fact, ...]:
        """Return the facts of a case that are in the share, in their order."""
        if self.by == "case":
            return case.facts if self.has(f"{case.suite}::{case.id}") else ()
        return tuple(fact for fact in case.facts if self.has(fact.id))


def facts_asked(case: Case, shard: Shard | None) -> tuple[Fact, ...]:
    """Return the facts of a case that a session asks: those in its shard, all of them without one."""
    return case.facts if shard is None else shard.facts_of(case)


@record
class ShardedRun:
    """What a report says of its shard, by which shards are held against each other before they are joined.

    ``suites`` are the digests of all that the suites ask, by path, ``commit`` is that of the project.
    """

    shard: Shard
    suites: Pairs
    commit: str = ""


# The expected answer of a fact of which no run says it.
NOT_KNOWN = "?"


@record
class Change:
    """A fact that was lost or gained against the baseline; of several wordings the first that changed.

    ``expected`` is empty where no answer exists, and :data:`NOT_KNOWN` where none was recorded.
    ``label`` is the relation's, empty where it is not known or says no more than its id.
    ``outdated`` says until when the new answer was right, where it was.
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
    label: str = sparse("")
    outdated: str = sparse("")


@record
class MovedCell:
    """One of the cells in which MONITOR asked about a fact, and what came of it.

    ``cell`` is its name (``none:2``, ``negative1:0``), ``probability`` the mean probability of the right
    answer's tokens there. It has no prompt, since one is kept for each fact of a run.
    """

    cell: str
    answer: str
    probability: float


@record
class MovedCells:
    """The primary anchor of one fact of MONITOR, and the frame and the wrong context that moved it most."""

    fact_id: str
    anchor: MovedCell
    frame: MovedCell
    context: MovedCell


@record
class MovedFact:
    """The fact that moved a figure of MONITOR most, in the place where its probability moved most.

    ``metric`` is the figure, ``prompt`` what was asked there. Of the fact, ``column`` (``pfd``, ``ird``, ``anchor``) is ``now``, and was
    ``before`` in the baseline, ``None`` without one. ``anchor`` is the probability of the primary anchor.
    """

    metric: str
    fact_id: str
    prompt: str
    place: MovedCell
    expected: str
    column: str
    now: float
    before: float | None
    anchor: float


@record
class Divergence:
    """How far the most probable tokens moved against the baseline, over ``facts`` with ``positions`` in all.

    ``kl`` is a lower bound of the mean KL(baseline || candidate), in nats, ``top1_agreement`` the share of
    the positions with the same most probable token; with two-sided 95 % intervals, clustered by fact.
    """

    facts: int
    positions: int
    kl: float
    top1_agreement: float
    kl_low: float | None = None
    kl_high: float | None = None
    top1_low: float | None = None
    top1_high: float | None = None


@record
class Churn:
    """How many of the paired ``facts`` changed against the baseline, whichever way.

    A fact that was asked in several wordings counts as often. ``texts`` have another answer, ``labels``
    another verdict. ``anchor_moves`` are quantiles of the change in the probability of MONITOR's anchors:
    (quantile, change); empty for other probes. ``divergence`` is there where both runs have their most
    probable tokens.
    """

    facts: int
    texts: int
    labels: int
    anchor_moves: tuple[tuple[float, float], ...] = ()
    divergence: Divergence | None = sparse(None)


NOT_REACHED = "the session stopped before this case"
"""The error of a case that is not run for that."""


@record
class Reply:
    """The answer to one wording of a fact's question, with what it was judged to be and by which rule."""

    answer: str
    label: Label
    question: str = ""
    rule: str = ""
    truncated: bool = False


@record
class Outcome:
    """The outcome of one fact in one case. ``values`` has one number for each of the table's columns.

    ``prompt_digest`` covers the way the fact was asked, apart from what depends on the model's answers:
    token ids of the prompts, settings, accepted answers and draws, each a part of its own
    (:class:`pytest_kbrel.records.Digest`). Two outcomes are comparable only where it is equal.
    ``truncated``: the answer was cut at ``max_new_tokens``. ``rule`` is what decided the label: the judge's
    rule (``equal``, ``variant``, ``unsure``, ...) or ``judge``. ``cluster`` names the group of facts that
    this one changes with, such as those with the same object; empty where it is alone. Where the fact was
    asked in several wordings, ``values`` are means over them, the answer is that to the first one, and
    ``others`` are those to the others. ``top`` are the most probable tokens at the positions of the answer,
    where they were asked for (--kb-top-k).
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
    cluster: str = ""
    others: tuple[Reply, ...] = ()
    top: tuple[TopTokens, ...] = sparse(())

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The answers to all wordings of the fact's question."""
        own = Reply(
            answer=self.answer,
            label=self.label,
            question=self.question,
            rule=self.rule,
            truncated=self.truncated,
        )
        return (own, *self.others)


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
    design_effect: float | None = None
    clusters: float | None = None


@record
class Correlation:
    """Correlation of two figures over ``n`` slices or models; ``r`` is ``None`` where ``note`` says why.

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
class GateResult(Gate):
    """The judgement of one gate, with its ``reasons`` as data.

    ``observed`` is what was held against ``bound``, with its two-sided 95 % interval: the metric (``min``,
    ``max``), the drop, the share recovered, the distance above the control. ``p`` is one-sided: of "worse than the baseline by no more than ``beyond``".
    ``p_sidak`` is corrected for the gates of the case (Hommel) and the cases of the suite (Šidák), and is
    what decides; ``p_holm`` and ``p_bh`` are Holm's and Benjamini and Hochberg's over all gates of the run.
    ``unchanged`` is the worse end of the interval of a drop that a model which lost nothing would show in the
    worst slice of this size.
    """

    verdict: Judgement
    reasons: tuple[Reason, ...] = ()
    observed: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_sidak: float | None = None
    p_holm: float | None = None
    p_bh: float | None = None
    unchanged: float | None = None

    @property
    def reason(self) -> str:
        """Why the gate has its verdict, in words."""
        return sentence(self.reasons)

    @property
    def facts_needed(self) -> int | None:
        """How many facts would decide, 0 where no number could be asked; ``None`` where that is not known."""
        values = (dict(of.values).get("needed") for of in self.reasons)
        return next((int(of) for of in values if of is not None), None)

    def because(self, *reasons: Reason) -> Self:
        """Return the same judgement with more reasons."""
        return replace(self, reasons=(*self.reasons, *reasons))


@record
class Share:
    """One figure of integrity: ``value`` of ``total`` facts or replies, of which ``limit`` (0..1) is allowed.

    ``name`` is that of the limit in :class:`pytest_kbrel.records.Integrity`. ``limit`` is the most there may
    be; the least for ``answered``, and for ``below_random`` (right answers of the informative ones, against
    the share that random objects would be), where Wilson's interval must lie below it to break it. With
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
    ``unanswered`` were asked in this run and have no usable response; ``lacking`` were to be asked in a run
    of this limit and seed, and the suite has lost them.
    """

    added: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    waived: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    lacking: tuple[str, ...] = sparse(())


@record
class Looks:
    """How far a case was asked that may stop early: ``taken`` looks ``of`` so many, ``asked`` of ``facts``.

    ``facts`` is the largest number that might have been asked, fixed before the first question.
    """

    taken: int
    of: int
    asked: int
    facts: int

    @property
    def early(self) -> bool:
        """True if the last look was not reached."""
        return self.taken < self.of


@record
class LanguagePair:
    """What a model knows in one language and in a second one, of the facts that were asked in both.

    Of so many ``facts``, ``right`` were right in the first, and ``both`` in the second as well; ``said`` had
    an informative answer in one of the two, and of these the ``same`` name one entity, right or wrong.
    """

    first: str
    second: str
    facts: int
    right: int
    both: int
    said: int
    same: int


@record
class CaseResult:
    """One decided case. ``table`` is empty for aggregates; ``truncated`` counts the answers cut short.

    ``settings`` are the probe's, by name. ``base`` are the outcomes of the model that the run
    compares with. ``members`` are the ids of
    the cases that an aggregate is over. ``prompt`` is that of the first request, as the model read it.
    ``notes`` are those of the :class:`Case`. ``waiver`` is the one under which a failure of this case is let
    pass, or the first of the ``expired`` ones, of the case or of its facts, which fail it. ``looks`` are
    those of a case that may stop before all its facts are asked. ``label`` is that of the relation that the slice is, empty where it
    is none, or the label is not known. ``moved`` has for each figure of MONITOR's probabilities the fact that
    moved it most. ``languages`` are those that a case over a suite compares.
    """

    id: str
    suite: str
    probe: CaseKind
    slice: str
    verdict: Judgement
    n: int
    duration: float = 0.0
    metrics: tuple[MetricValue, ...] = ()
    gates: tuple[GateResult, ...] = ()
    lost: tuple[Change, ...] = ()
    gained: tuple[Change, ...] = ()
    churn: Churn | None = None
    errors: tuple[str, ...] = ()
    aggregate: bool = False
    requests: int = 0
    truncated: int = 0
    table: Table = Table(columns=(), rows=())
    settings: Pairs = ()
    integrity: tuple[Share, ...] = ()
    unmatched: Unmatched = Unmatched()
    waiver: Waiver | None = None
    expired: tuple[Waiver, ...] = ()
    base: Table = Table(columns=(), rows=())
    members: tuple[str, ...] = ()
    prompt: str = ""
    notes: tuple[str, ...] = ()
    looks: Looks | None = None
    label: str = sparse("")
    moved: tuple[MovedFact, ...] = sparse(())
    languages: tuple[LanguagePair, ...] = sparse(())

    @property
    def nodeid(self) -> str:
        """The pytest node id of the case."""
        return f"{self.suite}::{self.id}"

    @property
    def figures(self) -> dict[str, float | None]:
        """The values of its metrics by name."""
        return {of.name: of.value for of in self.metrics}

    @property
    def waived(self) -> bool:
        """True if the case did not pass and a waiver excuses that; unsound responses are never waived."""
        given = self.waiver is not None and not self.waiver.expired
        return given and self.verdict not in ("pass", *UNMEASURED)


# What a model is called does not make it another one, and digests are told by their beginning.
_NAMES = ("spec", "name")
_DIGEST, _TOLD = 64, 12


def _beginning(value: object) -> str:
    is_digest = isinstance(value, str) and len(value) == _DIGEST
    return repr(str(value)[:_TOLD] if is_digest else value)


@record
class Fingerprint:
    """Identity of a model: digests are sha256 over contents, never names or paths.

    ``quantisation`` is how weights were made smaller while loading or in the checkpoint, ``derived`` all that
    was done to them while loading. ``decoding`` is how each token of an answer is chosen, ``prompting``
    (JSON) what the user says of chat template and thinking, empty where nothing. ``name`` is what reports
    call the model where the spec does not say all: with an adapter, a GGUF file or a revision.
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
    name: str = sparse("")

    @property
    def title(self) -> str:
        """What reports call the model."""
        return self.name or self.spec

    def differences(self, other: Fingerprint) -> dict[str, str]:
        """Return by name in what the models differ, but for their names, each in words."""
        pairs = {
            of.name: (getattr(self, of.name), getattr(other, of.name))
            for of in fields(self)
        }
        return {
            name: f"{name} ({_beginning(ours)} and {_beginning(theirs)})"
            for name, (ours, theirs) in pairs.items()
            if ours != theirs and name not in _NAMES
        }


@record
class Run:
    """A finished session: all that reports are made from.

    ``base`` is the model compared with (a blessed run's or one of this run's own), ``differences`` what
    differs between the two and may, in words, ``blessed`` when the blessed run was made (ISO 8601).
    ``recorded`` is the folder of the run that was decided again. ``comparisons`` is m, how many comparisons
    with a baseline the run was to make: what ``p_sidak`` counts. Those that could not be made have no
    p-value, and do not count in ``p_holm`` and ``p_bh``. ``files`` are the sha256 of the files that belong to
    the report, by name. ``shard`` is the share that was asked, where the run is one; its cases are then not
    decided. ``compared`` is how many facts were compared with the baseline fact by fact, and of how many;
    each fact counts once. ``baseline_sha256`` is that of the baseline's file, where it is a pack.
    """

    kbrel_version: str
    created: str = ""
    model: Fingerprint | None = None
    environment: Pairs = ()
    settings: Pairs = ()
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
    files: Pairs = ()
    shard: ShardedRun | None = sparse(None)
    blessed: str = ""
    compared: tuple[int, int] | None = sparse(None)
    baseline_sha256: str = sparse("")


# How examples are chosen, and which controls are asked, is no part of how a fact is asked.
_NOT_IN_DIGEST = ("retrieval", "controls")
_NO_RULES = " (no rules)"
_FORM = re.compile(
    r"(?P<prompts>[0-9a-f]{8})\.(?P<bos>\d+)/(?P<count>\d+)"
    r"\.(?P<settings>[0-9a-f]{8})\.(?P<accepted>[0-9a-f]{8})\.(?P<draws>[0-9a-f]{8})"
)


@record
class Digest:
    """The parts of :attr:`Outcome.prompt_digest`, written ``prompts.BOS/COUNT.settings.accepted.draws``.

    ``prompts`` is a digest of the token ids of all ``count`` prompts, BOS left out; ``bos`` is how many of
    them begin with BOS. ``settings`` is a digest of the probe's settings, ``accepted`` one of the accepted
    answers and their type, ``draws`` one of what else fixes the questions. Digests have 8 hex digits.
    """

    prompts: str
    bos: int
    count: int
    settings: str
    accepted: str
    draws: str

    def __str__(self) -> str:
        return f"{self.prompts}.{self.bos}/{self.count}.{self.settings}.{self.accepted}.{self.draws}"


def read_digest(text: str) -> Digest | None:
    """Return the parts of a digest; ``None`` where the text has another form."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    parts: dict[str, Any] = match.groupdict()
    return Digest(**{**parts, "bos": int(parts["bos"]), "count": int(parts["count"])})


def short_digest(value: object) -> str:
    """Return 8 hex digits of sha256 over the JSON form of a value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def settings_of(case: Case) -> Pairs:
    """Return all settings under which a case asks and judges, as pairs of name and value.

    A wording is listed only where it is not the probe's own.
    """
    asked = case.settings.for_model(chat=case.chat)
    changed = _changed(asked)
    settings = {
        name: json.dumps(value, ensure_ascii=False)
        if isinstance(value, tuple)
        else str(value)
        for name, value in _fields(asked).items()
        if name not in WORDING_FIELDS or name in changed
    }
    if case.uninformative:
        settings["uninformative"] = (
            f"{len(case.uninformative)} rules ({short_digest(case.uninformative)})"
        )
    # A case has few languages, however many facts.
    languages = {base_language(tag) for tag in {fact.language for fact in case.facts}}
    if languages - {DEFAULT_LANGUAGE}:
        settings["language"] = ", ".join(
            language if language in LANGUAGES else f"{language}{_NO_RULES}"
            for language in sorted(languages)
        )
    return tuple(sorted(settings.items()))


def unsupported_languages(settings: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the languages in the settings of a case for which the judge has no rules."""
    languages = dict(settings).get("language", "").split(", ")
    return tuple(
        part.removesuffix(_NO_RULES) for part in languages if part.endswith(_NO_RULES)
    )


def changed_digest(case: Case, language: str = "") -> str:
    """Return the short digest of the settings of a case that are not the default ones, and a fact's language.

    A setting that a later version adds leaves outcomes without it comparable.
    """
    asked = case.settings.for_model(chat=case.chat)
    return _changed_digest(asked, case.uninformative, base_language(language))


# All facts of a case are asked under the same settings.
@functools.lru_cache
def _changed_digest(
    settings: ProbeSettings, uninformative: Pairs, language: str
) -> str:
    changed = _changed(settings)
    if uninformative:
        changed["uninformative"] = uninformative
    if language != DEFAULT_LANGUAGE:
        changed["language"] = language
    return short_digest(changed)


def _fields(settings: ProbeSettings) -> dict[str, object]:
    names = (field.name for field in fields(settings))
    return {
        name: getattr(settings, name) for name in names if name not in _NOT_IN_DIGEST
    }


def _changed(settings: ProbeSettings) -> dict[str, object]:
    default = _fields(type(settings)().for_model(chat=False))
    return {
        name: value
        for name, value in _fields(settings).items()
        if value != default[name]
    }
