"""What a run cannot be compared with, as far as it is known before the first question: no model is loaded."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Sequence

import pytest

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.baselines import (
    Asked,
    Baseline,
    BaselineCase,
    incomparable,
    session_baseline,
    setting_differences,
)
from pytest_kbrel.bounds import limit_value
from pytest_kbrel.catalogue.metrics import CHANGE_METRICS
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.models.arguments import CHAT_ARGS
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.registry import BACKENDS
from pytest_kbrel.models.token_counting import TokenCounter
from pytest_kbrel.plugin.options import origin_of
from pytest_kbrel.records import (
    BASELINE,
    Case,
    Fingerprint,
    Gate,
    Outcome,
    Suite,
    Table,
    read_digest,
    settings_of,
)
from pytest_kbrel.settings import RULES, Settings

# Of each case so many facts are looked at: all of them differ where the model or the suite's wording does.
_LOOKED_AT = 8


def check_comparable(
    config: pytest.Config,
    settings: Settings,
    baseline: Baseline | None,
    suites: Sequence[Suite],
    cases: Sequence[Case],
) -> None:
    """Raise :class:`KbrelError` where a case that is to run could not be compared with what was asked for.

    ``cases`` of the ``suites`` are to run. Compared are what the two models must share, the limit of the
    blessed run, its facts, and how some facts of each case are asked. A run that blesses may differ.
    """
    is_blessed = baseline is not None and not baseline.paper
    asked_for = is_blessed or settings.baseline_model
    if not asked_for or settings.from_run is not None or settings.baseline_update:
        return
    over = {
        (of.suite, member)
        for suite in suites
        for of in suite.aggregates
        if any(map(_compares, of.gates))
        for member in of.members
    }
    compared = [
        case
        for case in cases
        if (case.suite, case.id) in over or any(map(_compares, case.gates))
    ]
    other = settings.specs[BASELINE].get() if settings.baseline_model else None
    first = next(_obstacles(settings, baseline, other, compared), None)
    if first is not None:
        name = "baseline" if other is None else "baseline_model"
        alone = f"--kb-{name.replace('_', '-')}= to compare with nothing"
        raise KbrelError(
            f"{origin_of(config, name)}: {settings.compared_with} and this run cannot be compared, and nothing "
            f"was asked: {first}, or {alone}"
        )


def _compares(gate: Gate) -> bool:
    return GATE_RULES[gate.rule].relative or gate.metric in CHANGE_METRICS


def _obstacles(
    settings: Settings,
    baseline: Baseline | None,
    other: Spec | None,
    cases: Sequence[Case],
) -> Iterator[str]:
    """Yield what stands in the way, and what to type instead; what is cheap to know comes first."""
    own = settings.specs[""].get()
    known = _known(own)
    if other is not None:
        baseline = session_baseline(_known(other), (), judge=settings.judge)
    assert baseline is not None
    assert baseline.model is not None
    if differing := incomparable(known, baseline):
        remedy = _of_models(settings, known, baseline.model)
        yield f"candidate and baseline differ in {'; '.join(differing)}; type {remedy}"
    elif other is None:
        yield from _of_judge(settings, baseline, cases)
        yield from _of_limit(settings, baseline)
        yield from _of_suites(settings, baseline, cases)
    # A plan asks nothing, and reads no tokenizer for it.
    counters = [
        TokenCounter() if settings.plan else _counter(spec)
        for spec in (own, other)
        if spec is not None
    ]
    if settings.baseline_model and not all(counter.exact for counter in counters):
        # Both are asked the same, as far as it is known.
        return
    for case in cases:
        yield from _of_case(settings, baseline, case, own.chats, counters)


def _known(spec: Spec) -> Fingerprint:
    """Return the fingerprint of a model as far as its spec tells what two models must share."""
    return Fingerprint(
        spec=spec.text,
        backend=spec.backend,
        backend_version="",
        architecture="",
        weights_digest="",
        tokenizer_digest="",
        parameters=0,
        dtype="",
        device="",
        chat_template=spec.chats,
        decoding=spec.decoding,
        scoring_version=SCORING_VERSION,
    )


def _counter(spec: Spec) -> TokenCounter:
    """Return what knows the prompts of a checkpoint; of another model, and where it does not load, nothing does."""
    if BACKENDS[spec.backend].computes_here:
        # Opening the model says why it does not load.
        with contextlib.suppress(ModelError):
            return BACKENDS[spec.backend].counter(spec)
    return TokenCounter()


def _of_models(settings: Settings, ours: Fingerprint, theirs: Fingerprint) -> str:
    """Return what to type where models differ in what they must share."""
    if ours.scoring_version != theirs.scoring_version:
        return _bless(settings, theirs)
    if ours.chat_template != theirs.chat_template:
        return _template(settings, wanted=theirs.chat_template)
    _, _, seed = theirs.decoding.partition("seed ")
    if seed:
        return f"--kb-model-args=seed={seed}"
    return f"a model that is asked as {theirs.spec} was ({theirs.decoding})"


def _template(settings: Settings, *, wanted: bool) -> str:
    arg = f"apply_chat_template={wanted}"
    if settings.baseline_model:
        other = f",apply_chat_template={not wanted}"
        return f"{arg} in --kb-model-args, or {other} behind the name of --kb-baseline-model"
    if wanted:
        return "--kb-apply-chat-template"
    if settings.apply_chat_template:
        return "the command without --kb-apply-chat-template"
    return f"--kb-model-args={arg}"


def _bless(settings: Settings, model: Fingerprint | None) -> str:
    """Return how the baseline's own model is blessed anew."""
    spec = "MODEL" if model is None else model.spec
    return (
        f"--kb-model={spec} --kb-baseline-update={settings.baseline} to bless the baseline's own model anew "
        "with these suites"
    )


def _of_judge(
    settings: Settings, baseline: Baseline, cases: Sequence[Case]
) -> Iterator[str]:
    """Yield that answers are judged by a model in one of the runs and by rules in the other."""
    from pytest_kbrel.probes.grading import is_judged

    theirs = dict(baseline.settings).get("judge", RULES)
    by_rules = settings.judge == RULES
    if by_rules != (theirs == RULES) and any(map(is_judged, cases)):
        yield f"the judge is {settings.judge}, that of the baseline {theirs}; type --kb-judge={theirs}"


def _of_limit(settings: Settings, baseline: Baseline) -> Iterator[str]:
    """Yield that a limited baseline is of other facts than the run; one of all facts has those of any limit."""
    text = dict(baseline.settings).get("limit", "")
    if text and limit_value(text) != settings.limit:
        here = "none" if settings.limit is None else settings.limit
        yield f"the baseline was blessed with --kb-limit={text}, found here: {here}; type --kb-limit={text}"


def _of_suites(
    settings: Settings, baseline: Baseline, cases: Sequence[Case]
) -> Iterator[str]:
    """Yield that the baseline has none of the cases, which is of other suite files then."""
    if cases and not any(map(baseline.case, cases)):
        there = ", ".join(sorted({key.partition("::")[0] for key in baseline.cases}))
        yield (
            f"the baseline has no case like {cases[0].suite}::{cases[0].id}, found in it: cases of {there}; "
            f"type {_bless(settings, baseline.model)}"
        )


def _of_case(
    settings: Settings,
    baseline: Baseline,
    case: Case,
    chats: bool,
    counters: Sequence[TokenCounter],
) -> Iterator[str]:
    """Yield why nothing of a case can be compared. ``counters`` are the candidate's and the other model's."""
    from pytest_kbrel.gates import not_comparable
    from pytest_kbrel.gates.measurement import pair
    from pytest_kbrel.gates.waivers import waived_facts

    facts = {fact.id for fact in case.facts} - {*waived_facts(case.waivers)}
    before = baseline.case(case)
    differing: tuple[tuple[str, str, str], ...] = ()
    theirs: dict[str, str] = {}
    if isinstance(before, BaselineCase):
        theirs = {row.fact_id: row.prompt_digest for row in before.table.rows}
        there = {fact: theirs.get(fact, "") for fact in facts}
        if why := not_comparable(pair(_table(there), before.table), False):
            yield f"{case.id}: {why}; type {_of_facts(settings, baseline, case)}"
            return
        differing = setting_differences(settings_of(case), before.settings)
    elif not settings.baseline_model:
        # The verdict says that the baseline has no such case.
        return
    ours = _asked(case, facts & theirs.keys() if theirs else facts, chats, counters[0])
    if settings.baseline_model:
        theirs = _asked(case, ours, chats, counters[-1])
    both = ours.keys() & theirs.keys()
    if not all(counter.exact for counter in counters):
        ours = {fact: _with_prompts_of(ours[fact], theirs[fact]) for fact in both}
    new, old = (_table({fact: of[fact] for fact in both}) for of in (ours, theirs))
    pairing = pair(new, old, differing)
    if both and len(pairing.differing) == len(both):
        another = _another_tokenizer(baseline, counters)
        remedy = _of_prompts(settings, baseline, case, pairing.asked[0], another)
        yield f"{case.id}: {not_comparable(pairing, another)}; type {remedy}"


def _another_tokenizer(baseline: Baseline, counters: Sequence[TokenCounter]) -> bool:
    """Return True if the tokenizers of both models are known and differ."""
    digests = [counter.tokenizer_digest for counter in counters]
    if len(digests) == 1 and baseline.model is not None:
        digests.append(baseline.model.tokenizer_digest)
    return all(digests) and len({*digests}) > 1


def _asked(
    case: Case, facts: Collection[str], chats: bool, counter: TokenCounter
) -> dict[str, str]:
    """Return how some of these facts of a case will be asked, by fact id; nothing where it is not known yet."""
    from pytest_kbrel.planning.requests import prompt_digests
    from pytest_kbrel.probes import part_of

    settings = case.settings
    # Helper models and encoders choose what stands in these prompts.
    if settings.encoder or settings.writer or sum(settings.shown):
        return {}
    looked_at = [fact for fact in case.facts if fact.id in facts]
    step = max(len(looked_at) // _LOOKED_AT, 1)
    part = part_of(case, looked_at[::step][:_LOOKED_AT])
    if not part.facts:
        return {}
    return prompt_digests(dataclasses.replace(part, chat=chats), counter.digest)


def _of_facts(settings: Settings, baseline: Baseline, case: Case) -> str:
    """Return what to type where a case has other facts than its baseline, or asks them otherwise."""
    seed = dict(baseline.settings).get("seed", "")
    if seed and int(seed) != case.seed:
        return f"--kb-seed={seed}"
    if not seed and settings.seed is not None:
        return "the command without --kb-seed"
    return _bless(settings, baseline.model)


def _of_prompts(
    settings: Settings, baseline: Baseline, case: Case, asked: Asked, another: bool
) -> str:
    """Return what to type where the facts of a case are asked otherwise; ``asked`` is one of them.

    ``another``: the tokenizers differ.
    """
    ours, theirs = map(read_digest, asked[1:])
    assert ours is not None
    assert theirs is not None
    if ours.prompts == theirs.prompts and ours.bos != theirs.bos:
        return f"--kb-model-args=add_bos_token={theirs.bos > ours.bos}"
    model = baseline.model
    prompting = model.prompting if model is not None else ""
    # The wording of the suite or of this version may be another one.
    args = any(name in settings.model_args for name in (*CHAT_ARGS, "tokenizer"))
    if not (another or prompting or args or settings.baseline_model):
        return _of_facts(settings, baseline, case)
    given = f" ({prompting})" if prompting else ""
    return (
        f"system_instruction, chat_template_args and tokenizer of the baseline's model{given} in "
        "--kb-model-args, without which models of different tokenizers have no prompt in common"
    )


def _with_prompts_of(ours: str, theirs: str) -> str:
    """Return a digest with the prompts of another one."""
    mine, given = read_digest(ours), read_digest(theirs)
    if mine is None or given is None:
        return ours
    prompts, bos, count = given.prompts, given.bos, given.count
    return str(dataclasses.replace(mine, prompts=prompts, bos=bos, count=count))


def _table(digests: dict[str, str]) -> Table:
    rows = (
        Outcome(
            fact_id=fact,
            question="",
            expected="",
            answer="",
            label="wrong",
            values=(),
            prompt_digest=digest,
        )
        for fact, digest in digests.items()
    )
    return Table(columns=(), rows=tuple(rows))
