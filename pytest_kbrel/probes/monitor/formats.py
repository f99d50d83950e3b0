"""Word prediction and fact checking: the other two ways Wang et al. ask a fact (Table 1, Table 2).

Word prediction has the model complete a statement; fact checking asks whether a statement is true, once with
the gold object and once with each of the M wrong ones. Both are means over the relation's statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pytest_kbrel.judges.replies import read_truth
from pytest_kbrel.probes.base import Answers, relation_of
from pytest_kbrel.probes.monitor.cells import Grid
from pytest_kbrel.probes.prompts import check, fill
from pytest_kbrel.records import Ask, Case, Fact, Generated, GenerateRequest

# A completed sentence goes on behind its object: "Paris, the largest city", "Paris. It is".
_CLAUSE_END = re.compile(r"[.,;:!?](?=\s|$)|\s\(")


def format_prompts(case: Case, fact: Fact, grid: Grid) -> Iterator[tuple[str, str]]:
    """Yield the role and prompt of all that is asked about ``fact``: nothing unless the grid has ``formats``.

    Roles are ``wp:K``, ``fc_pos:K`` and ``fc_negM:K`` for opening or statement number K.
    """
    if not grid.formats:
        return
    relation = relation_of(case, fact)
    for number, opening in enumerate(relation.openings):
        yield f"wp:{number}", fill(opening, fact.subject)
    assert fact.object is not None
    wrong = fact.negatives[: len(grid.negatives)]
    objects = [("fc_pos", fact.object), *((f"fc_neg{m}", name) for m, name in enumerate(wrong, start=1))]
    for number, statement in enumerate(relation.statements):
        for role, name in objects:
            yield f"{role}:{number}", check(fill(statement, fact.subject, name))


def format_asks(
    case: Case, fact: Fact, grid: Grid, request: Callable[[str], GenerateRequest]
) -> Iterator[Ask]:
    """Yield the asks of :func:`format_prompts`; ``request`` makes the request of a prompt."""
    for role, prompt in format_prompts(case, fact, grid):
        yield Ask(fact_id=fact.id, role=role, request=request(prompt))


def format_answers(case: Case, fact: Fact, grid: Grid, answers: Answers) -> tuple[Generated, ...]:
    """Return the answers to :func:`format_asks`, in their order."""
    return tuple(answers.generated(fact.id, role) for role, _ in format_prompts(case, fact, grid))


def format_values(
    case: Case, fact: Fact, grid: Grid, answers: Answers, is_right: Callable[[str], bool]
) -> tuple[float, ...]:
    """Return the fact's shares (0..1) for :data:`monitor_cells.FORMATS`: empty without ``formats``.

    ``is_right`` tells whether a text is the gold object. A reply that says neither true nor false is not
    right.
    """
    if not grid.formats:
        return ()
    found: dict[str, list[bool]] = {"wp": [], "fc_pos": [], "fc_neg": []}
    for role, _ in format_prompts(case, fact, grid):
        text = answers.generated(fact.id, role).text
        kind = role.partition(":")[0].rstrip("0123456789")
        if kind == "wp":
            found[kind].append(completes(text, is_right))
        else:
            found[kind].append(read_truth(text) is (kind == "fc_pos"))
    # Every negative has as many statements as the others, so this is the mean over the M of them.
    return tuple(sum(right) / len(right) for right in found.values())


def completes(text: str, is_right: Callable[[str], bool]) -> bool:
    """Tell whether a completion is the gold object, or a first clause that is."""
    return is_right(text) or is_right(_CLAUSE_END.split(text, maxsplit=1)[0])
