"""What a run cannot be compared with, as far as it is known before the first question: no model is loaded."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.baselines import (
    Baseline,
    Differing,
    session_baseline,
    setting_differences,
)
from pytest_kbrel.bounds import limit_value
from pytest_kbrel.catalogue.rules import compares
from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.models.arguments import CHAT_ARGS
from pytest_kbrel.models.base import Spec, TokenCounter
from pytest_kbrel.models.registry import BACKENDS
from pytest_kbrel.plugin.options import origin_of
from pytest_kbrel.records import (
    BASELINE,
    Case,
    Fact,
    Fingerprint,
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
        if any(compares(gate.rule, gate.metric) for gate in of.gates)
        for member in of.members
    }
    compared = [
        case
        for case in cases
        if (case.suite, case.id) in over
        or any(compares(gate.rule, gate.metric) for gate in case.gates)
    ]
    first = next(_Check(settings, baseline).obstacles(compared), None)
    if first is not None:
        name = "baseline_model" if settings.baseline_model else "baseline"
        alone = f"--kb-{name.replace('_', '-')}= to compare with nothing"
        raise KbrelError(
            f"{origin_of(config, name)}: {settings.compared_with} and this run cannot be compared, and nothing "
            f"was asked: {first}, or {alone}"
        )


class _Check:
    """The comparison of a run with a blessed one, or with that of the other model, before either is asked."""

    def __init__(self, settings: Settings, baseline: Baseline | None) -> None:
        self.settings = settings
        specs = [settings.specs[""].get()]
        if settings.baseline_model:
            specs.append(settings.specs[BASELINE].get())
            baseline = session_baseline(_known(specs[1]), (), judge=settings.judge)
        assert baseline is not None
        assert baseline.model is not None
        self.baseline, self.theirs, self.own = baseline, baseline.model, specs[0]
        # A plan asks nothing, and reads no tokenizer for it.
        self.counters = [
            TokenCounter() if settings.plan else _counter(spec) for spec in specs
        ]
        self.exact = all(counter.exact for counter in self.counters)

    def obstacles(self, cases: Sequence[Case]) -> Iterator[str]:
        """Yield what stands in the way, and what to type instead; what is cheap to know comes first."""
        from pytest_kbrel.gates import Comparison

        ours, alone = _known(self.own), not self.settings.baseline_model
        if differing := Comparison(model=ours, baseline=self.baseline).differing([]):
            words = f"candidate and baseline differ in {'; '.join(differing)}"
            yield f"{words}; type {self._of_models(ours)}"
        elif alone:
            yield from self._of_flags(cases)
        # Both are asked the same, as far as it is known.
        if alone or self.exact:
            for case in cases:
                yield from self._of_case(case)

    def _of_models(self, ours: Fingerprint) -> str:
        """Return what to type where models differ in what they must share."""
        theirs, settings = self.theirs, self.settings
        if ours.scoring_version != theirs.scoring_version:
            return self._bless()
        if ours.chat_template == theirs.chat_template:
            seed = theirs.decoding.partition("seed ")[2]
            other = f"a model that is asked as {theirs.spec} was ({theirs.decoding})"
            return f"--kb-model-args=seed={seed}" if seed else other
        arg = f"apply_chat_template={theirs.chat_template}"
        if settings.baseline_model:
            other = f",apply_chat_template={ours.chat_template}"
            return f"{arg} in --kb-model-args, or {other} behind the name of --kb-baseline-model"
        if theirs.chat_template:
            return "--kb-apply-chat-template"
        if settings.apply_chat_template:
            return "the command without --kb-apply-chat-template"
        return f"--kb-model-args={arg}"

    def _bless(self) -> str:
        return (
            f"--kb-model={self.theirs.spec} --kb-baseline-update={self.settings.baseline} to bless the "
            "baseline's own model anew with these suites"
        )

    def _of_flags(self, cases: Sequence[Case]) -> Iterator[str]:
        """Yield flags under which a blessed run asked, or judged, otherwise."""
        from pytest_kbrel.probes.base import is_judged

        blessed, settings = dict(self.baseline.settings), self.settings
        judge, limit = blessed.get("judge", RULES), blessed.get("limit", "")
        if (settings.judge == RULES) != (judge == RULES) and any(map(is_judged, cases)):
            yield f"the judge is {settings.judge}, that of the baseline {judge}; type --kb-judge={judge}"
        # One of all facts has those of any limit.
        if limit and limit_value(limit) != settings.limit:
            here = "none" if settings.limit is None else settings.limit
            yield f"the baseline was blessed with --kb-limit={limit}, found here: {here}; type --kb-limit={limit}"
        if cases and not any(map(self.baseline.case, cases)):
            names = {key.partition("::")[0] for key in self.baseline.cases}
            yield (
                f"the baseline has no case like {cases[0].suite}::{cases[0].id}, found in it: cases of "
                f"{', '.join(sorted(names))}; type {self._bless()}"
            )

    def _of_case(self, case: Case) -> Iterator[str]:
        """Yield why nothing of a case can be compared."""
        from pytest_kbrel.gates import not_comparable
        from pytest_kbrel.gates.comparison import waived_facts
        from pytest_kbrel.gates.measurement import pair

        waived, before = waived_facts(case.waivers), self.baseline.case(case)
        facts = [fact for fact in case.facts if fact.id not in waived]
        if self.settings.baseline_model:
            differing: Sequence[Differing] = ()
            ours, theirs = (
                _asked(case, facts, self.own.chats, counter)
                for counter in self.counters
            )
        elif before:
            blessed = {row.fact_id: row.prompt_digest for row in before.table.rows}
            there = {fact.id: blessed.get(fact.id, "") for fact in facts}
            if why := not_comparable(pair(_table(there), before.table), False):
                yield f"{case.id}: {why}; type {self._of_facts(case)}"
                return
            differing = setting_differences(settings_of(case), before.settings)
            common = [fact for fact in facts if fact.id in blessed]
            ours = _asked(case, common, self.own.chats, self.counters[0])
            theirs = {fact: blessed[fact] for fact in ours}
            if not self.exact:
                ours = {fact: _asked_as(ours[fact], theirs[fact]) for fact in ours}
        else:
            # The verdict says that the baseline has no such case.
            return
        pairing = pair(_table(ours), _table(theirs), differing)
        if pairing.asked and len(pairing.differing) == len(pairing.asked):
            digests = [counter.tokenizer_digest for counter in self.counters]
            digests += [self.theirs.tokenizer_digest] if len(digests) == 1 else []
            another = all(digests) and len({*digests}) > 1
            why = not_comparable(pairing, another)
            yield f"{case.id}: {why}; type {self._of_prompts(case, pairing.asked[0][1:], another)}"

    def _of_facts(self, case: Case) -> str:
        """Return what to type where a case has other facts than its baseline, or asks them otherwise."""
        seed = dict(self.baseline.settings).get("seed", "")
        if seed and int(seed) != case.seed:
            return f"--kb-seed={seed}"
        if not seed and self.settings.seed is not None:
            return "the command without --kb-seed"
        return self._bless()

    def _of_prompts(self, case: Case, digests: Sequence[str], another: bool) -> str:
        """Return what to type where the facts of a case are asked otherwise, one of them by these digests.

        ``another``: the tokenizers differ.
        """
        ours, theirs = map(read_digest, digests)
        assert ours is not None
        assert theirs is not None
        if ours.prompts == theirs.prompts and ours.bos != theirs.bos:
            return f"--kb-model-args=add_bos_token={theirs.bos > ours.bos}"
        settings, prompting = self.settings, self.theirs.prompting
        # The wording of the suite or of this version may be another one.
        args = any(name in settings.model_args for name in (*CHAT_ARGS, "tokenizer"))
        if not (another or prompting or args or settings.baseline_model):
            return self._of_facts(case)
        given = f" ({prompting})" if prompting else ""
        return (
            f"system_instruction, chat_template_args and tokenizer of the baseline's model{given} in "
            "--kb-model-args, without which models of different tokenizers have no prompt in common"
        )


def _known(spec: Spec) -> Fingerprint:
    """Return the fingerprint of a model as far as its spec tells what two models must share."""
    return Fingerprint(
        spec=spec.text,
        backend=spec.backend,
        parameters=0,
        chat_template=spec.chats,
        decoding=spec.decoding,
        scoring_version=SCORING_VERSION,
        backend_version="",
        architecture="",
        weights_digest="",
        tokenizer_digest="",
        dtype="",
        device="",
    )


def _counter(spec: Spec) -> TokenCounter:
    """Return what knows the prompts of a checkpoint; of another model, and where it does not load, nothing does."""
    if BACKENDS[spec.backend].computes_here:
        # Opening the model says why it does not load.
        with contextlib.suppress(ModelError):
            return BACKENDS[spec.backend].counter(spec)
    return TokenCounter()


def _asked(
    case: Case, facts: Sequence[Fact], chats: bool, counter: TokenCounter
) -> dict[str, str]:
    """Return how some of these facts of a case will be asked, by fact id; nothing where it is not known yet."""
    from pytest_kbrel.evaluation.stub_run import prompt_digests
    from pytest_kbrel.probes import part_of

    settings = case.settings
    # Helper models and encoders choose what stands in these prompts.
    if not facts or settings.encoder or settings.writer or sum(settings.shown):
        return {}
    step = max(len(facts) // _LOOKED_AT, 1)
    part = part_of(case, facts[::step][:_LOOKED_AT])
    return prompt_digests(replace(part, chat=chats), counter.digest)


def _asked_as(ours: str, theirs: str) -> str:
    """Return a digest with the prompts of another one."""
    mine, given = read_digest(ours), read_digest(theirs)
    if mine is None or given is None:
        return ours
    prompts, bos, count = given.prompts, given.bos, given.count
    return str(replace(mine, prompts=prompts, bos=bos, count=count))


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
