"""JUnit XML: what it says of the cases and of the run, for pytest's ``--junitxml`` and ``kbrel merge``.

The schema of Jenkins' xUnit plugin (``junit-10.xsd``) allows properties of a test suite and none of a test
case. So the figures of a case stand in its output, a line each, unless the user asks for properties.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from pytest_kbrel.outputs import new_file
from pytest_kbrel.printing import printable
from pytest_kbrel.records import CaseResult, Judgement, Run
from pytest_kbrel.reports import phrases
from pytest_kbrel.reports.formatting import (
    number,
    one_line,
    ordered,
    relation_title,
    verdict_counts,
)
from pytest_kbrel.reports.rendering import filled
from pytest_kbrel.reports.terminal import failure_text
from pytest_kbrel.reports.view import View, key_figures, named_apart

# With what the names of our properties begin.
PREFIX = "kb_"
_LONGEST = 200
# The complement of XML 1.0's Char production.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str, limit: int = _LONGEST) -> str:
    """Return ``text`` on one short line of characters that XML 1.0 allows; a ``limit`` of 0 is none."""
    return _FORBIDDEN.sub("�", printable(one_line(text, limit)))


def case_properties(result: CaseResult) -> list[tuple[str, str]]:
    """Return the properties of a testcase: verdict, facts, relation, key metrics, facts lost and gained.

    Of a gate against a baseline the corrected p value that decides, of responses what is noteworthy, of facts
    without a partner how many there are; and the waiver, where there is one.
    """
    waiver, changed = result.waiver, result.lost or result.gained
    terms = waiver and f"until {waiver.expires} by {waiver.owner}: {waiver.reason}"
    relation = result.label and relation_title(result.slice, result.label)
    return _named(
        [
            ("verdict", result.verdict),
            ("n", str(result.n)),
            ("relation", relation),
            *((value.name, _figure(value.value)) for value in key_figures(result)),
            ("facts_lost", str(len(result.lost)) if changed else ""),
            ("facts_gained", str(len(result.gained)) if changed else ""),
            *(
                (f"{gate.metric}_{gate.rule}_p_sidak", _figure(gate.p_sidak))
                for gate in result.gates
            ),
            *(
                (f"integrity_{share.name}", phrases.share_text(share))
                for share in phrases.noteworthy(result)
            ),
            ("facts_unmatched", phrases.unmatched(result.unmatched)),
            ("waiver", terms or ""),
        ]
    )


def _figure(value: float | None) -> str:
    return "" if value is None else number(value, 4)


def _named(properties: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the properties that say something, with our prefix and in characters of XML."""
    return [
        (xml_text(f"{PREFIX}{name}"), xml_text(text))
        for name, text in properties
        if text
    ]


def suite_properties(run: Run) -> list[tuple[str, str]]:
    """Return the properties of the test suite: model, baseline, result, and the figures over several cases.

    Those figures are the key metrics of each aggregate, and the correlations over slices.
    """
    model, view = run.model, View(run)
    # pytest writes no testcase for those that were not run.
    stopped = verdict_counts(run)["not run"]
    overall = named_apart(
        (f"{case.probe}_{case.slice}_{value.name}", case, value.value)
        for case in view.aggregates
        for value in key_figures(case)
        if value.value is not None
    )
    pairs = [one for pair in view.correlations for one in pair]
    return _named(
        [
            ("version", run.kbrel_version),
            ("verdict", view.verdict),
            ("model", model.title if model else ""),
            ("weights", model.weights_digest if model else ""),
            ("dtype", model.dtype if model else ""),
            ("baseline", run.baseline),
            ("facts", view.changes),
            ("differences", "; ".join(run.differences)),
            ("not_run", str(stopped or "")),
            ("shard", str(run.shard.shard) if run.shard else ""),
            ("recorded", run.recorded),
            *((name, _figure(value)) for name, value in overall),
            *(
                (f"correlation_{one.x}_{one.y}_{one.method}{end}", _figure(figure))
                for one in pairs
                for end, figure in (("", one.r), ("_p", one.p))
            ),
        ]
    )


def move_properties(testcase: Element) -> None:
    """Move our properties of a case into its output, a line ``name=value`` each.

    Those that the user's own test recorded stay. The lines stand above the output that is there: readers such
    as GitLab's expect one output a case.
    """
    parent = testcase.find("properties")
    if parent is None:
        return
    ours = [one for one in parent if one.get("name", "").startswith(PREFIX)]
    for one in ours:
        parent.remove(one)
    if not len(parent):
        testcase.remove(parent)
    output = testcase.find("system-out")
    if output is None and ours:
        output = SubElement(testcase, "system-out")
    if output is not None:
        lines = (f"{one.get('name')}={one.get('value')}\n" for one in ours)
        output.text = "".join(lines) + (output.text or "")


def write_junit(
    run: Run,
    path: Path,
    *,
    failing: Collection[Judgement],
    baseline_name: str,
    as_properties: bool,
) -> None:
    """Write the cases of a run as pytest's ``--junitxml`` has them; ``failing`` verdicts are failures."""
    cases = []
    for case in ordered(run):
        failure = skipped = ""
        if case.waiver is not None and case.waived:
            skipped = phrases.waiver_reason(case.waiver)
        elif case.verdict in failing:
            failure = failure_text(case, baseline_name=baseline_name)
        told = {
            "suite": xml_text(case.suite.replace("/", "."), 0),
            "name": xml_text(case.id, 0),
            "seconds": case.duration,
            "figures": case_properties(case),
            "skipped": xml_text(skipped),
            "failure": list(map(xml_text, failure.splitlines())),
        }
        cases.append(told)
    text = filled(
        "junit.xml.j2",
        {
            "cases": cases,
            "of_run": suite_properties(run),
            "seconds": sum(case.duration for case in run.cases),
            "as_properties": as_properties,
        },
    )
    with new_file(path, force=True) as stream:
        stream.write(text)
