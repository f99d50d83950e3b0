"""Properties for JUnit XML: few, short, and without what XML 1.0 forbids."""

from __future__ import annotations

import re

from pytest_kbrel.printing import printable
from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.reports import phrases, view
from pytest_kbrel.reports.formatting import number, one_line

_LONGEST = 200
# The complement of XML 1.0's Char production.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Return ``text`` on one short line of characters that XML 1.0 allows."""
    return _FORBIDDEN.sub("�", printable(one_line(text, _LONGEST)))


def case_properties(result: CaseResult) -> list[tuple[str, str]]:
    """Return the properties of a testcase: verdict, facts asked, key metrics, facts lost and gained.

    Of a gate against a baseline the corrected p value that decides, of responses what is noteworthy, of facts
    without a partner how many there are; and the waiver, where there is one.
    """
    properties = [("kb_verdict", result.verdict), ("kb_n", str(result.n))]
    for name in view.key_metrics(result):
        value = view.metric(result, name)
        if value is not None and value.value is not None:
            properties.append((f"kb_{xml_text(name)}", number(value.value, 4)))
    if result.lost or result.gained:
        properties += [("kb_facts_lost", str(len(result.lost))), ("kb_facts_gained", str(len(result.gained)))]
    properties += [
        (f"kb_{xml_text(gate.metric)}_{gate.rule}_p_sidak", number(gate.p_sidak, 4))
        for gate in result.gates
        if gate.p_sidak is not None
    ]
    properties += [
        (f"kb_integrity_{xml_text(share.name)}", xml_text(phrases.share_text(share)))
        for share in phrases.noteworthy(result)
    ]
    if unmatched := phrases.unmatched(result.unmatched):
        properties.append(("kb_facts_unmatched", unmatched))
    if result.waiver is not None:
        waiver = f"until {result.waiver.expires} by {result.waiver.owner}: {result.waiver.reason}"
        properties.append(("kb_waiver", xml_text(waiver)))
    return properties


def suite_properties(run: Run) -> list[tuple[str, str]]:
    """Return the properties of the testsuite: which model, against which baseline, with which result."""
    properties = [("kb_version", xml_text(run.kbrel_version)), ("kb_verdict", view.verdict(run))]
    if run.model is not None:
        properties += [
            ("kb_model", xml_text(run.model.spec)),
            ("kb_weights", xml_text(run.model.weights_digest)),
            ("kb_dtype", xml_text(run.model.dtype)),
        ]
    if run.baseline:
        properties.append(("kb_baseline", xml_text(run.baseline)))
    if sentence := view.changes_headline(run):
        properties.append(("kb_facts", xml_text(sentence)))
    if run.differences:
        properties.append(("kb_differences", xml_text("; ".join(run.differences))))
    if stopped := view.verdict_counts(run)["not run"]:
        # pytest writes no testcase for these.
        properties.append(("kb_not_run", str(stopped)))
    if run.recorded:
        properties.append(("kb_recorded", xml_text(run.recorded)))
    return properties
