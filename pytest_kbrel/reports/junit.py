"""JUnit XML: what it says of the cases and of the run, for pytest's ``--junitxml`` and ``kbrel merge``.

The schema of Jenkins' xUnit plugin (``junit-10.xsd``) allows properties of a test suite and none of a test
case. So the figures of a case stand in its output, a line each, unless the user asks for properties.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, tostring

from pytest_kbrel.printing import printable
from pytest_kbrel.records import CaseResult, Judgement, Run
from pytest_kbrel.reports import phrases, replacing, view
from pytest_kbrel.reports.changes import changes_headline
from pytest_kbrel.reports.formatting import number, one_line
from pytest_kbrel.reports.terminal import failure_text

# With what the names of our properties begin.
PREFIX = "kb_"
_LONGEST = 200
_OUTPUT = "system-out"
# The complement of XML 1.0's Char production.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Properties = Sequence[tuple[str, str]]


def xml_text(text: str, limit: int = _LONGEST) -> str:
    """Return ``text`` on one short line of characters that XML 1.0 allows; a ``limit`` of 0 is none."""
    return _FORBIDDEN.sub("�", printable(one_line(text, limit)))


def case_properties(result: CaseResult) -> list[tuple[str, str]]:
    """Return the properties of a testcase: verdict, facts, relation, key metrics, facts lost and gained.

    Of a gate against a baseline the corrected p value that decides, of responses what is noteworthy, of facts
    without a partner how many there are; and the waiver, where there is one.
    """
    properties = [("kb_verdict", result.verdict), ("kb_n", str(result.n))]
    if result.label:
        properties.append(
            ("kb_relation", xml_text(view.relation_title(result.slice, result.label)))
        )
    for name in view.key_metrics(result):
        value = view.metric(result, name)
        if value is not None and value.value is not None:
            properties.append((f"kb_{xml_text(name)}", number(value.value, 4)))
    if result.lost or result.gained:
        properties += [
            ("kb_facts_lost", str(len(result.lost))),
            ("kb_facts_gained", str(len(result.gained))),
        ]
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
    """Return the properties of the test suite: model, baseline, result, and the figures over several cases.

    Those figures are the key metrics of each aggregate, and the correlations over slices.
    """
    properties = [
        ("kb_version", xml_text(run.kbrel_version)),
        ("kb_verdict", view.verdict(run)),
    ]
    if run.model is not None:
        properties += [
            ("kb_model", xml_text(run.model.spec)),
            ("kb_weights", xml_text(run.model.weights_digest)),
            ("kb_dtype", xml_text(run.model.dtype)),
        ]
    if run.baseline:
        properties.append(("kb_baseline", xml_text(run.baseline)))
    if sentence := changes_headline(run):
        properties.append(("kb_facts", xml_text(sentence)))
    if run.differences:
        properties.append(("kb_differences", xml_text("; ".join(run.differences))))
    if stopped := view.verdict_counts(run)["not run"]:
        # pytest writes no testcase for these.
        properties.append(("kb_not_run", str(stopped)))
    if run.shard is not None:
        properties.append(("kb_shard", str(run.shard.shard)))
    if run.recorded:
        properties.append(("kb_recorded", xml_text(run.recorded)))
    return [*properties, *_overall(run), *_correlations(run)]


def _overall(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the key figures over several cases; where two suites have the same one, the node id is added."""
    figures = [
        (f"{PREFIX}{case.probe}_{case.slice}_{value.name}", case.nodeid, value.value)
        for case in view.aggregates(run)
        for value in map(partial(view.metric, case), view.key_metrics(case))
        if value is not None and value.value is not None
    ]
    counts = Counter(name for name, _, _ in figures)
    for name, nodeid, value in figures:
        yield (
            xml_text(name if counts[name] == 1 else f"{name} ({nodeid})"),
            number(value, 4),
        )


def _correlations(run: Run) -> Iterator[tuple[str, str]]:
    for pair in view.correlation_pairs(run):
        for one in pair:
            name = f"{PREFIX}correlation_{one.x}_{one.y}_{one.method}"
            yield xml_text(name), number(one.r, 4)
            yield xml_text(f"{name}_p"), number(one.p, 4)


def place_properties(
    testcase: Element, properties: Properties, *, as_properties: bool
) -> None:
    """Add the properties of a case to its element: as lines ``name=value`` of its output, or as properties.

    The lines stand above the output that is there: readers such as GitLab's expect one output a case.
    """
    if not properties:
        return
    if as_properties:
        parent = testcase.find("properties")
        if parent is None:
            parent = Element("properties")
            testcase.insert(0, parent)
        for name, value in properties:
            SubElement(parent, "property", name=name, value=value)
        return
    output = testcase.find(_OUTPUT)
    if output is None:
        output = SubElement(testcase, _OUTPUT)
    lines = "".join(f"{name}={value}\n" for name, value in properties)
    output.text = lines + (output.text or "")


def move_properties(testcase: Element) -> None:
    """Move our properties of a case into its output; those that the user's own test recorded stay."""
    parent = testcase.find("properties")
    if parent is None:
        return
    ours = [one for one in parent if one.get("name", "").startswith(PREFIX)]
    for one in ours:
        parent.remove(one)
    if not len(parent):
        testcase.remove(parent)
    pairs = [(one.get("name", ""), one.get("value", "")) for one in ours]
    place_properties(testcase, pairs, as_properties=False)


def write_junit(
    run: Run,
    path: Path,
    *,
    failing: Collection[Judgement],
    baseline_name: str,
    as_properties: bool,
) -> None:
    """Write the cases of a run as pytest's ``--junitxml`` has them; ``failing`` verdicts are failures."""
    root = Element("testsuites", name="pytest tests")
    suite = SubElement(root, "testsuite", name="pytest")
    place_properties(suite, suite_properties(run), as_properties=True)
    cases = view.ordered(run)
    for case in cases:
        testcase = SubElement(
            suite,
            "testcase",
            classname=xml_text(case.suite.replace("/", "."), 0),
            name=xml_text(case.id, 0),
            time=f"{case.duration:.3f}",
        )
        if case.waiver is not None and case.waived:
            reason = xml_text(phrases.waiver_reason(case.waiver))
            SubElement(testcase, "skipped", type="pytest.xfail", message=reason)
        elif case.verdict in failing:
            text = failure_text(case, baseline_name=baseline_name)
            lines = [xml_text(line) for line in text.splitlines()]
            SubElement(testcase, "failure", message=lines[0]).text = "\n".join(lines)
        place_properties(testcase, case_properties(case), as_properties=as_properties)
    for name, tag in (
        ("failures", "failure"),
        ("skipped", "skipped"),
        ("errors", "error"),
    ):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("tests", str(len(cases)))
    suite.set("time", f"{sum(case.duration for case in cases):.3f}")
    with replacing(path) as stream:
        stream.write(tostring(root, encoding="utf-8", xml_declaration=True))
