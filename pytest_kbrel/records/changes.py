"""Records of changes against a baseline: facts lost and gained, and how far answers and tokens moved."""

from __future__ import annotations

from pytest_kbrel.records.exchange import record, sparse

# The expected answer of a fact of which no run says it.
NOT_KNOWN = "?"


@record
class Change:
    """A fact that was lost or gained against the baseline; of several wordings the first that changed.

    ``expected`` is empty where no answer exists, and :data:`NOT_KNOWN` where none was recorded.
    ``label`` is the relation's, empty where it is not known or says no more than its id.
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


@record
class Place:
    """What MONITOR asked about a fact in one of its cells, and what came of it.

    ``cell`` is the cell's name (``none:2``, ``negative1:0``), ``probability`` the mean probability of the
    right answer's tokens there.
    """

    fact_id: str
    cell: str
    prompt: str
    answer: str
    probability: float


@record
class MovedCell:
    """One of a fact's cells: :class:`Place` without the prompt, since one is kept for each fact of a run."""

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

    ``metric`` is the figure. Of the fact, ``column`` (``pfd``, ``ird``, ``anchor``) is ``now``, and was
    ``before`` in the baseline, ``None`` without one. ``anchor`` is the probability of the primary anchor.
    """

    metric: str
    place: Place
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
