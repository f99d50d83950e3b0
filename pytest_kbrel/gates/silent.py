"""Whether a model said anything at all in a suite: "unsure" to every question is knowledge of nothing.

No single case is unsound for such answers: they are right where nobody can know, and honest where the model
does not. But over a whole suite a model that gives no other has no hallucinations and no wrong answers, and
figures that reward their absence are perfect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pytest_kbrel.gates.degenerate_answers import FEWEST, is_informative
from pytest_kbrel.gates.integrity_findings import count
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import CaseResult, Outcome

_LONGEST_SHOWN = 60


def silent(results: Iterable[CaseResult]) -> Iterator[str]:
    """Yield what to say of each suite in whose sound cases no answer says anything.

    At least :data:`degenerate.FEWEST` of these must be answers to questions that have one.
    """
    rows: dict[str, list[Outcome]] = {}
    for result in results:
        if result.verdict != "invalid":
            rows.setdefault(result.suite, []).extend(result.table.rows)
    for suite, answers in sorted(rows.items()):
        answerable = sum(bool(row.expected) for row in answers)
        if answerable >= FEWEST and not any(map(is_informative, answers)):
            said = Counter(normalise(row.answer) for row in answers)
            most, times = max(said.items(), key=lambda item: item[1])
            yield (
                f"{suite}: the model says nothing: none of {count(len(answers), 'answer')} is informative "
                f"({times} times {most[:_LONGEST_SHOWN]!r}), although {answerable} of the questions have an "
                "answer; allowed: at least one: prompts, chat template or max_new_tokens do not suit the "
                "model, or it does not answer questions"
            )
