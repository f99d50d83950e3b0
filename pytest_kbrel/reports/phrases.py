"""Phrases beside the figures of all reports: p values, integrity, waivers, unpaired facts."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.records import (
    LANGUAGES,
    NOT_REACHED,
    CaseResult,
    Correlation,
    Fingerprint,
    GateResult,
    MetricValue,
    Run,
    Share,
    Unmatched,
    Waiver,
    unsupported_languages,
)
from pytest_kbrel.reports.formatting import (
    bound,
    count,
    difference,
    is_blessed,
    metric,
    names,
    number,
    one_line,
    p_value,
    reused,
    signed,
    slices,
    with_interval,
)

# From this part of what is allowed on, a reader should know of a share that breaks no limit yet.
NOTEWORTHY = 0.5
# The share of replies without an option above which the first screen says so.
UNREAD = 0.05
# How many notes on single cases stand at the head of a report.
_MOST_NOTES = 5
# The problem of a run whose session ended early.
STOPPED = "the session stopped before all its cases were decided"
INTERRUPTED = "the session was interrupted (Ctrl-C) before all its cases were decided"
# In the problem of a suite that could not be read.
UNCOLLECTED = " could not be collected: "
# What stands in place of a verdict where nothing was judged.
MEASURED = "measured"
_SHARES = {
    "answered": "answered",
    "empty": "empty",
    "truncated": "cut short",
    "repeated": "with one and the same wrong answer",
    "errored": "without a usable response",
    "unparsable": "not read by the judge",
    "unread": "without a choice among the options",
    "below_random": "informative answers right",
    "first_token": "answers beginning with the scored token",
    "unmoved": "with one probability behind all prompts",
    "unasked": "of the baseline not asked any more",
}
# A mean, and no count among others.
ANCHOR = "anchor_prob"
# Of these so many are needed; of the others so many are allowed.
_LEAST = ("answered", "below_random", "first_token", ANCHOR)
UNMATCHED = {
    "added": "not in the baseline",
    "unasked": "not asked in this run",
    "unanswered": "without a usable response in this run",
    "lacking": "not asked any more",
    "waived": "left out by a waiver",
}


def allowed(gate: GateResult, baseline_name: str) -> str:
    """Return in words what a gate allows."""
    name = one_line(baseline_name) or "the baseline"
    words = GATE_RULES[gate.rule].allowed.format(bound=bound(gate.bound), baseline=name)
    if gate.beyond is not None:
        words += f"; fails if surely {side(gate)} {bound(gate.beyond)}"
    return words


def side(gate: GateResult) -> str:
    """Return on which side of ``beyond`` a gate that compares fails."""
    return "above" if GATE_RULES[gate.rule].allows_more > 0 else "below"


def no_interval(value: MetricValue) -> str:
    """Return that there is no interval, and why: ``no interval (1 fact)``."""
    why = (
        count(1, "fact") if 1 in (value.paired, value.n) else one_line(value.note, 200)
    )
    return f"no interval ({why})" if why else "no interval"


def unsure(value: MetricValue) -> str:
    """Return why a value that is shown has no interval, or its difference none; empty where that is clear."""
    if value.value is None or not value.note:
        return ""
    ends = (
        (value.low, value.high)
        if value.delta is None
        else (value.delta_low, value.delta_high)
    )
    # That nothing changed says it all.
    return no_interval(value) if ends == (None, None) and value.delta != 0 else ""


def moved(value: MetricValue) -> str:
    """Return a difference to the baseline with its interval: ``-0.071 [-0.111, -0.031]``."""
    # An equals sign says it all where no outcome changed.
    changed = value.delta or value.delta_low or value.delta_high
    ends = difference(value.delta_low, value.delta_high) if changed else ""
    return f"{signed(value.delta)} {ends}".rstrip()


def observed(gate: GateResult) -> str:
    """Return what was held against the bound: ``recovered 0.973 [0.951, 0.995]``; empty where nothing was."""
    if gate.observed is None:
        return ""
    figure = with_interval(gate.observed, gate.low, gate.high)
    return f"{GATE_RULES[gate.rule].observed} {figure}".lstrip()


def beside(result: CaseResult, name: str) -> str:
    """Return what is shown beside a figure of MONITOR: ``accuracy 0.586 +0.002, anchor_prob 0.811 =``."""
    values = [metric(result, other) for other in BESIDE.get(name, ())]
    return ", ".join(
        f"{value.name} {number(value.value)} {signed(value.delta)}".rstrip()
        for value in values
        if value
    )


def controls(case: CaseResult, name: str) -> str:
    """Return what a metric is held against: ``majority 0.083, random 0.200``; empty where it has no control."""
    start = f"{name}_control_"
    return ", ".join(
        f"{one_line(value.name.removeprefix(start))} {number(value.value)}"
        for value in case.metrics
        if value.name.startswith(start) and value.value is not None
    )


def corrected(gate: GateResult) -> str:
    """Return the p value and what corrections for all comparisons of the run make of it, those known.

    ``p of no drop beyond 0.02 = 0.004; over the whole run: Šidák p = 0.062 (decides), Holm p = 0.058``
    """
    alone = p_value(gate.p)
    if alone and gate.beyond is not None:
        what = (
            "drop beyond" if GATE_RULES[gate.rule].allows_more > 0 else "recovery below"
        )
        alone = f"p of no {what} {bound(gate.beyond)} {alone.removeprefix('p ')}"
    named = (
        ("Šidák", gate.p_sidak, " (decides)"),
        ("Holm", gate.p_holm, ""),
        ("Benjamini-Hochberg", gate.p_bh, ""),
    )
    over_all = ", ".join(
        f"{name} {p_value(p)}{note}" for name, p, note in named if p is not None
    )
    parts = (alone, over_all and f"over the whole run: {over_all}")
    return "; ".join(filter(None, parts))


def gate_name(gate: GateResult) -> str:
    """Return metric, rule and bound of a gate: ``accuracy max_drop 0.05``."""
    return f"{one_line(gate.metric)} {gate.rule} {bound(gate.bound)}"


def is_waived(case: CaseResult, run: Run) -> bool:
    """Return True if the case did not pass and a waiver excuses that."""
    # Where no blessed run was asked for, a case without one is no failure.
    return case.waived and (case.verdict != "no baseline" or is_blessed(run))


def verdict_words(case: CaseResult, run: Run) -> str:
    """Return a case's verdict; ``fail, waived`` where a waiver lets its failure pass.

    ``measured`` where a figure over several cases has no gate: nothing was judged.
    """
    if case.aggregate and case.verdict == "pass" and not case.gates:
        return MEASURED
    return f"{case.verdict}, waived" if is_waived(case, run) else case.verdict


def waiver(case: CaseResult, run: Run) -> str:
    """Return what became of a case's waivers, such as that they were not needed; empty without one."""
    if case.expired:
        return "; ".join(expired_waivers(case))
    given = case.waiver
    if given is None:
        return ""
    if is_waived(case, run):
        return waiver_reason(given)
    unused = (
        "no longer needed, the case passes"
        if case.verdict == "pass"
        else "not used, it is for failures only"
    )
    return f"waiver {unused}: {_terms(given)}"


def waiver_reason(given: Waiver) -> str:
    """Return why a failure is let pass: ``waived until 2026-12-31 by Ann: known``."""
    return f"waived {_terms(given)}"


def _terms(given: Waiver, word: str = "until") -> str:
    who, why = one_line(given.owner, 80), one_line(given.reason, 300)
    return f"{word} {one_line(given.expires, 40)} by {who}: {why}"


def expired_waivers(case: CaseResult) -> tuple[str, ...]:
    """Return what the expired waivers of a case say, one after the other."""
    texts = []
    for given in case.expired:
        what = f"fact {given.fact}" if given.fact else given.case
        stated = f"stated in {one_line(case.suite)}:{given.line}"
        texts.append(
            f"the waiver of {one_line(what, 80)} {_terms(given, 'expired on')}; {stated}; "
            "allowed: a later 'expires', or no waiver"
        )
    return tuple(texts)


def share_text(part: Share) -> str:
    """Return a figure of integrity: ``14 of 20 cut short (at most 50 %)``."""
    name = _SHARES.get(part.name, one_line(part.name, 60).replace("_", " "))
    if part.name == ANCHOR:
        name = f"over {count(part.total, 'fact')}"
    return f"{share_count(part)} {name} ({share_limit(part)})"


def share_count(part: Share) -> str:
    """Return what was counted: ``14 of 20``; of anchors the mean of what was added up."""
    if part.name == ANCHOR:
        mean = part.value / (part.total or 1)
        return f"mean anchor probability {mean:.2g}"
    return f"{part.value} of {part.total}"


def share_limit(part: Share) -> str:
    """Return what is allowed: ``at most 50 %``; of a mean probability, which is no share, the number."""
    word = "at least" if part.name in _LEAST else "at most"
    if part.name == ANCHOR:
        return f"{word} {part.limit:g}"
    if part.name == "below_random":
        word = "random answers:"
    return f"{word} {number(100 * part.limit, 1).removesuffix('.0')} %"


def noteworthy(case: CaseResult) -> tuple[Share, ...]:
    """Return the figures of integrity that break their limit or use up half of what it allows."""
    return tuple(
        part for part in case.integrity if part.broken or _used(part) >= NOTEWORTHY
    )


def _used(share: Share) -> float:
    """Return which part of what is allowed was used up: 1 at the limit."""
    if not share.total:
        return 0.0
    part = share.value / share.total
    if share.name == "below_random":
        return float(part < share.limit)
    if share.name == ANCHOR:
        # Most probabilities are far above so small a limit: used up is half of it at twice the limit.
        return share.limit / part if part else float(share.limit > 0)
    used, allowed = (
        (1 - part, 1 - share.limit) if share.name in _LEAST else (part, share.limit)
    )
    return 0.0 if not used else used / allowed if allowed else 1.0


def unmatched(*of_cases: Unmatched) -> str:
    """Return how many facts have no partner in the baseline, each once, and why; empty where all have one."""
    parts = []
    for name, words in UNMATCHED.items():
        ids = {fact for facts in of_cases for fact in getattr(facts, name)}
        if ids:
            parts.append(f"{count(len(ids), 'fact')} {words}")
    return ", ".join(parts)


def case_notes(case: CaseResult, most: int) -> Iterator[str]:
    """Yield the first errors of a case, what is noteworthy of its responses, and which facts lack a partner."""
    yield from (f"error: {one_line(error, 500)}" for error in case.errors[:most])
    if len(case.errors) > most:
        yield f"and {count(len(case.errors) - most, 'more error')}"
    for share in noteworthy(case):
        yield f"responses: {share_text(share)}"
    if without := unmatched(case.unmatched):
        yield f"compared without {without}"


def partial_note(run: Run) -> str:
    """Return a note that the run is partial; empty where it is not, or a problem says so already."""
    is_said = is_uncollected(run) or {STOPPED, INTERRUPTED} & set(run.problems)
    if run.complete or run.shard is not None or is_said:
        return ""
    return "partial run: not every case of its suites was selected and soundly decided"


def is_uncollected(run: Run) -> bool:
    """Return True if a suite of the run could not be read."""
    return any(UNCOLLECTED in problem for problem in run.problems)


def not_run_note(run: Run) -> str:
    """Return how many cases the session stopped before; empty where it came to all."""
    stopped = [case for case in run.cases if case.verdict == "not run"]
    if not stopped:
        return ""
    why = next(iter(stopped[0].errors), NOT_REACHED)
    if why == NOT_REACHED:
        why = f"the session stopped before {'them' if stopped[1:] else 'it'}"
    return f"{count(len(stopped), 'case')} not run: {one_line(why, 300)}"


def unmeasured_note(case: CaseResult) -> str:
    """Return why a case has no figures; empty where it has some."""
    if case.metrics:
        return ""
    if case.errors:
        return one_line(case.errors[0], 300)
    if case.verdict == "not run":
        return "the session stopped before it"
    return case.notes[0] if case.notes else "nothing was measured"


def prompt_form(model: Fingerprint) -> str:
    """Return the prompt format of a model; empty for a scripted model, which has only one."""
    if model.backend == "scripted":
        return ""
    return "chat template" if model.chat_template else "raw prompts"


def run_notes(run: Run, *, brief: bool = False) -> Iterator[str]:
    """Yield the notes on a run and its comparison as a whole, a sentence each.

    ``brief`` leaves out what needs no attention: how the model was loaded, and that its weights are others
    than the baseline's.
    """
    if run.shard is not None:
        of = run.shard.shard
        yield (
            f"part {of.index} of {of.count}, dealt out by {of.by}: no gate is decided before kbrel merge or "
            "--kb-from-run joins all parts"
        )
    yield from _environment_notes(dict(run.environment), brief=brief)
    if run.recorded:
        yield f"decided again over {one_line(run.recorded)}, the model was not asked"
    if run.base is not None and run.base.spec and run.base.title != run.baseline:
        yield f"the baseline's model is {one_line(run.base.title)}"
    if differing := unexpected_differences(run) if brief else run.differences:
        yield f"differs from the baseline in: {'; '.join(map(one_line, differing))}"
    if without := unmatched(*(case.unmatched for case in slices(run))):
        yield f"compared without {without}"
    looks = [case.looks for case in run.cases if case.looks is not None]
    if looks:
        done, total = sum(of.asked for of in looks), sum(of.facts for of in looks)
        yield f"asked until decided: {done} of {count(total, 'fact')}"
    yield from _unsupported(run)
    yield from _languages(run)
    yield from _asked_otherwise(run)
    yield from _unread(run)


def unexpected_differences(run: Run) -> list[str]:
    """Return what differs from the baseline and may, but for the weights: a candidate has its own."""
    known = run.model.differences(run.base) if run.model and run.base else {}
    return [text for text in run.differences if text != known.get("weights_digest")]


def _unsupported(run: Run) -> Iterator[str]:
    """Yield for each language without rules of its own how its answers were judged, and in which cases."""
    called, cases_by_note = names(run), dict[str, list[str]]()
    for case in slices(run):
        for language in unsupported_languages(case.settings):
            cases_by_note.setdefault(language, []).append(one_line(called[case.nodeid]))
    for language, cases in cases_by_note.items():
        more = f" and {len(cases) - 1} more" if cases[1:] else ""
        yield (
            f"the judge has no rules for the language {one_line(language, 20)!r} "
            f"({cases[0]}{more}): its answers were judged by the rules for English; known are "
            f"{', '.join(LANGUAGES)}"
        )


def _languages(run: Run) -> Iterator[str]:
    """Yield how much was right in each language of parallel facts."""
    for case in run.cases:
        shares = {of.first: of.right / of.facts for of in case.languages if of.facts}
        if shares:
            parts = (f"{name} {number(share)}" for name, share in shares.items())
            yield f"right by language: {', '.join(parts)}"


def _asked_otherwise(run: Run) -> Iterator[str]:
    called = names(run)
    notes = [(case, note) for case in run.cases for note in case.notes]
    for case, note in notes[:_MOST_NOTES]:
        yield f"{one_line(called[case.nodeid])}: {one_line(note, 300)}"
    if len(notes) > _MOST_NOTES:
        yield f"and {count(len(notes) - _MOST_NOTES, 'more note')} on single cases"


def _unread(run: Run) -> Iterator[str]:
    """Yield how many replies to multiple-choice questions pick no option, where they are more than a few."""
    called = names(run)
    shares = [
        (share.value / share.total, one_line(called[case.nodeid]))
        for case in slices(run)
        for share in case.integrity
        if share.name == "unread" and share.value > UNREAD * share.total
    ]
    if shares:
        worst, name = max(shares)
        more = f", {len(shares) - 1} more above {100 * UNREAD:g} %"
        yield (
            f"choices_unread: of the replies to multiple-choice questions {100 * worst:.0f} % pick no option "
            f"({name}{more if shares[1:] else ''}); they count as another answer"
        )


def _environment_notes(facts: dict[str, str], *, brief: bool) -> Iterator[str]:
    def lines(name: str) -> list[str]:
        return [one_line(text, 500) for text in facts.get(name, "").splitlines()]

    yield from lines("model_notes")
    if "model_load_seconds" in facts and not brief:
        is_shared = facts.get("workers", "0") not in ("0", "1")
        each = " by the slowest worker" if is_shared else ""
        engine = f"; {one_line(facts['engine'], 200)}" if "engine" in facts else ""
        yield f"model loaded in {one_line(facts['model_load_seconds'])} s{each}{engine}"
    if facts.get("answers_reused", "0") != "0":
        store = one_line(facts.get("answers_store", ""))
        yield f"{reused(facts, 'answers')} answers reused from {store}"
    yield from lines("tokens_spent")
    yield from lines("answers_resumed")
    if "answers_not_kept" in facts:
        yield f"answers are not kept: {one_line(facts['answers_not_kept'], 400)}"


def correlation_text(pearson: Correlation, spearman: Correlation) -> str:
    """Return two coefficients: ``Pearson 0.500 (p = 0.030), Spearman 0.400 (p = 0.050), n = 9``."""
    both = (
        f"{one.method.title()} {number(one.r)} ({p_value(one.p)})"
        for one in (pearson, spearman)
    )
    return f"{', '.join(both)}, n = {pearson.n}"
