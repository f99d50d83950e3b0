"""What the cases of a suite are compared with, and what stands in the way of that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

from pytest_kbrel.baselines import (
    MUST_BE_EQUAL,
    Baseline,
    BaselineCase,
    PublishedCase,
    helper_differences,
    judge_differences,
    prompt_differences,
    setting_differences,
)
from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.errors import count
from pytest_kbrel.gates.figures import AS_EXPECTED, as_expected, values_of
from pytest_kbrel.gates.measurement import Obstacle, Pairing, pair
from pytest_kbrel.records import (
    CaseResult,
    Fingerprint,
    Table,
    Waiver,
    record,
)


def held_against(result: CaseResult, pairing: Pairing | None) -> CaseResult:
    """Return a case of edits whose table tells of each fact whether it ``counted`` and ``passed``.

    It counts where its condition held in the baseline; a note says of how many it did not. Other cases, and those
    without a baseline, are returned as they are.
    """
    table = result.table
    # An edit took or did not, whatever was known before.
    is_edit = result.slice.startswith("edit")
    if pairing is None or is_edit or "condition" not in table.columns:
        return result
    before, rows = pairing.baseline, []
    known = {of.fact_id: values_of(before, of)["condition"] for of in before.rows}
    for row in table.rows:
        counted = known.get(row.fact_id, 0.0)
        passed = counted * values_of(table, row)["right"]
        rows.append(replace(row, values=(*row.values, counted, passed)))
    added = len(pairing.added)
    out, total = [*known.values()].count(0.0) + added, len(known) + added
    told = (
        f"{out} of {count(total, 'fact')} left out: the baseline did not know them, or what they need, or was "
        "not asked"
    )
    return replace(
        result,
        table=Table(columns=(*table.columns, "counted", "passed"), rows=tuple(rows)),
        notes=(*result.notes, told) if out else result.notes,
    )


@record
class Comparison:
    """What the cases of a suite are compared with: a run, what a paper prints, or nothing (``baseline``).

    ``comparisons`` is the number of cases with relative gates in the suite. Of the candidate, ``model`` is
    the one under test, ``judge`` names who judged (rules, or a model), and ``helper`` returns the model of
    that name that judged or wrote distractors, ``None`` where there is none. ``facts`` are by node id those
    of a case, whether asked or not: what the baseline has besides these, the suite has lost.
    """

    baseline: Baseline | None = None
    comparisons: int = 1
    model: Fingerprint | None = None
    judge: str = ""
    helper: Callable[[str], Fingerprint | None] = lambda _: None
    facts: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def paper(self) -> str:
        """The paper whose figures the baseline is; empty where it is a run."""
        return "" if self.baseline is None else self.baseline.paper

    @property
    def with_run(self) -> bool:
        """Whether the baseline is a run: a case that it lacks is a failure then."""
        return self.baseline is not None and not self.paper

    @property
    def another_tokenizer(self) -> bool:
        """Whether the two models' tokenizers differ."""
        models = self.model, self.baseline and self.baseline.model
        return len({of.tokenizer_digest for of in models if of}) > 1

    def case(self, case: CaseResult) -> BaselineCase | None:
        """Return the same case of the blessed run, ``None`` where there is none."""
        return None if self.baseline is None else self.baseline.case(case)

    def published(self, case: CaseResult) -> PublishedCase | None:
        """Return what the paper prints of a case, or over exactly the members of one over several."""
        known = self.baseline and self.baseline.published.get(case.id)
        if not known:
            return None
        # The top tenth counts in no figure but its own.
        over = {member for member in case.members if not member.endswith("-top10]")}
        return known if not case.aggregate or over == set(known.members) else None

    def lacking(self, case: CaseResult, unasked: Sequence[str]) -> tuple[str, ...]:
        """Return those of the baseline's facts that were not asked which the suite has lost."""
        there = self.facts.get(case.nodeid, frozenset(unasked))
        return tuple(fact for fact in unasked if fact not in there)

    def pairing(self, case: CaseResult) -> Pairing | None:
        """Return a case paired with that of the blessed run, without waived facts; ``None`` without one.

        Where all that a case says is which outcomes are as expected, so it is of the baseline's.
        """
        before = self.case(case)
        if before is None:
            return None
        waived = case.unmatched.waived
        new, old = (without(table, waived) for table in (case.table, before.table))
        is_test = case.probe == "test"
        if new.columns == (AS_EXPECTED,) and not is_test:
            old = as_expected(old, case.table)
        differing = setting_differences(case.settings, before.settings)
        # The numbers of a test in Python may be of any size, and none is rounding.
        return pair(new, old, differing, exact=is_test)

    def obstacle(
        self,
        of: CaseResult,
        cases: Sequence[CaseResult],
        paired: Sequence[Pairing | None],
    ) -> Obstacle | None:
        """Return what stands in the way of comparing, as verdict and reason; ``None`` when nothing does.

        ``cases`` are what ``of`` is over, or itself alone, and ``paired`` each with that of the baseline.
        """
        if self.baseline is None:
            return (
                "no baseline",
                "no baseline was given to compare with; allowed: --kb-baseline=NAME or PATH",
            )
        missing = [
            case.id for case, pair in zip(cases, paired, strict=True) if not pair
        ]
        if self.paper and self.published(of) is None:
            over = f" over the same {len(cases)} cases" if of.aggregate else ""
            return "no baseline", f"{self.paper} has no figures of {of.id}{over}"
        if missing and not self.paper:
            others = ", ".join(self.baseline.other_suites(of.suite))
            renamed = f" (it has the suite files {others})" if others else ""
            return "no baseline", (
                f"the baseline has no case {', '.join(missing)}{renamed}: bless a run of all suites anew"
            )
        if differing := self.differing(cases):
            return "not comparable", (
                f"candidate and baseline differ in {'; '.join(differing)}; "
                "allowed: a baseline that shares these with the candidate"
            )
        for case, pairing in zip(cases, paired, strict=True):
            if pairing and (why := not_comparable(pairing, self.another_tokenizer)):
                return "not comparable", (
                    f"{case.id}: {why}; allowed: what the baseline was asked, or bless a run that was asked this"
                )
        return None

    def differing(self, cases: Sequence[CaseResult]) -> tuple[str, ...]:
        """Return in words what both models must share for these cases, and do not.

        Who judges matters where somebody does, and who wrote distractors where both runs have a model of that
        name: under another one the settings differ, which the facts' digests tell.
        """
        if self.model is None or self.baseline is None or self.baseline.model is None:
            return ()
        all_of_them = self.model.differences(self.baseline.model)
        differences = tuple(filter(None, map(all_of_them.get, MUST_BE_EQUAL)))
        if any(map(_is_judged, cases)):
            judges = self.helper(self.judge), self.baseline.judge
            differences += judge_differences(*judges)
        theirs = {helper.spec: helper for helper in self.baseline.helpers}
        specs = [dict(case.settings).get("distractors_from", "") for case in cases]
        for spec in dict.fromkeys(specs):
            if (writer := self.helper(spec)) and spec in theirs:
                role = "writer of distractors"
                differences += helper_differences(role, writer, theirs[spec])
        return differences


def _is_judged(case: CaseResult) -> bool:
    judged = getattr(probe_named(case.probe), "judged", False)
    return judged and any(row.expected for row in case.table.rows)


def not_comparable(pairing: Pairing, another_tokenizer: bool) -> str:
    """Return why two tables cannot be compared: facts asked otherwise, or most of them without a partner."""
    differing, added = pairing.differing, pairing.added
    facts = len(pairing.candidate.rows) + len(differing) + len(added)
    reasons = []
    if differing:
        what = prompt_differences(
            pairing.asked, pairing.settings, another_tokenizer=another_tokenizer
        )
        reasons.append(f"candidate and baseline differ in {what}")
    if not facts:
        reasons.append("all facts are waived, and none is left to compare")
    if 2 * len(added) > facts:
        reasons.append(
            f"{len(added)} of {count(facts, 'fact')} are not in the baseline (first: {added[0]}), and at "
            "least half must be"
        )
    return "; ".join(reasons)


def waived_facts(waivers: Iterable[Waiver]) -> tuple[str, ...]:
    """Return the ids of the facts that waivers in force leave out of comparisons, sorted."""
    return tuple(
        sorted(waiver.fact for waiver in waivers if waiver.fact and not waiver.expired)
    )


def without(table: Table, facts: Collection[str]) -> Table:
    """Return the table without the rows about ``facts``."""
    if not facts:
        return table
    rows = (row for row in table.rows if row.fact_id not in facts)
    return replace(table, rows=tuple(rows))
